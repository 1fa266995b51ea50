"""The elements that belong to a thread in the steps of a workgroup.

Threads take elements in turns, or tiles of adjacent ones. An element that a thread accesses in each
step alike has an index in a local array of the thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.plan.nest.nest import AxisKind, Nest, nest_of, split
from shaderad.plan.positions import Indices, Position, add, constant, number, times


def in_turns(count: Size, threads: Size) -> Nest:
    """The nest in which each thread takes every so many elements, by the number of threads."""
    return split(nest_of((count,), AxisKind.LOOP), 0, threads, AxisKind.THREAD)


def in_tiles(extents: tuple[int, ...], counts: tuple[int, ...]) -> Nest:
    """The nest of tiles of some extents, of which each thread takes one."""
    shape = tuple(n * count for n, count in zip(extents, counts, strict=True))
    nest = nest_of(shape)
    for axis, extent in enumerate(extents):
        nest = split(nest, axis, extent, AxisKind.UNROLLED)
    return nest


def is_tiled(nest: Nest) -> bool:
    """True if threads take tiles."""
    return any(True for _ in nest.extents(AxisKind.UNROLLED))


def tile_count(nest: Nest) -> int:
    """The number of tiles."""
    count = nest.count(AxisKind.THREAD)
    assert isinstance(count, int)
    return count


def long_axes(shape: Shape) -> list[int]:
    """The axes of more than one element, or of an open number: those of tiles."""
    return [axis for axis, extent in enumerate(shape) if extent != 1]


def owner(nest: Nest, at: Indices, shape: Shape) -> tuple[Position, int] | None:
    """The thread whose tile has an element, and its number in that; `None` if that is unknown."""
    axes = long_axes(shape)
    extents, counts = (tuple(nest.extents(k)) for k in (AxisKind.UNROLLED, AxisKind.THREAD))
    if len(axes) != len(extents):
        return None
    parts = [_divided(at[k], extent) for k, extent in zip(axes, extents, strict=True)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    thread = number([quotient for quotient, _ in known], counts)
    local = number([constant(rest) for _, rest in known], extents).constant
    assert isinstance(local, int)
    return thread, local


def exactly(position: Position, divisor: Size) -> Position | None:
    """``position / divisor`` where all of it is a multiple of the number `divisor`."""
    parts = _divided(position, divisor) if divisor else None
    return parts[0] if parts is not None and parts[1] == 0 else None


def _divided(position: Position, divisor: Size) -> tuple[Position, int] | None:
    """Quotient and remainder, if the remainder is a number."""
    factors = [factor for _, factor in position.terms]
    if not isinstance(position.constant, int) or not isinstance(divisor, int):
        return None
    if not all(isinstance(factor, int) and factor % divisor == 0 for factor in factors):
        return None
    terms = tuple((base, sizes.floor_divide(factor, divisor)) for base, factor in position.terms)
    return Position(position.constant // divisor, terms), position.constant % divisor


@dataclass(frozen=True, slots=True)
class Share:
    """One of the elements of a step that a thread computes, while the code of it is written."""

    nest: Nest
    """Equal for steps in which elements belong to the same threads."""
    at: Indices = ()
    """Its place."""
    turn: Position = Position()  # noqa: RUF009, a constant
    """The turn in which the thread takes it."""
    count: Size = 0
    """The elements of the step."""

    @property
    def turns(self) -> int:
        """The elements of one thread; 0 if that is no number."""
        return elements_per_thread(self.nest)

    @property
    def tile(self) -> Position | None:
        """The number of the thread's tile."""
        own = owner(self.nest, self.at, self.nest.shape)
        return None if own is None else own[0]

    def own_index(self, at: Indices, shape: Shape, start: Position) -> Position | None:
        """The index in the thread's local array of an element that it owns; `None` of others.

        Args:
            at: Its position in an array.
            shape: The shape of the array.
            start: What is before the array in its memory.
        """
        if not is_tiled(self.nest):
            part = self.part_at(add(start, number(at, shape)))
            return None if part is None else self.index(part)
        other, part = owner(self.nest, at, shape), exactly(start, sizes.product(shape))
        if other is None or part is None or other[0] != self.tile:
            return None
        return add(times(part, self.turns), constant(other[1]))

    def part_at(self, position: Position) -> Position | None:
        """The n for which `position` is the n-th of those that are alike for the element.

        These are as far apart as the step has elements; `None` where it is none of them.
        """
        if not self.turns:
            return None
        return exactly(add(position, times(self.at[0], -1)), self.count)

    def index(self, part: Position) -> Position:
        """The index of a part of the thread's element in its local array."""
        return add(times(part, self.turns), self.turn)


def elements_per_thread(nest: Nest) -> int:
    """The elements of one thread; 0 if that is no number."""
    count = sizes.multiply(nest.count(AxisKind.LOOP), nest.count(AxisKind.UNROLLED))
    return count if isinstance(count, int) else 0


NO_SHARE = Share(nest_of((0,), AxisKind.LOOP))
