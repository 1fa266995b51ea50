"""The kernels over tiles of one sum: one adds elements in registers, one adds sums of parts.

The rows of tile ``i`` of ``I`` are ``i``, ``i + I``, ``i + 2 I``, ...: adjacent threads read and
store adjacent elements. Where the tiles alone would keep few threads busy, sums are cut into parts,
which a second kernel adds in order. The kernels of a product ``sum_k x[m, k] * y[k, n]`` may also
compute sums along its columns of what it reads, such as ``sum_k y[k, n]``: those of the parts lie
behind the last row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt, Store
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Access, LocalArray
from shaderad.plan.discarded import without_test
from shaderad.plan.kernels import IsStored, PlanKernel, Writer, write_kernel
from shaderad.plan.positions import (
    RANK_LIMIT,
    Indices,
    Position,
    add,
    constant,
    times,
)
from shaderad.plan.statements import Written
from shaderad.plan.steps import NarrowTiles, RunTiles

SHORTESTPART = 256
"""Elements of a part."""
MOSTPARTS = 256
"""A thread adds them one after the other."""
BLOCK = 64
"""Elements that are added to 0 before their sum is added to the others."""
PART, RESULT, COLUMN_SUM = "part", "y0", "y1"
"""Arrays of the sums of parts, of the results, and of the sums along columns."""
_FIRST, _STEP, SUMS, _TOTAL = "first", "step", "sums", "total"


class Tiles:
    """The kernels of one sum.

    Args:
        node: The sum.
        result: What is stored: the sum, or an elementwise function of it.
        is_stored: True for values that have memory.
        size_by_axis: The size of a tile along each of its axes, in their order.
        shape: How work is laid out over threads.
        column_sum: A sum along the columns of what elements of `node` read, if there is one.
    """

    def __init__(
        self,
        node: arrays.Reduce,
        result: Value,
        is_stored: IsStored,
        size_by_axis: Mapping[int, int],
        shape: LaunchShape,
        column_sum: arrays.Reduce | None = None,
    ) -> None:
        (x,) = node.operands
        self.node, self.shape, self.column_sum = node, shape, column_sum
        self.total, self.x, self.result, self.is_stored = node.result, x, result, is_stored
        rows, self.count = x.shape[:-1], x.shape[-1]
        self.size_by_axis = {
            axis: max(1, min(size, extent)) if isinstance(extent := rows[axis], int) else size
            for axis, size in size_by_axis.items()
        }
        self.tiles: Shape = tuple(
            sizes.divide_up(extent, self.size_by_axis.get(axis, 1))
            for axis, extent in enumerate(rows)
        )
        self.part_count, self.has_parts = self._parts(), True
        self._are_several = sizes.minimum(1, sizes.subtract(self.part_count, 1))
        first = sizes.multiply(self._row_count, self._are_several)
        self.parts = Value(ArrayType(x.element, (self.part_count, first, *rows[1:])))
        """The sum of each part; empty where there is one part a result."""

    @property
    def _row_count(self) -> Size:
        """The extent of the first axis of the sums of a part."""
        rows = self.x.shape[0]
        return rows if self.column_sum is None else sizes.add(rows, 1)

    def _parts(self) -> Size:
        """The number of parts into which sums are cut."""
        length, tile_count, shape = self.count, sizes.product(self.tiles), self.shape
        busy = sizes.floor_divide(shape.enough_threads, sizes.maximum(1, tile_count))
        wanted = sizes.minimum(busy, sizes.floor_divide(length, SHORTESTPART))
        if len(self.size_by_axis) == 1:
            # Columns share nothing: memory limits these sums.
            (column,) = self.size_by_axis
            elements = sizes.multiply(self.x.shape[column], length)
            streams = sizes.floor_divide(elements, shape.stream)
            streams = sizes.minimum(streams, sizes.floor_divide(length, shape.shortest_stream))
            wanted = sizes.maximum(wanted, streams)
        return sizes.maximum(1, sizes.minimum(wanted, MOSTPARTS))

    def run(self) -> RunTiles:
        shape = (self._row_count, *self.result.shape[1:])
        outputs = self._results()
        work = write_kernel("sum_of_parts", shape, self.has_memory, self._added, outputs)
        # Nothing runs where the first kernel stores the results.
        runs = self._are_several
        if self.column_sum is not None:
            has_rows = sizes.minimum(1, self.x.shape[0])
            runs = sizes.maximum(runs, sizes.subtract(1, has_rows))
        dim = (sizes.multiply(work.dim[0], runs), *work.dim[1:])
        added = replace(work, dim=dim)
        return RunTiles(self.total, self.kernel("tiles"), self.parts, added, self._narrow())

    def _narrow(self) -> NarrowTiles:
        @cache
        def work(tile: tuple[int, ...]) -> PlanKernel:
            size_by_axis = dict(zip(self.size_by_axis, tile, strict=True))
            other = Tiles(
                self.node, self.result, self.is_stored, size_by_axis, self.shape, self.column_sum
            )
            other.part_count, other.parts = self.part_count, self.parts
            return other.kernel("narrow_tiles")

        extents = tuple(self.x.shape[axis] for axis in self.size_by_axis)
        return NarrowTiles(tuple(self.size_by_axis.values()), extents, work)

    def kernel(self, name: str) -> PlanKernel:
        """The kernel that computes the sums, or those of their parts."""
        shape = (self.part_count, *self.tiles)
        return write_kernel(name, shape, self.has_memory, self.tile, self.outputs())

    def outputs(self) -> list[tuple[str, Value, Access]]:
        """The arrays that this kernel writes."""
        parts = [(PART, self.parts, Access.OUT)] if self.has_parts else []
        return [*self._results(), *parts]

    def _results(self) -> list[tuple[str, Value, Access]]:
        result = (RESULT, self.result, Access.OUT)
        if self.column_sum is None:
            return [result]
        return [result, (COLUMN_SUM, self.column_sum.result, Access.OUT)]

    def has_memory(self, value: Value) -> bool:
        is_own = value in (self.total, self.result)
        return value is self.parts or (not is_own and self.is_stored(value))

    def _finished(self, writer: Writer, at: Indices, total: Expr, prefix: str) -> Written:
        """Computes the result at `at` from its sum."""
        writer.bind(self.total, lambda _, __: total)
        return writer.written(writer.values([self.result], at), prefix)

    # -- the sums of a tile ----------------------------------------------------------------

    def tile(self, writer: Writer) -> list[Stmt]:
        body: list[Stmt] = []
        part, *tile = (self.named(writer, axis, at, body) for axis, at in enumerate(writer.own))
        along = [self._along(writer, axis, at, body) for axis, at in enumerate(tile)]
        places = [*product(*along)]
        elements = self._elements(writer, places)
        quick = [*map(without_test, elements)]
        beside: list[Expr] = []
        if self.column_sum is not None:
            step = writer.positions.of(c.variable(_STEP, INT))
            (y,) = self.column_sum.operands
            beside = [writer.values([y], (at, step))[0] for at in along[-1]]
        sums = c.variable(SUMS, LocalArray(self.x.element, len(places) + len(beside)))
        writer.local_types[sums.name] = sums.type
        body.append(Assign(name=sums.name, value=nodes.Zero(type=sums.type)))
        body.append(self._loop(writer, part, [*quick, *beside], sums))
        if any(one is not other for one, other in zip(quick, elements, strict=True)):
            checks, is_nan = self.any_is_nan(writer, parts_of(sums))
            tested = self.tested_sums(writer, part, tile, sums)
            body += [*checks, If(condition=is_nan, then=(tested,), otherwise=())]
        body += self.column_stores(writer, part, tile, parts_of(sums)[len(places) :])
        return [*body, *self.stores(writer, part, tile, sums)]

    def _elements(self, writer: Writer, places: Sequence[Indices]) -> list[Expr]:
        """The elements of the sums at `places`, by the variable of the step."""
        step = writer.positions.of(c.variable(_STEP, INT))
        return [self.element_at(writer, (*at, step)) for at in places]

    def element_at(self, writer: Writer, at: Indices) -> Expr:
        return writer.values([self.x], at)[0]

    def named(self, writer: Writer, axis: int, at: Position, body: list[Stmt]) -> Position:
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
        positions, extent = writer.positions, self.x.shape[axis]
        last = positions.expr(constant(sizes.subtract(extent, 1)))
        along = [tile]
        for k in range(1, self.size_by_axis.get(axis, 1)):
            at = add(tile, constant(sizes.multiply(k, self.tiles[axis])))
            if not self.is_whole(axis):
                index = c.variable(f"at{axis}_{k}", INT)
                writer.local_types[index.name] = INT
                clamped = c.apply(ops.MIN, positions.expr(at), last)
                body.append(Assign(name=index.name, value=clamped))
                at = positions.of(index)
            along.append(at)
        return along

    def step_of(self, axis: int, tile: Position, step: Position) -> Position:
        """The position of a result of a tile, which may lie beyond the last one."""
        return add(tile, times(step, self.tiles[axis]))

    def is_whole(self, axis: int) -> bool:
        """True if all tiles lie inside of the results along `axis`, whatever their sizes."""
        extent = self.x.shape[axis]
        return isinstance(extent, int) and extent % self.size_by_axis.get(axis, 1) == 0

    def _over_tile(
        self,
        writer: Writer,
        tile: Sequence[Position],
        inner: Callable[[Indices, Expr], Sequence[Stmt]],
    ) -> Stmt:
        """Loops over the results of a tile; `inner` takes the indices and the number of one."""
        positions = writer.positions
        at, number = [*tile], Position()
        steps = {axis: c.variable(f"step{axis}", INT) for axis in self.size_by_axis}
        for axis, step in steps.items():
            base = positions.of(step)
            at[axis] = self.step_of(axis, tile[axis], base)
            number = add(times(number, self.size_by_axis[axis]), base)
        writer.local_types |= {step.name: step.type for step in steps.values()}
        index = nodes.KnownNumber(type=INT, number=positions.expr(number), is_inside=True)
        body = inner(tuple(at), index)
        for axis in steps:
            body = self.inside(writer, axis, at[axis], body)
        for axis, step in reversed(steps.items()):
            size = c.whole(self.size_by_axis[axis])
            body = [nodes.For(variable=step.name, start=c.whole(0), stop=size, step=c.whole(1),
                              body=tuple(body))]  # fmt: skip
        (loop,) = body
        return loop

    @property
    def part_length(self) -> Size:
        """The number of elements of a part; the last ones may have fewer."""
        return sizes.divide_up(self.count, self.part_count)

    def stores(
        self, writer: Writer, part: Position, tile: Sequence[Position], sums: nodes.Var
    ) -> Sequence[Stmt]:
        """Stores the sums, or what becomes of them, in loops over the tile."""
        total = c.variable(_TOTAL, self.x.element)
        writer.local_types[total.name] = total.type

        def stored(at: Indices, index: Expr) -> list[Stmt]:
            written = self._finished(writer, at, total, "t_")
            of_part = writer.indices_in(self.parts, (part, *at))
            result = store(RESULT, writer.indices_in(self.result, at), written.values[0])
            choice = self.parts_or_results(
                writer, [store(PART, of_part, total)], [*written.body, result]
            )
            element = nodes.Element(type=total.type, value=sums, index=index)
            return [Assign(name=total.name, value=element), choice]

        return [self._over_tile(writer, tile, stored)]

    def parts_or_results(
        self, writer: Writer, parts: Sequence[Stmt], results: Sequence[Stmt]
    ) -> Stmt:
        """Does `parts` where sums are cut into several, else `results`."""
        are_several = c.apply(ops.GT, writer.positions.size(self.part_count), c.whole(1))
        return If(condition=are_several, then=tuple(parts), otherwise=tuple(results))

    def column_stores(
        self, writer: Writer, part: Position, tile: Sequence[Position], totals: Sequence[Expr]
    ) -> Iterator[Stmt]:
        """Stores the sums along the columns of a tile, in the first tile of each column."""
        if self.column_sum is None:
            return
        positions, (row, column) = writer.positions, tile
        result = self.column_sum.result
        body = self.stores_along_columns(writer, COLUMN_SUM, result, (), column, totals)
        if self.has_parts:
            before = (part, constant(self.x.shape[0]))
            parts = self.stores_along_columns(writer, PART, self.parts, before, column, totals)
            body = [self.parts_or_results(writer, parts, body)]
        is_first = c.apply(ops.EQ, positions.expr(row), c.whole(0))
        yield If(condition=is_first, then=tuple(body), otherwise=())

    def stores_along_columns(
        self,
        writer: Writer,
        name: str,
        array: Value,
        before: Indices,
        column: Position,
        totals: Sequence[Expr],
    ) -> Sequence[Stmt]:
        """Stores one number for each column of a tile.

        `before` are the indices before that of the column, `column` is the tile's.
        """
        places = [self.step_of(1, column, constant(k)) for k in range(len(totals))]
        stores = (
            store(name, writer.indices_in(array, (*before, at)), total)
            for at, total in zip(places, totals, strict=True)
        )
        pairs = zip(places, stores, strict=True)
        return [part for at, one in pairs for part in self.inside(writer, 1, at, [one])]

    def inside(
        self, writer: Writer, axis: int, at: Position, body: Sequence[Stmt]
    ) -> Sequence[Stmt]:
        """Does `body` where `at` lies inside of the results along `axis`."""
        if self.is_whole(axis):
            return body
        extent = writer.positions.size(self.x.shape[axis])
        is_inside = c.apply(ops.LT, writer.positions.expr(at), extent)
        return [If(condition=is_inside, then=tuple(body), otherwise=())]

    def _bounds(self, writer: Writer, part: Position) -> tuple[Expr, Expr]:
        """The first element of a part, and the one behind its last."""
        positions = writer.positions
        start = times(part, self.part_length)
        end = positions.expr(add(start, constant(self.part_length)))
        return positions.expr(start), c.apply(ops.MIN, end, positions.size(self.count))

    def _loop(
        self, writer: Writer, part: Position, elements: Sequence[Expr], sums: nodes.Var
    ) -> Stmt:
        """Adds `elements` of one part to the sums."""
        start, stop = self._bounds(writer, part)
        first, step = c.variable(_FIRST, INT), c.variable(_STEP, INT)
        last = c.apply(ops.MIN, c.apply(ops.ADD, first, c.whole(BLOCK)), stop)
        written = writer.written(elements)
        blocks = [c.variable(f"block{k}", self.x.element) for k in range(len(elements))]
        writer.local_types |= {name.name: name.type for name in (first, step, *blocks)}
        adds = tuple(map(plus, blocks, written.values))
        inner = nodes.For(
            variable=_STEP, start=first, stop=last, step=c.whole(1), body=(*written.body, *adds)
        )
        body = (
            *map(zeroed, blocks),
            inner,
            *(summed(sums, k, block) for k, block in enumerate(blocks)),
        )
        return nodes.For(variable=_FIRST, start=start, stop=stop, step=c.whole(BLOCK), body=body)

    # -- tests for discarded cotangents ----------------------------------------------------
    # Elements are added without their tests. These are in effect where a product is NaN, and then
    # so is its sum.

    def any_is_nan(self, writer: Writer, totals: Sequence[Expr]) -> tuple[list[Stmt], Expr]:
        """Statements, and a condition that holds where one of `totals` is NaN."""
        check = c.variable("check", self.x.element)
        writer.local_types[check.name] = check.type
        return [zeroed(check), *(plus(check, t) for t in totals)], c.apply(ops.ISNAN, check)

    def tested_sums(
        self, writer: Writer, part: Position, tile: Sequence[Position], sums: nodes.Var
    ) -> Stmt:
        """Computes `sums` with all tests, one after the other."""
        start, stop = self._bounds(writer, part)
        total, step = c.variable("tested", self.x.element), c.variable(_STEP, INT)
        writer.local_types |= {total.name: total.type, step.name: step.type}

        def tested(at: Indices, index: Expr) -> list[Stmt]:
            written = writer.written(self._elements(writer, [at]), "tested")
            body = (*written.body, plus(total, written.values[0]))
            loop = nodes.For(variable=_STEP, start=start, stop=stop, step=c.whole(1), body=body)
            path = (nodes.ElementStep(index=index),)
            return [zeroed(total), loop, Assign(name=sums.name, path=path, value=total)]

        return self._over_tile(writer, tile, tested)

    # -- the sum of the parts --------------------------------------------------------------

    def _added(self, writer: Writer) -> list[Stmt]:
        total, step = c.variable(_TOTAL, self.x.element), c.variable(_STEP, INT)
        writer.local_types |= {total.name: total.type, step.name: step.type}
        at = (writer.positions.of(step), *writer.own)
        (value,) = writer.values([self.parts], at)
        count = writer.positions.size(self.part_count)
        loop = _counted(count, [plus(total, value)])
        written = self._finished(writer, writer.own, total, "t")
        indices = writer.indices_in(self.result, writer.own)
        stored = [*written.body, store(RESULT, indices, written.values[0])]
        if self.column_sum is None:
            return [zeroed(total), loop, *stored]
        rows, (row, column) = writer.positions.size(self.x.shape[0]), writer.own
        # Without rows there are no tiles, and no parts.
        (y,) = self.column_sum.operands
        element = writer.written(writer.values([y], (column, at[0])), "u")
        whole = _counted(
            writer.positions.size(self.count), [*element.body, plus(total, element.values[0])]
        )
        has_rows = c.apply(ops.GT, rows, c.whole(0))
        behind = store(COLUMN_SUM, writer.indices_in(self.column_sum.result, (column,)), total)
        is_row = c.apply(ops.LT, writer.positions.expr(row), rows)
        return [
            zeroed(total),
            If(condition=has_rows, then=(loop,), otherwise=(whole,)),
            If(condition=is_row, then=tuple(stored), otherwise=(behind,)),
        ]


def _counted(count: Expr, body: Sequence[Stmt]) -> Stmt:
    """Does `body` for each step below `count`."""
    return nodes.For(
        variable=_STEP, start=c.whole(0), stop=count, step=c.whole(1), body=tuple(body)
    )


def parts_of(sums: nodes.Var) -> list[Expr]:
    assert isinstance(sums.type, LocalArray)
    element, count = sums.type.element, sums.type.count
    return [nodes.Element(type=element, value=sums, index=c.whole(k)) for k in range(count)]


def zeroed(total: nodes.Var) -> Stmt:
    return Assign(name=total.name, value=c.zero(total.type))


def plus(total: nodes.Var, value: Expr) -> Stmt:
    return Assign(name=total.name, value=c.apply(ops.ADD, total, value))


def summed(sums: nodes.Var, number: int, block: nodes.Var) -> Stmt:
    """Adds a block to the sum with this number."""
    index = c.whole(number)
    total = nodes.Element(type=block.type, value=sums, index=index)
    value = c.apply(ops.ADD, total, block)
    return Assign(name=sums.name, path=(nodes.ElementStep(index=index),), value=value)


def store(buffer: str, indices: tuple[Expr, ...], value: Expr) -> Stmt:
    """Stores what no other thread does."""
    return Store(buffer=buffer, indices=indices, value=value, is_unique=True)
