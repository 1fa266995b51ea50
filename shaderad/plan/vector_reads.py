"""Reads of four floats that lie side by side along an axis of a tile: see `wide_tiles.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import nodes, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT
from shaderad.ir.walk import children, map_children
from shaderad.plan.kernels import WIDTH
from shaderad.plan.positions import Position

ROW, COLUMN, STEP = "row", "column", "step"
"""Variables that stand for positions in a tile."""


class NotWide(Exception):
    """An element whose reads do not come by four."""


@dataclass(frozen=True)
class VectorRead:
    """A stored value, read at ``row * row_factor + column * ... + step * ... + rest``."""

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


def functions_of_reads(
    element: Expr, names: Collection[str], kept: Collection[str]
) -> tuple[Expr, Mapping[str, Expr]]:
    """Takes functions of one read apart, such as an activation of the left matrix of a product.

    Args:
        element: An element of a sum, in which reads are variables.
        names: Those of the variables.
        kept: Those that stand for the reads themselves elsewhere, too: they keep their functions.

    Returns:
        `element` with the variable of a read in place of its function, where all depends on that,
        and the functions by the names of their variables.
    """
    order, varying = in_order(element), {*names, ROW, COLUMN, STEP}
    used_by: dict[int, frozenset[str]] = {}
    alone: defaultdict[str, set[int]] = defaultdict(set)
    """Parts that depend on one variable alone, and are used by parts that depend on several."""
    for part in order:
        inner = children(part)
        own = {part.name} & varying if isinstance(part, nodes.Var) else ()
        used_by[id(part)] = frozenset(own).union(*(used_by[id(child)] for child in inner))
        if len(used_by[id(part)]) > 1:
            for child in inner:
                alone[_only(used_by[id(child)])].add(id(child))
    function_by_name: dict[str, Expr] = {}
    new: dict[int, Expr] = {}
    for part in order:
        name = _only(used_by[id(part)])
        is_function = not isinstance(part, nodes.Var) and alone[name] == {id(part)}
        if name in names and name not in kept and is_function and part.type == FLOAT:
            function_by_name[name] = part
            new[id(part)] = c.variable(name, FLOAT)
        else:
            new[id(part)] = map_children(part, lambda child: new[id(child)])
    return new[id(element)], function_by_name


def _only(names: frozenset[str]) -> str:
    """The name, if there is one; none otherwise."""
    return next(iter(names)) if len(names) == 1 else ""
