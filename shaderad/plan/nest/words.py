"""The words of memory that a step moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import WORD_BYTES, Access, byte_count
from shaderad.plan.nest.sums.tiles import SumTile, run_of
from shaderad.plan.nest.sums.work import SumWork
from shaderad.plan.steps import RunChain, RunKernel, RunPass, RunRows, RunTiles, Step

Number = Callable[[Size], int | None]
"""Gives a size that is known."""


def words_text(step: Step, number_of: Number) -> str:
    """The words per element of a step as a text; empty where sizes are open."""
    words = words_per_element(step, number_of)
    if words is None:
        return ""
    number = f"{words:.3g}"
    return f", {number} word{'' if number == '1' else 's'} per element"


def words_per_element(step: Step, number_of: Number) -> float | None:
    """The words that a step reads and writes for each element; `None` where sizes are open.

    An array counts once for each kernel that accesses it, with an element per thread. The elements
    of a scatter are its summands.
    """
    match step:
        case RunKernel(work=work):
            added = [v for name, v in work.writes if work.kernel.buffer(name).access is Access.ADD]
            if not added:
                return _words([(*step.reads, *step.writes)], tiled_places(step), number_of)
            words = _words([step.reads], work.dim, number_of)
            own = sum(byte_count(v.element) for v in added) / WORD_BYTES
            return None if words is None else words + own
        case RunRows():
            accesses = [[v for _, v in (*work.reads, *work.writes)] for work in step.works]
            return _words(accesses, places_of(step.instead), number_of)
        case _:
            return None


def words_per_addend(work: SumWork, tile: SumTile, number_of: Number) -> float:
    """The words that a kernel of a sum over tiles reads for each addend."""
    extents = [tile.block(axis) for axis in range(work.rank)] + [*tile.steps]
    words = 0.0
    for read in work.reads:
        strides = [None if stride is None else number_of(stride) for stride in read.strides]
        (_, length), run_count = run_of(strides, extents)
        is_shared = tile.team > 1 and tile.shared_axis in read.axes
        team = tile.team if is_shared else 1
        words += byte_count(read.value.element) / WORD_BYTES * length * run_count / team
    return words / prod(extents)


def _words(accesses: Sequence[Sequence[Value]], shape: Shape, number_of: Number) -> float | None:
    count, total = number_of(sizes.product(shape)), 0
    for value in (v for values in accesses for v in values):
        extent = number_of(sizes.product(value.shape))
        if extent is None or not count:
            return None
        total += min(extent, count) * byte_count(value.element)
    return total / count / WORD_BYTES if count else None


def tiled_places(step: RunKernel) -> Shape:
    """The shape of the elements that a kernel stores, or of those in its tiles of rows."""
    return (step.reads if len(step.tile) == 1 else step.writes)[0].shape


def places_of(step: RunPass | RunChain | RunTiles) -> Shape:
    """The shape of the elements of reductions, or of a scan."""
    if isinstance(step, RunTiles):
        return step.sums.work.node.operands[0].shape
    return step.work.places if isinstance(step, RunChain) else step.shape
