"""Sums whose elements share what they read, or lie in columns -> kernels over tiles.

In ``sum_k x[m, k] * y[k, n]`` each element of `x` serves every n, and each of `y` every m. A thread
computes the results of a tile of rows m and columns n in registers, and reads each operand once for
several of them; ``sum_k x[k, n]`` has tiles of columns. The rows of tile ``i`` of ``I`` are ``i``,
``i + I``, ``i + 2 I``, ..: adjacent threads read and store adjacent elements. Where the tiles alone
would keep few threads busy, sums are cut into parts, which a second kernel adds in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt, Store
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Access, LocalArray, Scalar, is_bool
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.positions import (
    RANK_LIMIT,
    Indices,
    Position,
    Positions,
    add,
    constant,
    number,
    times,
)
from shaderad.plan.statements import Written
from shaderad.plan.steps import RunTiles
from shaderad.plan.storage import RECOMPUTED_COST, cost_of
from shaderad.rules import composing as c
from shaderad.rules.expressions import operands, variables

ROWS, COLUMNS = 8, 4
"""Results of a tile: 12 reads serve 32 of them."""
ENOUGH_THREADS = 16384
"""Sums are cut into parts up to so many threads."""
SHORTEST_PART = 256
"""Elements of a part."""
MOST_PARTS = 256
"""A thread adds them one after the other."""
BLOCK = 64
"""Elements that are added to 0 before their sum is added to the others."""
_FIRST, _STEP, _PART, _SUMS, _TOTAL, _RESULT = "first", "step", "part", "sums", "total", "y0"


class _NotShared(Exception):
    """An element that no tile can compute."""


def has_tiles(node: arrays.Reduce, is_stored: IsStored) -> bool:
    """True if `node` is a sum of cheap numbers that share reads, or lie in columns."""
    return bool(_tile_of(node, is_stored))


def tiles_of(node: arrays.Reduce, result: Value, is_stored: IsStored) -> RunTiles | None:
    """The kernels that store `result`: the sum `node`, or an elementwise function of it.

    `None` if the sum has no tiles.
    """
    size_by_axis = _tile_of(node, is_stored)
    return _Tiles(node, result, is_stored, size_by_axis).run() if size_by_axis else None


def _tile_of(node: arrays.Reduce, is_stored: IsStored) -> dict[int, int]:
    """The size of a tile along each of its axes; empty where there are none."""
    x, *init = node.operands
    is_number = isinstance(x.element, Scalar) and not is_bool(x.element)
    if init or node.op != ops.ADD or not is_number or len(x.shape) == 1:
        return {}
    try:
        return _shared_or_columns(x, is_stored)
    except _NotShared:
        return {}


def _shared_or_columns(x: Value, is_stored: IsStored) -> dict[int, int]:
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
            return {rows: ROWS, columns: COLUMNS}
    return {column: COLUMNS} if column in axes and is_by_columns and all(is_by_columns) else {}


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
            pending += operands(part)
        elif c.is_zero(part.if_false):
            pending.append(part.if_true)
        else:
            raise _NotShared
    return cost


class _Tiles:
    def __init__(
        self,
        node: arrays.Reduce,
        result: Value,
        is_stored: IsStored,
        size_by_axis: Mapping[int, int],
    ) -> None:
        (x,) = node.operands
        self._total, self._x, self._result, self._is_stored = node.result, x, result, is_stored
        rows, self._count = x.shape[:-1], x.shape[-1]
        self._size_by_axis = {
            axis: max(1, min(size, extent)) if isinstance(extent := rows[axis], int) else size
            for axis, size in size_by_axis.items()
        }
        self._tiles: Shape = tuple(
            sizes.divide_up(extent, self._size_by_axis.get(axis, 1))
            for axis, extent in enumerate(rows)
        )
        self._part_count = _parts(sizes.product(self._tiles), self._count)
        self._are_several = sizes.minimum(1, sizes.subtract(self._part_count, 1))
        first = sizes.multiply(rows[0], self._are_several)
        self._parts = Value(ArrayType(x.element, (self._part_count, first, *rows[1:])))
        """The sum of each part; empty where there is one part a result."""

    def run(self) -> RunTiles:
        outputs = [(_RESULT, self._result, Access.OUT), (_PART, self._parts, Access.OUT)]
        shape = (self._part_count, *self._tiles)
        tiles = write_kernel("tiles", shape, self._has_memory, self._tile, outputs)
        work = write_kernel(
            "sum_of_parts", self._result.shape, self._has_memory, self._added, outputs[:1]
        )
        # Nothing runs where the first kernel stores the results.
        dim = (sizes.multiply(work.dim[0], self._are_several), *work.dim[1:])
        return RunTiles(self._total, tiles, self._parts, replace(work, dim=dim))

    def _has_memory(self, value: Value) -> bool:
        is_own = value in (self._total, self._result)
        return value is self._parts or (not is_own and self._is_stored(value))

    def _finished(self, writer: Writer, at: Indices, total: Expr, prefix: str) -> Written:
        """Computes the result at `at` from its sum."""
        writer.bind(self._total, lambda _, __: total)
        return writer.written(writer.values([self._result], at), prefix)

    # -- the sums of a tile ----------------------------------------------------------------

    def _tile(self, writer: Writer) -> list[Stmt]:
        body: list[Stmt] = []
        part, *tile = (self._named(writer, axis, at, body) for axis, at in enumerate(writer.own))
        along = [self._along(writer, axis, at, body) for axis, at in enumerate(tile)]
        places = [*product(*along)]
        sums = c.variable(_SUMS, LocalArray(self._x.element, len(places)))
        writer.local_types[sums.name] = sums.type
        body.append(Assign(name=sums.name, value=nodes.Zero(type=sums.type)))
        body.append(self._loop(writer, part, places, sums))
        return [*body, self._stores(writer, part, tile, sums)]

    def _named(self, writer: Writer, axis: int, at: Position, body: list[Stmt]) -> Position:
        """A position of the thread as a local, where finding it costs divisions."""
        if len(writer.own) <= RANK_LIMIT or not at.terms:
            return at
        index = c.variable(f"own{axis}", INT)
        writer.local_types[index.name] = INT
        body.append(Assign(name=index.name, value=writer.positions.expr(at)))
        return writer.positions.of(index)

    def _along(self, writer: Writer, axis: int, tile: Position, body: list[Stmt]) -> list[Position]:
        """The positions of a tile along one axis, the last result in place of those beyond it.

        `body` computes them.
        """
        positions, extent = writer.positions, self._x.shape[axis]
        last = positions.expr(constant(sizes.subtract(extent, 1)))
        along = [tile]
        for k in range(1, self._size_by_axis.get(axis, 1)):
            at = add(tile, constant(sizes.multiply(k, self._tiles[axis])))
            if not self._is_whole(axis):
                index = c.variable(f"at{axis}_{k}", INT)
                writer.local_types[index.name] = INT
                clamped = c.apply(ops.MIN, positions.expr(at), last)
                body.append(Assign(name=index.name, value=clamped))
                at = positions.of(index)
            along.append(at)
        return along

    def _is_whole(self, axis: int) -> bool:
        """True if all tiles lie inside of the results along `axis`, whatever their sizes."""
        extent = self._x.shape[axis]
        return isinstance(extent, int) and extent % self._size_by_axis.get(axis, 1) == 0

    def _stores(
        self, writer: Writer, part: Position, tile: Sequence[Position], sums: nodes.Var
    ) -> Stmt:
        """Stores the sums, or what becomes of them, in loops over the tile."""
        positions = writer.positions
        at, number, tests = [*tile], Position(), list[Expr]()
        steps = {axis: c.variable(f"step{axis}", INT) for axis in self._size_by_axis}
        for axis, step in steps.items():
            base = positions.of(step)
            at[axis] = add(tile[axis], times(base, self._tiles[axis]))
            number = add(times(number, self._size_by_axis[axis]), base)
            if not self._is_whole(axis):
                extent = positions.size(self._x.shape[axis])
                tests.append(c.apply(ops.LT, positions.expr(at[axis]), extent))
        index = nodes.KnownNumber(type=INT, number=positions.expr(number), is_inside=True)
        total = c.variable(_TOTAL, self._x.element)
        writer.local_types |= {v.name: v.type for v in (*steps.values(), total)}
        written = self._finished(writer, tuple(at), total, "t_")
        are_several = c.apply(ops.GT, positions.size(self._part_count), c.whole(1))
        of_part = writer.indices_in(self._parts, (part, *at))
        stored = writer.indices_in(self._result, tuple(at))
        element = nodes.Element(type=total.type, value=sums, index=index)
        choice = If(
            condition=are_several,
            then=(_store(_PART, of_part, total),),
            otherwise=(*written.body, _store(_RESULT, stored, written.values[0])),
        )
        body: list[Stmt] = [Assign(name=total.name, value=element), choice]
        for test in tests:
            body = [If(condition=test, then=tuple(body), otherwise=())]
        for axis, step in reversed(steps.items()):
            size = c.whole(self._size_by_axis[axis])
            body = [nodes.For(variable=step.name, start=c.whole(0), stop=size, step=c.whole(1),
                              body=tuple(body))]  # fmt: skip
        (loop,) = body
        return loop

    def _loop(
        self, writer: Writer, part: Position, places: Sequence[Indices], sums: nodes.Var
    ) -> Stmt:
        """Adds the elements of one part to the sums."""
        positions = writer.positions
        length = sizes.divide_up(self._count, self._part_count)
        start = positions.expr(times(part, length))
        end = positions.expr(add(times(part, length), constant(length)))
        stop = c.apply(ops.MIN, end, positions.size(self._count))
        first, step = c.variable(_FIRST, INT), c.variable(_STEP, INT)
        last = c.apply(ops.MIN, c.apply(ops.ADD, first, c.whole(BLOCK)), stop)
        elements = [writer.values([self._x], (*at, positions.of(step)))[0] for at in places]
        written = writer.written(elements)
        blocks = [c.variable(f"block{k}", self._x.element) for k in range(len(places))]
        writer.local_types |= {name.name: name.type for name in (first, step, *blocks)}
        adds = tuple(map(_plus, blocks, written.values))
        inner = nodes.For(
            variable=_STEP, start=first, stop=last, step=c.whole(1), body=(*written.body, *adds)
        )
        body = (
            *map(_zeroed, blocks),
            inner,
            *(_summed(sums, k, block) for k, block in enumerate(blocks)),
        )
        return nodes.For(variable=_FIRST, start=start, stop=stop, step=c.whole(BLOCK), body=body)

    # -- the sum of the parts --------------------------------------------------------------

    def _added(self, writer: Writer) -> list[Stmt]:
        total, step = c.variable(_TOTAL, self._x.element), c.variable(_STEP, INT)
        writer.local_types |= {total.name: total.type, step.name: step.type}
        at = (writer.positions.of(step), *writer.own)
        (value,) = writer.values([self._parts], at)
        count = writer.positions.size(self._part_count)
        loop = nodes.For(
            variable=_STEP,
            start=c.whole(0),
            stop=count,
            step=c.whole(1),
            body=(_plus(total, value),),
        )
        written = self._finished(writer, writer.own, total, "t")
        store = Store(buffer=_RESULT, indices=writer.index(), value=written.values[0])
        return [_zeroed(total), loop, *written.body, store]


def _parts(tile_count: Size, length: Size) -> Size:
    """The number of parts into which sums of `length` elements are cut."""
    wanted = sizes.floor_divide(ENOUGH_THREADS, sizes.maximum(1, tile_count))
    possible = sizes.minimum(MOST_PARTS, sizes.floor_divide(length, SHORTEST_PART))
    return sizes.maximum(1, sizes.minimum(wanted, possible))


def _zeroed(total: nodes.Var) -> Stmt:
    return Assign(name=total.name, value=c.zero(total.type))


def _plus(total: nodes.Var, value: Expr) -> Stmt:
    return Assign(name=total.name, value=c.apply(ops.ADD, total, value))


def _summed(sums: nodes.Var, number: int, block: nodes.Var) -> Stmt:
    """Adds a block to the sum with this number."""
    index = c.whole(number)
    total = nodes.Element(type=block.type, value=sums, index=index)
    value = c.apply(ops.ADD, total, block)
    return Assign(name=sums.name, path=(nodes.ElementStep(index=index),), value=value)


def _store(buffer: str, indices: tuple[Expr, ...], value: Expr) -> Stmt:
    return Store(buffer=buffer, indices=indices, value=value, is_unique=True)
