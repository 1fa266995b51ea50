"""Steps of a plan -> kernels with the values that they bind in each role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.device.devices import Choice
from shaderad.execute.kernel_steps import KernelStep
from shaderad.ir import arrays, sizes
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.passes.pairs import lower_chunk_prefixes
from shaderad.lower.passes.rows import CHUNK_PREFIXES, INIT, RESULT, lower_reduce, lower_scan
from shaderad.plan.finishes import finish_of
from shaderad.plan.steps import RunScans

if TYPE_CHECKING:
    from shaderad.execute.kernel_steps import Key, PlanPrograms
    from shaderad.ir.arrays import Value
    from shaderad.lower.bindings import Variant
    from shaderad.lower.passes.rows import Passes
    from shaderad.plan.kernels import Work
    from shaderad.plan.steps import CallKernel, PassStep, RunPass


def befores_step(step: RunScans, programs: PlanPrograms) -> KernelStep:
    """What comes before the chunks of two scans."""
    work = step.producer
    choice = Choice(Mode.PRIMAL, work.bounds, "", frozenset(), work.scalars)
    passes = programs.of_pass(step, choice)
    return KernelStep(
        work.kernel, choice, work.dim, _read(work), dict(work.shapes), work.sizes, passes=passes
    )


def pass_step(step: RunPass, programs: PlanPrograms, befores: Value | None = None) -> KernelStep:
    """A reduction or scan; `befores` are what comes before its chunks, where that is known."""
    work = step.producer
    values, shapes, sized, scalars = _read(work), dict(work.shapes), work.sizes, work.scalars
    if step.epilogue is not None:
        end = step.epilogue.work
        values |= _read(end)
        shapes |= dict(end.shapes)
        sized, scalars = sized + end.sizes, scalars | end.scalars
    values[Role.OUTPUT, RESULT] = step.result
    values |= {(Role.OUTPUT, name): value for name, value in work.writes[1:]}
    if step.init is not None:
        values[Role.INPUT, INIT] = step.init
    if befores is not None:
        values[Role.INPUT, CHUNK_PREFIXES] = befores
    shapes |= {name: (sizes.product(value.shape),) for (_, name), value in values.items()
               if name in (RESULT, INIT, CHUNK_PREFIXES)}  # fmt: skip
    choice = Choice(Mode.PRIMAL, work.bounds, "", frozenset(), scalars)
    passes = programs.of_pass(step, choice)
    return KernelStep(work.kernel, choice, work.dim, values, shapes, sized, passes=passes)


def lowered_passes(step: PassStep, variant: Variant) -> Passes:
    """The passes of `step`, lowered."""
    if isinstance(step, RunScans):
        first, second = (scan.node.op for scan in step.scans)
        return lower_chunk_prefixes(
            step.producer.kernel, (first, second), variant, is_mirrored=step.is_mirrored
        )
    node, kernel = step.node, step.producer.kernel
    finish = None if step.finish is None else finish_of(step.finish)
    if isinstance(node, arrays.Reduce):
        has_init = step.init is not None
        return lower_reduce(kernel, node.op, variant, has_init=has_init, epilogue=finish)
    end = step.epilogue
    ending = None if end is None else (end.ending, end.work.kernel)
    return lower_scan(kernel, node.op, variant, finish, ending, step.shared)


def work_step(work: Work, *, is_filled: bool) -> KernelStep:
    """A kernel of ours; `is_filled` where what it writes holds something already."""
    shapes = dict(work.shapes)
    own = frozenset(
        name
        for name, _ in work.writes
        if work.kernel.buffer(name).access is Access.OUT and shapes[name] == work.dim
    )
    values = _read(work)
    values |= {(Role.OUTPUT, name): value for name, value in work.writes}
    choice = Choice(Mode.PRIMAL, work.bounds, "", own, work.scalars)
    return KernelStep(work.kernel, choice, work.dim, values, shapes, work.sizes, is_filled)


def _read(work: Work) -> dict[Key, Value]:
    return {
        (Role.UNIFORM if name in work.scalars else Role.INPUT, name): value
        for name, value in work.reads
    }


def call_step(step: CallKernel) -> KernelStep:
    """A kernel of the user's, in the mode that its node asks for."""
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
    is_one = mode is not Mode.PRIMAL and all(extent == 1 for extent in call.dim)
    choice = Choice(mode, call.bounds, call.checks, own, uniforms, wanted, is_one_thread=is_one)
    return KernelStep(call.kernel, choice, call.dim, values, shapes)
