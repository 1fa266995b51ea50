"""A plan whose sizes are known: buffers and commands, ready to be recorded.

Invariant: no buffer is written while a step yet to come needs what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.graph.plan import CallKernel, RunKernel, RunPass
from shaderad.ir import arrays, sizes, types
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.passes import INIT, RESULT, lower_reduce, lower_scan
from shaderad.session.arrays import Array
from shaderad.session.commands import Command, Copy, Dispatch
from shaderad.session.devices import Choice
from shaderad.session.kernel_steps import KernelBinder, KernelStep, StagedPasses
from shaderad.session.places import Places

if TYPE_CHECKING:
    from shaderad.graph.kernels import Work
    from shaderad.graph.plan import Plan, Step
    from shaderad.ir.arrays import Value
    from shaderad.runtime import Buffer
    from shaderad.session.devices import Device

Shape = tuple[int, ...]


@dataclass(eq=False, slots=True)
class Prepared:
    """Commands over a frame of buffers."""

    device: Device
    commands: list[Command]
    made_bytes: list[int]
    """Sizes of the buffers behind the inputs in the frame."""
    outputs: list[tuple[types.Type, Shape, int]]
    """Element, shape, and position in the frame."""
    dispatch_count: int
    may_report: bool
    live_bytes: int
    """The most that is needed at one time, inputs left out."""

    def run(self, inputs: Sequence[Array], given: Sequence[Buffer]) -> tuple[Array, ...]:
        device, runtime = self.device, self.device.runtime
        frame = [*given, *(runtime.allocate(n, zeroed=False) for n in self.made_bytes)]
        for command in self.commands:
            command.record(runtime, frame)
        device.recorded(may_report=self.may_report, count=self.dispatch_count)
        count = len(given)
        return tuple(
            Array(device, t, shape, frame[k], inputs[k].offset if k < count else 0)
            for t, shape, k in self.outputs
        )


def prepare(
    device: Device,
    plan: Plan,
    known: Mapping[str, int],
    offsets: Sequence[int],
    staged: Callable[[RunPass], StagedPasses],
) -> Prepared:
    """`plan` on `device` for the sizes `known` and inputs that start at the bytes `offsets`.

    `staged` keeps the passes of the plan, which are the same for all sizes.
    """
    places = Places(plan.inputs, offsets, known)
    commands: list[Command] = []
    binder = KernelBinder(device, places, commands)
    last_use = {v: k for k, step in enumerate(plan.steps) for v in step.reads}
    kept = {v for v, _ in plan.outputs}
    for k, step in enumerate(plan.steps):
        for value in step.writes:
            places.make(value, is_kept=value in kept)
        if isinstance(step, RunKernel) and step.base is not None:
            _copy(places, step.base, step.writes[0], commands)
        binder.add(_kernel_step(step, staged))
        places.drop(
            value
            for value in dict.fromkeys((*step.reads, *step.writes))
            if value.producer is not None and value not in kept and last_use.get(value, k) <= k
        )
    outputs = [(v.element, places.shape(shape), places.number(v)) for v, shape in plan.outputs]
    count = sum(isinstance(command, Dispatch) for command in commands)
    return Prepared(device, commands, places.made_bytes, outputs, count, binder.may_report,
                    places.peak_live_bytes)  # fmt: skip


def _copy(places: Places, source: Value, target: Value, commands: list[Command]) -> None:
    size = places.byte_count(source)
    if size:
        start = places.offset(source)
        commands.append(Copy(places.number(source), start, places.number(target), 0, size))


def _kernel_step(step: Step, staged: Callable[[RunPass], StagedPasses]) -> KernelStep:
    if isinstance(step, CallKernel):
        return _call_step(step)
    return _pass_step(step, staged(step)) if isinstance(step, RunPass) else _work_step(step)


def _pass_step(step: RunPass, passes: StagedPasses) -> KernelStep:
    work = step.producer
    values = {(Role.INPUT, name): value for name, value in work.reads}
    values[Role.OUTPUT, RESULT] = step.node.result
    if step.init is not None:
        values[Role.INPUT, INIT] = step.init
    shapes = {name: _seen(work, name, value) for name, value in (*work.reads, *work.writes)}
    shapes |= {name: (sizes.product(value.shape),) for (_, name), value in values.items()
               if name in (RESULT, INIT)}  # fmt: skip
    choice = pass_choice(work)
    return KernelStep(work.kernel, choice, work.dim, values, shapes, work.sizes, passes=passes)


def pass_choice(work: Work) -> Choice:
    """How the producer of a pass is lowered."""
    return Choice(Mode.PRIMAL, work.bounds, "", frozenset(), frozenset())


def stage_passes(device: Device, step: RunPass) -> StagedPasses:
    """Lowers and compiles the passes of `step`."""
    node, kernel = step.node, step.producer.kernel
    variant = device.variant(pass_choice(step.producer))
    if isinstance(node, arrays.Reduce):
        passes = lower_reduce(kernel, node.op, variant, has_init=step.init is not None)
    else:
        passes = lower_scan(kernel, node.op, variant)
    stages = tuple(device.stage(kernel, one.lowered) for one in passes.steps)
    return StagedPasses(passes, stages, node.operands[0].shape)


def _work_step(step: RunKernel) -> KernelStep:
    work = step.work
    shapes = {name: _seen(work, name, value) for name, value in (*work.reads, *work.writes)}
    own = frozenset(
        name
        for name, _ in work.writes
        if work.kernel.buffer(name).access is Access.OUT and shapes[name] == work.dim
    )
    values = {(Role.INPUT, name): value for name, value in work.reads}
    values |= {(Role.OUTPUT, name): value for name, value in work.writes}
    choice = Choice(Mode.PRIMAL, work.bounds, "", own, frozenset())
    return KernelStep(
        work.kernel, choice, work.dim, values, shapes, work.sizes, step.base is not None
    )


def _seen(work: Work, name: str, value: Value) -> sizes.Shape:
    """The shape of a value as the kernel indexes it: its own, or all elements in one row."""
    is_as_it_is = work.kernel.buffer(name).type.rank == len(value.shape)
    return value.shape if is_as_it_is else (sizes.product(value.shape),)


def _call_step(step: CallKernel) -> KernelStep:
    call, node = step.call, step.node
    buffers = {b.name: b for b in call.kernel.buffers}
    count = len(call.names)
    uniforms = frozenset(call.names) - set(buffers)
    values = {
        (Role.UNIFORM if name in uniforms else Role.INPUT, name): value
        for name, value in zip(call.names, step.reads, strict=False)
    }
    mode, wanted = Mode.PRIMAL, frozenset[str]()
    if isinstance(node, arrays.KernelCall):
        outputs = zip(call.written, node.results, strict=True)
        values |= {(Role.OUTPUT, name): value for (name, _), value in outputs}
    else:
        is_pull = isinstance(node, arrays.KernelPull)
        mode = Mode.BACKWARD if is_pull else Mode.FORWARD
        wanted = frozenset(node.wanted if is_pull else node.given)
        given, made = (
            (Role.COTANGENT, Role.GRADIENT) if is_pull else (Role.TANGENT, Role.OUTPUT_TANGENT)
        )
        derivatives = zip(node.given, step.reads[count:], strict=False)
        values |= {(given, name): value for name, value in derivatives}
        values |= {
            (made, name): value for name, value in zip(node.wanted, node.results, strict=True)
        }
        primal = step.reads[count + len(node.given) :]
        values |= {
            (Role.RESULT, name): value for name, value in zip(step.results, primal, strict=True)
        }
    shapes = {n: v.shape for n, v in zip(call.names, call.operands, strict=True)}
    shapes |= {name: t.shape for name, t in call.written}
    own = frozenset(
        name for name, t in call.written
        if buffers[name].access is Access.OUT and t.shape == call.dim
    )  # fmt: skip
    choice = Choice(mode, call.bounds, "", own, uniforms, wanted)
    return KernelStep(call.kernel, choice, call.dim, values, shapes)
