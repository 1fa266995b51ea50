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
from itertools import product

from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.plan.positions import Indices, Position, Positions, add, constant, number, times

TILE_LIMIT = 64
"""Elements of a tile."""
STEP_LIMIT = 1500
"""The cost of a step, in additions, that is written out for each element of a tile."""
KERNEL_LIMIT = 3600
"""The cost of all steps of a kernel that are."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiles of arrays, by their axes of more than one element."""

    extents: tuple[int, ...]
    counts: tuple[int, ...]
    """Tiles along each axis; each is a thread."""

    @property
    def size(self) -> int:
        """Elements of a tile."""
        return math.prod(self.extents)

    @property
    def tile_count(self) -> int:
        return math.prod(self.counts)

    def fits(self, shape: Shape) -> bool:
        """True if tiles cover arrays of `shape`, whose elements are at least half of theirs."""
        axes = [extent for extent in _long(shape) if isinstance(extent, int)]
        if len(_long(shape)) != len(self.extents) or len(axes) != len(self.extents):
            return False
        covered = (n <= a * w for n, a, w in zip(axes, self.extents, self.counts, strict=True))
        return all(covered) and 2 * _count(shape) >= self.size * self.tile_count

    def locals(self) -> Iterator[tuple[int, ...]]:
        """The positions in a tile."""
        return product(*map(range, self.extents))

    def owner(self, at: Indices, shape: Shape) -> tuple[Position, int] | None:
        """The tile of an element, and its number in that; `None` where that is no number."""
        axes = [k for k, extent in enumerate(shape) if extent != 1]
        if len(axes) != len(self.extents):
            return None
        split = [_split(at[k], a) for k, a in zip(axes, self.extents, strict=True)]
        if None in split:
            return None
        tiles, inner = zip(*(one for one in split if one is not None), strict=True)
        local = number([constant(k) for k in inner], self.extents).constant
        assert isinstance(local, int)
        return number(tiles, self.counts), local


def exactly(position: Position, divisor: Size) -> Position | None:
    """``position / divisor`` where all of it is a multiple of the number `divisor`."""
    split = _split(position, divisor) if isinstance(divisor, int) and divisor else None
    return split[0] if split is not None and split[1] == 0 else None


def _split(position: Position, divisor: int) -> tuple[Position, int] | None:
    """Quotient and remainder, if the remainder is a number."""
    factors = [factor for _, factor in position.terms]
    if not isinstance(position.constant, int):
        return None
    if not all(isinstance(factor, int) and factor % divisor == 0 for factor in factors):
        return None
    terms = tuple((base, sizes.floor_divide(factor, divisor)) for base, factor in position.terms)
    return Position(position.constant // divisor, terms), position.constant % divisor


def _long(shape: Shape) -> list[Size]:
    return [extent for extent in shape if extent != 1]


def _count(shape: Shape) -> int:
    return math.prod(extent for extent in shape if isinstance(extent, int))


# -- a thread's share -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TileShare:
    """One element of each tile, while a step is written for it."""

    tiling: Tiling
    tile: Position
    """The number of the thread's tile."""
    local: int
    count: int
    """The elements of the step."""

    @property
    def key(self) -> Tiling:
        """Equal for steps in which elements belong to the same threads."""
        return self.tiling

    @property
    def turns(self) -> int:
        """The elements of one thread."""
        return self.tiling.size

    def own_index(self, at: Indices, shape: Shape, start: Position) -> Position | None:
        """The index in the thread's local array of an element that it owns; `None` of others.

        Args:
            at: Its position in an array.
            shape: The shape of the array.
            start: What is before the array in its memory.
        """
        owner, part = self.tiling.owner(at, shape), exactly(start, sizes.product(shape))
        if owner is None or part is None or owner[0] != self.tile:
            return None
        return add(times(part, self.tiling.size), constant(owner[1]))


# -- which steps, and which tiles -----------------------------------------------------------------


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

    tiling: Tiling
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
    cost_by_step = {k: one.cost * tiling.size for k, one in costs.items() if tiling.fits(one.shape)}
    chosen = [k for k, cost in cost_by_step.items() if cost <= STEP_LIMIT]
    while sum(cost_by_step[k] for k in chosen) > KERNEL_LIMIT:
        chosen.remove(min(chosen, key=lambda k: facts[k].times / cost_by_step[k]))
    is_any = any(facts[k].shifts for k in chosen)
    return Tiled(tiling, frozenset(chosen)) if is_any else None


def _may_be_tiled(step: StepFacts, threads: int) -> bool:
    is_known = all(isinstance(extent, int) for extent in step.shape)
    return is_known and _count(step.shape) > threads


def tiling_of(shape: Shape, shifts: frozenset[int], threads: int) -> Tiling | None:
    """The tiles of an array by which threads compute, read and store least.

    Args:
        shape: The shape of the array.
        shifts: The axes along which elements beside others are read.
        threads: The greatest number of tiles.
    """
    axes = [k for k, extent in enumerate(shape) if extent != 1]
    extents = [n for n in _long(shape) if isinstance(n, int)]
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
            best, least = Tiling(tile, counts), cost
    return best


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
    axes = [k for k, extent in enumerate(own_shape) if extent != 1]
    others = [k for k, extent in enumerate(shape) if extent != 1]
    if len(axes) != len(others):
        return frozenset()
    rests = {
        k: positions.at_known(add(at[other], times(own[k], -1)))
        for k, other in zip(axes, others, strict=True)
    }
    if any(positions.limits(rest) is None for rest in rests.values()):
        return frozenset()
    return frozenset(k for k, rest in rests.items() if rest != Position())
