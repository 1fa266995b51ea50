"""Sums whose elements share what they read, or lie in columns -> kernels over tiles.

In ``sum_k x[m, k] * y[k, n]`` each element of `x` serves every n, and each of `y` every m. A thread
computes the results of a tile of rows m and columns n in registers, and reads each operand once for
several of them; ``sum_k x[k, n]`` has tiles of columns. `tile_kernels.py` writes the kernels for
all sizes, `wide_tiles.py` those for sizes that let a thread load four elements at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value
from shaderad.ir.dags import variables
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT, Scalar, is_bool
from shaderad.ir.walk import children
from shaderad.plan.costs import cost_of
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, IsStored, kernel_name
from shaderad.plan.nest.row_work import RowWork
from shaderad.plan.nest.rows import Rows
from shaderad.plan.positions import Indices, Positions, number
from shaderad.plan.steps import RunTiles
from shaderad.plan.storage import RECOMPUTED_COST
from shaderad.plan.tile_kernels import Tiles
from shaderad.plan.wide_tiles import wide_tiles_of


class _NotShared(Exception):
    """An element that no tile can compute."""


def has_tiles(node: arrays.Reduce, is_stored: IsStored) -> bool:
    """True if `node` is a sum of cheap numbers that share reads, or lie in columns."""
    return bool(_axes_of(node, is_stored))


def tiles_of(
    node: arrays.Reduce,
    result: Value,
    is_stored: IsStored,
    shape: LaunchShape,
    column_sum: arrays.Reduce | None = None,
) -> RunTiles | None:
    """The kernels that store `result`: the sum `node`, or an elementwise function of it.

    They also store `column_sum`, for which `has_column_sum` holds. `None` if the sum has no tiles.
    """
    axes = _axes_of(node, is_stored)
    if not axes:
        return None
    tile = (shape.tile_rows, WIDTH)[-len(axes) :]
    size_by_axis = dict(zip(axes, tile, strict=True))
    tiles = Tiles(node, result, is_stored, size_by_axis, shape, column_sum)
    step = replace(tiles.run(), wide=wide_tiles_of(tiles))
    if len(axes) > 1 or column_sum is not None:
        return step
    name, reads = kernel_name(node.operands[0]), frozenset(step.reads)
    work = RowWork(name, (node,), (result,), ((), ()), frozenset(), reads)
    return replace(step, rows=cache(partial(Rows, work)))


def has_column_sum(node: arrays.Reduce, other: arrays.Reduce, is_stored: IsStored) -> bool:
    """True if `other` is a sum along the columns of the tiles of `node` of what these read."""
    (x,), (y, *init) = node.operands, other.operands
    is_alike = not init and other.op == ops.ADD and y.element == x.element
    if not is_alike or len(x.shape) != 3 or y.shape != x.shape[1:]:
        return False
    if _axes_of(node, is_stored) != (0, 1):
        return False
    positions = Positions()
    own = tuple(positions.of(c.variable(f"axis{axis}", INT)) for axis in range(3))

    def reads(value: Value, at: Indices) -> set[tuple[Value, Indices]]:
        found: set[tuple[Value, Indices]] = set()

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            if view is not None:
                raise _NotShared
            if sizes.product(value.shape) != 1:
                found.add((value, at))
            return nodes.Load(type=value.element, buffer="", indices=(*map(positions.expr, at),))

        if _cost(Elements(positions, is_stored, read).at(value, at)) > RECOMPUTED_COST:
            raise _NotShared
        return found

    try:
        own_reads, other_reads = reads(x, own), reads(y, own[1:])
    except _NotShared:
        return False
    return bool(other_reads) and other_reads <= own_reads


def _axes_of(node: arrays.Reduce, is_stored: IsStored) -> tuple[int, ...]:
    """The axes of a tile: rows and columns, or columns; none where there are no tiles."""
    x, *init = node.operands
    is_number = isinstance(x.element, Scalar) and not is_bool(x.element)
    if init or node.op != ops.ADD or not is_number or len(x.shape) == 1:
        return ()
    try:
        return _shared_or_columns(x, is_stored)
    except _NotShared:
        return ()


def _shared_or_columns(x: Value, is_stored: IsStored) -> tuple[int, ...]:
    """Two axes that each read lacks one of, or one of columns.

    Raises:
        _NotShared: An element that is checked, chosen or expensive.
    """
    positions = Positions()
    names = [f"axis{axis}" for axis in range(len(x.shape))]
    own = tuple(positions.of(c.variable(name, INT)) for name in names)
    column = len(names) - 2
    reads: list[frozenset[str]] = []
    is_by_columns: list[bool] = []
    """True for each read by column and by element in which adjacent columns lie side by side."""

    def read(value: Value, at: Indices, view: View | None) -> Expr:
        if view is not None:
            raise _NotShared
        load = nodes.Load(type=value.element, buffer="", indices=(*map(positions.expr, at),))
        if sizes.product(value.shape) != 1:
            reads.append(variables(load))
            if {names[column], names[-1]} <= reads[-1]:
                stride_by_base = dict(number(at, value.shape).terms)
                is_by_columns.append(stride_by_base.get(own[column].terms[0][0]) == 1)
        return load

    if _cost(Elements(positions, is_stored, read).at(x, own)) > RECOMPUTED_COST:
        raise _NotShared
    axes = [axis for axis, extent in enumerate(x.shape[:-1]) if extent != 1]
    repeated = [used for used in reads if names[-1] in used]
    for rows, columns in reversed([*combinations(axes, 2)]):
        pair = {names[rows], names[columns]}
        # A read of all three would be made once for each result, whatever the tile.
        if not any(pair <= used for used in repeated) and pair <= _absent(pair, repeated):
            return rows, columns
    return (column,) if column in axes and is_by_columns and all(is_by_columns) else ()


def _absent(names: set[str], reads: Sequence[frozenset[str]]) -> set[str]:
    """Members of `names` that some read does not depend on."""
    return {name for name in names if any(name not in used for used in reads)}


def _cost(element: Expr) -> int:
    """The cost of an element, apart from finding what it reads, and where it is 0 instead.

    Raises:
        _NotShared: For a choice between two values.
    """
    cost, pending, seen = 0, [element], set[int]()
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, nodes.Load):
            continue
        seen.add(id(part))
        if not isinstance(part, nodes.Conditional):
            cost += cost_of(part)
            pending += children(part)
        elif c.is_zero(part.if_false):
            pending.append(part.if_true)
        else:
            raise _NotShared
    return cost
