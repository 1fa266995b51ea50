"""Two scans that follow one another -> one pass that finds what the chunks of both come to.

A scan and the one that pulls its cotangents back go over the same elements, mostly in opposite
directions: what both need of them is read once. Invariant: the pass reads nothing that the first
scan writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import arrays, nodes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import Access, Struct
from shaderad.ir.walk import all_expressions
from shaderad.plan.kernels import IsStored, Work, Writer, write_kernel
from shaderad.plan.steps import RunPass, RunScans, Step
from shaderad.rules import composing as c


def with_shared_totals(
    steps: Sequence[Step],
    is_stored: IsStored,
    read_limit: int,
) -> tuple[Step, ...]:
    """`steps` with neighbours made one.

    Args:
        steps: A whole plan, in order.
        is_stored: Which values have memory.
        read_limit: Values that a step may read.
    """
    found: list[Step] = []
    for step in steps:
        both = _both(found[-1], step, is_stored, read_limit) if found else None
        if both is None:
            found.append(step)
        else:
            found[-1] = both
    return tuple(found)


def _both(first: Step, second: Step, is_stored: IsStored, read_limit: int) -> RunScans | None:
    if not (isinstance(first, RunPass) and isinstance(second, RunPass)):
        return None
    if not (_is_plain_scan(first) and _is_plain_scan(second) and first.shape == second.shape):
        return None
    apart = _read_count(first.producer) + _read_count(second.producer)
    for is_mirrored in (False, True):
        work = _elements(first, second, is_stored, is_mirrored=is_mirrored)
        values = {value for _, value in work.reads}
        # One more than a pass binds: it writes for two.
        is_possible = len(values) < read_limit and first.result not in values
        if is_possible and _read_count(work) < apart:
            return _together(first, second, work, is_mirrored=is_mirrored)
    return None


def _together(first: RunPass, second: RunPass, work: Work, *, is_mirrored: bool) -> RunScans:
    (out,) = (b for b in work.kernel.buffers if b.access is Access.OUT)
    state = out.type.element
    one = replace(first, shared=arrays.SharedTotals(state, is_mirrored=False))
    other = replace(second, shared=arrays.SharedTotals(state, is_mirrored))
    return RunScans((one, other), work)


def _is_plain_scan(step: RunPass) -> bool:
    is_quiet = step.producer.bounds == "unchecked"
    is_scan = isinstance(step.node, arrays.Scan) and step.init is None
    return is_scan and is_quiet and len(step.shape) == 1


def _elements(first: RunPass, second: RunPass, is_stored: IsStored, *, is_mirrored: bool) -> Work:
    """The kernel that computes an element of each; with `is_mirrored`, of the second the one that
    is as far from the end.
    """
    x, y = first.node.operands[0], second.node.operands[0]
    both = Struct("both", (("first", x.element), ("second", y.element)))

    def body(writer: Writer) -> list[Stmt]:
        there = writer.mirrored if is_mirrored else writer.own
        written = writer.written([*writer.values([x]), *writer.values([y], there)])
        element = c.construct(both, list(written.values))
        return [*written.body, nodes.Store(buffer="y0", indices=writer.index(), value=element)]

    name = f"{first.producer.kernel.name}_and_{second.producer.kernel.name}"
    outputs = [("y0", Value(ArrayType(both, x.shape)), Access.OUT)]
    return write_kernel(name, x.shape, is_stored, body, outputs)


def _read_count(work: Work) -> int:
    return sum(isinstance(e, nodes.Load) for e in all_expressions(work.kernel.body))
