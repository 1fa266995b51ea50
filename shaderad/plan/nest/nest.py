"""A loop nest as data: the elements that a kernel computes, and how each axis is divided.

An axis is a row of parts, the outermost first. Its position is the number of the place in all of
them, in row-major order. `split` is the only way to divide a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size


class AxisKind(Enum):
    """The way in which the places of a part are visited."""

    THREAD = "thread"
    """Each by a thread of its own."""
    VECTOR = "vector"
    """All by one thread, which accesses adjacent elements at once; the extent is a number."""


@dataclass(frozen=True, slots=True)
class NestPart:
    """A part of an axis."""

    extent: Size
    kind: AxisKind = AxisKind.THREAD


@dataclass(frozen=True, slots=True)
class Nest:
    """The loop nest of one kernel.

    Attributes:
        values: What it stores: an element of each at each place. They have one shape.
        axes: The parts of each axis of the places. These have the shape of the values, or one axis
            that counts their elements.
    """

    values: tuple[Value, ...]
    axes: tuple[tuple[NestPart, ...], ...]

    def extents(self, kind: AxisKind) -> Iterator[Size]:
        """The extents of all parts of a kind, in the order of axes."""
        return (part.extent for parts in self.axes for part in parts if part.kind is kind)

    @property
    def shape(self) -> Shape:
        """The extents of the axes, where splits leave no rest."""
        return tuple(sizes.product(tuple(part.extent for part in parts)) for parts in self.axes)


def nest_of(values: tuple[Value, ...], shape: Shape) -> Nest:
    """The nest with a thread for each place of `shape`."""
    return Nest(values, tuple((NestPart(extent),) for extent in shape))


def split(nest: Nest, axis: int, amount: int, kind: AxisKind) -> Nest:
    """`nest` with the innermost part of `axis` in two, of which the inner one has `amount` places.

    `amount` must divide the extent.
    """
    *outer, last = nest.axes[axis]
    parts = (
        *outer,
        NestPart(sizes.floor_divide(last.extent, amount), last.kind),
        NestPart(amount, kind),
    )
    return replace(nest, axes=(*nest.axes[:axis], parts, *nest.axes[axis + 1 :]))
