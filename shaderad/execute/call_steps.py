"""A kernel of the user in the mode that its node asks for -> its step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.device.stages import Choice
from shaderad.execute.kernel_steps import KernelStep
from shaderad.ir import arrays
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Role
from shaderad.plan.joined_calls import launch_shaped

if TYPE_CHECKING:
    from shaderad.execute.kernel_steps import KernelBinder
    from shaderad.execute.schedule import Key
    from shaderad.ir.arrays import Value
    from shaderad.plan.call_kernels import CallKernel


_NOTHING = ""
"""The name of the empty result of a kernel that writes nothing."""


def add_call(binder: KernelBinder, step: CallKernel) -> None:
    """Adds the instructions of a kernel call or of its derivative."""
    binder.add(call_step(step))
    node = step.node
    if isinstance(node, arrays.KernelPull) and node.accumulates:
        count = len(node.operands)
        totals = step.reads[count - len(node.wanted) : count]
        for result, total in zip(node.results, totals, strict=True):
            binder.places.share(result, total)


def call_step(step: CallKernel) -> KernelStep:
    """The step of a kernel call or of its derivative."""
    call, node = step.call, step.node
    uniforms = frozenset(call.names).difference(b.name for b in call.kernel.buffers)
    values: dict[Key, Value] = {
        (Role.UNIFORM if name in uniforms else Role.INPUT, name): value
        for name, value in zip(call.names, step.reads, strict=False)
    }
    mode, wanted, absent = Mode.PRIMAL, frozenset[str](), frozenset[str]()
    if isinstance(node, arrays.KernelCall):
        names = (*(name for name, _ in call.written), _NOTHING)
        values |= {(Role.OUTPUT, n): value for n, value in zip(names, node.results, strict=False)}
    else:
        mode, wanted, absent = _mode_of(node)
        values |= _derivative_values(step, node)
    shapes = {n: v.shape for n, v in zip(call.names, call.operands, strict=True)}
    shapes |= {name: t.shape for name, t in call.written}
    choice = Choice(
        mode,
        call.bounds,
        call.checks,
        launch_shaped(call),
        uniforms,
        wanted,
        accumulate=isinstance(node, arrays.KernelPull) and node.accumulates,
        natural=step.natural,
        with_results=bool(step.stored),
        absent=absent,
        is_one_thread=step.is_one_thread,
        copies=step.copies,
    )
    return KernelStep(call.kernel, choice, call.dim, values, shapes)


def _mode_of(
    node: arrays.KernelPull | arrays.KernelPush,
) -> tuple[Mode, frozenset[str], frozenset[str]]:
    """The mode, what it is asked for, and the results that have no cotangent."""
    if isinstance(node, arrays.KernelPush):
        return Mode.FORWARD, frozenset(node.derivative_names), frozenset()
    floats = {name for name, t in node.call.written if is_differentiable(t.element)}
    absent = frozenset(floats.difference(node.derivative_names))
    return Mode.BACKWARD, frozenset(node.wanted), absent


def _derivative_values(
    step: CallKernel, node: arrays.KernelPull | arrays.KernelPush
) -> dict[Key, Value]:
    """The values of a derivative, those of the operands of its call left out."""
    call, count = node.call, len(node.call.names)
    is_pull = isinstance(node, arrays.KernelPull)
    given, made = (
        (Role.COTANGENT, Role.GRADIENT) if is_pull else (Role.TANGENT, Role.OUTPUT_TANGENT)
    )
    reads = iter(step.reads[count:])
    values = {(given, name): next(reads) for name in node.derivative_names}
    if isinstance(node, arrays.KernelPull) and node.accumulates:
        values |= {(made, name): next(reads) for name in node.wanted}
    else:
        values |= {(made, n): value for n, value in zip(node.wanted, node.results, strict=True)}
    stored = zip(call.written, step.stored, strict=False)
    values |= {(Role.OUTPUT, name): value for (name, _), value in stored}
    return values | {(Role.RESULT, name): next(reads) for name in step.results}
