"""A loop nest as data: the places that a kernel or a step visits, and how each axis is divided.

An axis is a row of parts, the outermost first. A position along it is the number of the place in
all of them, in row-major order. `split` is the only way to divide a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size


class AxisKind(Enum):
    """The way in which the places of a part are visited."""

    THREAD = "thread"
    """Each by a thread of its own."""
    LOOP = "loop"
    """All by one thread, one after the other."""
    UNROLLED = "unrolled"
    """All by one thread, by code for each place; the extent is a number."""
    VECTOR = "vector"
    """The same, and adjacent elements are accessed at once."""


@dataclass(frozen=True, slots=True)
class NestPart:
    """A part of an axis."""

    extent: Size
    kind: AxisKind = AxisKind.THREAD

    @property
    def is_written_out(self) -> bool:
        """True if each place has code of its own."""
        return self.kind in (AxisKind.UNROLLED, AxisKind.VECTOR)


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest.

    Attributes:
        shape: The places along each axis.
        axes: The parts of each axis. They may have more places, of which the last are not visited.
    """

    shape: Shape
    axes: tuple[tuple[NestPart, ...], ...]

    def extents(self, kind: AxisKind) -> Iterator[Size]:
        """The extents of all parts of a kind, in the order of axes."""
        return (part.extent for parts in self.axes for part in parts if part.kind is kind)

    def count(self, kind: AxisKind) -> Size:
        """The number of places in all parts of a kind."""
        return sizes.product(tuple(self.extents(kind)))


def nest_of(shape: Shape, kind: AxisKind = AxisKind.THREAD) -> Nest:
    """The nest with one part for each axis."""
    return Nest(shape, tuple((NestPart(extent, kind),) for extent in shape))


def split(
    nest: Nest, axis: int, amount: Size, kind: AxisKind, *, divides_extent: bool = False
) -> Nest:
    """`nest` with the innermost part of `axis` in two, of which the inner one has `amount` places.

    Unless `amount` divides the extent, the last places are beyond it.
    """
    *outer, last = nest.axes[axis]
    divided = sizes.floor_divide if divides_extent else sizes.divide_up
    parts = (*outer, NestPart(divided(last.extent, amount), last.kind), NestPart(amount, kind))
    return replace(nest, axes=(*nest.axes[:axis], parts, *nest.axes[axis + 1 :]))
