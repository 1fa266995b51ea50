"""Reads of four floats that lie side by side along an axis of a tile: see `wide_tiles.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size
from shaderad.plan.positions import Position

WIDTH = 4
"""Elements of one load."""
ROW, COLUMN, STEP = "row", "column", "step"
"""Variables that stand for positions in a tile."""


class NotWide(Exception):
    """An element whose reads do not come by four."""


@dataclass(frozen=True)
class VectorRead:
    """A stored value, read at ``row * row_factor + column * .. + step * .. + rest``."""

    name: str
    """Stands for the element in the sum's."""
    value: Value
    row: Size
    column: Size
    step: Size
    rest: Position

    @property
    def axis(self) -> str:
        """The axis along which four elements lie side by side."""
        return STEP if self.step == 1 else ROW if self.row == 1 else COLUMN

    @property
    def is_along_sum(self) -> bool:
        return self.axis == STEP

    @property
    def multiples(self) -> Iterator[Size]:
        """The sizes that must be multiples of 4."""
        factors = {ROW: self.row, COLUMN: self.column, STEP: self.step}
        yield from (factor for axis, factor in factors.items() if axis != self.axis)
        yield self.rest.constant
        yield from (factor for _, factor in self.rest.terms)


def vector_read(name: str, value: Value, at: Position, bases: Sequence[Position]) -> VectorRead:
    """The read of `value` at its element `at`, by the bases of row, column and step.

    Raises:
        NotWide: Four elements do not lie side by side along one axis.
    """
    factor_by_base = dict(at.terms)
    row, column, step = (factor_by_base.pop(base.terms[0][0], 0) for base in bases)
    if 1 not in (row, column, step):
        raise NotWide
    rest = Position(at.constant, (*factor_by_base.items(),))
    return VectorRead(name, value, row, column, step, rest)


def quartered(size: Size) -> Size:
    return sizes.floor_divide(size, WIDTH)


def quartered_position(at: Position) -> Position:
    """A quarter of a position whose constant and factors are multiples of 4."""
    terms = ((base, quartered(factor)) for base, factor in at.terms)
    return Position(quartered(at.constant), tuple(terms))
