"""Tiles: boxes of adjacent elements that one thread of a workgroup computes, in every step alike.

A step that reads the elements beside its own finds most of them in the thread's registers, and only
those across an edge in memory that all threads access; and only elements that are read across an
edge are stored there. Such a step is written out for each element of a tile, so that the index of
each in a local array is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shaderad.ir.sizes import Shape
from shaderad.plan.nest.loops.shares import elements_per_thread, in_tiles, long_axes
from shaderad.plan.nest.nest import Nest
from shaderad.plan.positions import Indices, Position, Positions, add, times

TILE_LIMIT = 64
"""Elements of a tile."""
STEP_LIMIT = 1500
"""The cost of a step, in additions, that is written out for each element of a tile."""
KERNEL_LIMIT = 3600
"""The cost of all steps of a kernel that are."""


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A step of a kernel whose threads share the elements as they come."""

    shape: Shape
    cost: int
    """The cost of an element, in additions."""
    times: int
    shifts: frozenset[int]
    """The axes along which it reads elements beside its own."""


@dataclass(frozen=True, slots=True)
class Tiled:
    """The steps of a kernel that are written for tiles."""

    tiling: Nest
    steps: frozenset[int]
    """Their numbers, in the order in which they are written."""


def tiled(facts: Mapping[int, StepFacts], threads: int) -> Tiled | None:
    """The tiles of a kernel; `None` if no step reads the elements beside its own."""
    costs = {k: one for k, one in facts.items() if _may_be_tiled(one, threads)}
    shifted = [one for one in costs.values() if one.shifts]
    if not shifted:
        return None
    most = max(shifted, key=lambda one: one.times * _count(one.shape))
    axes = frozenset[int]().union(*(one.shifts for one in shifted if one.shape == most.shape))
    tiling = tiling_of(most.shape, axes, threads)
    if tiling is None:
        return None
    size = elements_per_thread(tiling)
    cost_by_step = {k: one.cost * size for k, one in costs.items() if fits(tiling, one.shape)}
    chosen = [k for k, cost in cost_by_step.items() if cost <= STEP_LIMIT]
    while sum(cost_by_step[k] for k in chosen) > KERNEL_LIMIT:
        chosen.remove(min(chosen, key=lambda k: facts[k].times / cost_by_step[k]))
    is_any = any(facts[k].shifts for k in chosen)
    return Tiled(tiling, frozenset(chosen)) if is_any else None


def fits(tiling: Nest, shape: Shape) -> bool:
    """True if tiles cover arrays of `shape`, whose elements are at least half of theirs."""
    extents = _long_extents(shape)
    if len(long_axes(shape)) != len(tiling.shape) or len(extents) != len(tiling.shape):
        return False
    covered = (n <= m for n, m in zip(extents, _long_extents(tiling.shape), strict=True))
    return all(covered) and 2 * _count(shape) >= _count(tiling.shape)


def _may_be_tiled(step: StepFacts, threads: int) -> bool:
    is_known = all(isinstance(extent, int) for extent in step.shape)
    return is_known and _count(step.shape) > threads


def tiling_of(shape: Shape, shifts: frozenset[int], threads: int) -> Nest | None:
    """The tiles of an array by which threads compute, read and store least.

    Args:
        shape: The shape of the array.
        shifts: The axes along which elements beside others are read.
        threads: The greatest number of tiles.
    """
    axes, extents = long_axes(shape), _long_extents(shape)
    best, least = None, math.inf
    for tile in _boxes(extents, TILE_LIMIT):
        counts = tuple(-(-n // a) for n, a in zip(extents, tile, strict=True))
        if math.prod(counts) > threads:
            continue
        size = math.prod(tile)
        cut = [k for k, (axis, w) in enumerate(zip(axes, counts, strict=True))
               if axis in shifts and w > 1]  # fmt: skip
        is_even = all(extents[k] % tile[k] == 0 for k in cut)
        inner = math.prod(max(0, a - 2) if k in cut else a for k, a in enumerate(tile))
        read = sum(2 * size // tile[k] for k in cut)
        cost = size + read + (size - inner if is_even else size)
        if cost < least:
            best, least = in_tiles(tile, counts), cost
    return best


def _long_extents(shape: Shape) -> list[int]:
    """The extents of the long axes, as far as they are numbers."""
    return [n for n in (shape[axis] for axis in long_axes(shape)) if isinstance(n, int)]


def _count(shape: Shape) -> int:
    return math.prod(extent for extent in shape if isinstance(extent, int))


def _boxes(extents: Sequence[int], limit: int) -> Iterator[tuple[int, ...]]:
    """All boxes inside of another that have at most so many elements."""
    if not extents:
        yield ()
        return
    for first in range(1, min(extents[0], limit) + 1):
        for rest in _boxes(extents[1:], limit // first):
            yield (first, *rest)


def shifted_axes(
    positions: Positions, own: Indices, own_shape: Shape, at: Indices, shape: Shape
) -> frozenset[int]:
    """The axes along which an element is a number of elements away from a thread's own.

    It may be wrapped around. Empty where it is anywhere.
    """
    axes, others = long_axes(own_shape), long_axes(shape)
    if len(axes) != len(others):
        return frozenset()
    rests = {
        k: positions.at_known(add(at[other], times(own[k], -1)))
        for k, other in zip(axes, others, strict=True)
    }
    if any(positions.limits(rest) is None for rest in rests.values()):
        return frozenset()
    return frozenset(k for k, rest in rests.items() if rest != Position())
