"""The stores of tiles whose columns come by four: see `wide_tiles.py`.

What becomes of a sum may read other values. Four adjacent elements of these are loaded at once,
before the loop over rows where all rows read the same. Invariant: where
`WideTiles.stored_multiples` are multiples of 4, so are the numbers of the elements at which loads
start, and all four columns of a tile are results, or none is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order, substitute
from shaderad.ir.nodes import Assign, Expr, For, Stmt
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, Writer
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.tile_kernels import PART, RESULT, Tiles, store
from shaderad.plan.vector_reads import (
    COLUMN,
    ROW,
    STEP,
    NotWide,
    VectorRead,
    quartered,
    quartered_position,
    vector_read,
)

_TOTAL = "total"


class WideStores:
    """The statements that store the results of a tile.

    Args:
        tiles: The kernel.
        axes: Those of rows, -1 for none, and of columns.
        writer: Of its statements.
        tile: Where the thread is.
    """

    def __init__(
        self, tiles: Tiles, axes: tuple[int, int], writer: Writer, tile: Sequence[Position]
    ) -> None:
        self._tiles, self._writer, self._tile = tiles, writer, tile
        self._rows, self._columns = axes
        self._are_adjacent = all(extent == 1 for extent in tiles.x.shape[self._columns + 1 : -1])
        """True if the four results of a row lie side by side."""
        self._bases = [writer.positions.of(c.variable(n, INT)) for n in (ROW, COLUMN, STEP)]
        self._read_by_key: dict[tuple[Value, Indices], VectorRead] = {}
        self._vector_by_name: dict[str, Expr] = {}
        self._result = self._result_by(self._read)
        # What a choice reads may lie outside of the array where another side is taken.
        if any(isinstance(part, nodes.Conditional) for part in in_order(self._result)):
            self._read_by_key = {}
            self._result = self._result_by(writer.read)

    # -- what is stored of a sum, in which reads and positions are variables ----------------

    @property
    def reads(self) -> Sequence[VectorRead]:
        """The reads by four."""
        return [*self._read_by_key.values()]

    def _result_by(self, read: Callable[[Value, Indices, View | None], Expr]) -> Expr:
        tiles = self._tiles

        def read_or_total(value: Value, at: Indices, view: View | None) -> Expr:
            is_total = value is tiles.total
            return c.variable(_TOTAL, value.element) if is_total else read(value, at, view)

        elements = Elements(
            self._writer.positions, lambda v: v is tiles.total or tiles.has_memory(v), read_or_total
        )
        row, column, _ = self._bases
        return elements.at(tiles.result, self._at(row, column))

    def _at(self, row: Position, column: Position) -> Indices:
        at = [*self._tile]
        at[self._columns] = column
        if self._rows >= 0:
            at[self._rows] = row
        return tuple(at)

    def _read(self, value: Value, at: Indices, view: View | None) -> Expr:
        key = value, at
        try:
            if view is not None or value.element != FLOAT:
                raise NotWide
            name = f"kept{len(self._read_by_key)}"
            read = vector_read(name, value, number(at, value.shape), self._bases)
            if read.axis != COLUMN:
                raise NotWide
        except NotWide:
            return self._writer.read(value, at, view)
        return c.variable(self._read_by_key.setdefault(key, read).name, FLOAT)

    # -- statements ------------------------------------------------------------------------

    def stores(self, part: Position, sums: nodes.Var) -> Sequence[Stmt]:
        """Stores the sums, or what becomes of them, in a loop over rows."""
        positions, step = self._writer.positions, c.variable("step", INT)
        before = self._loads(Position(), of_rows=False)
        if self._rows < 0:
            body = self._of_row(part, sums, Position())
        else:
            self._writer.local_types[step.name] = INT
            count = c.whole(self._tiles.size_by_axis[self._rows])
            row = tuple(self._of_row(part, sums, positions.of(step)))
            body = [
                For(variable=step.name, start=c.whole(0), stop=count, step=c.whole(1), body=row)
            ]
        return self._where_columns_are_inside([*before, *body])

    def row_by_row(self, totals: Sequence[nodes.Var]) -> Sequence[Stmt]:
        """Stores the results of sums of one part; `totals` are local variables, row by row."""
        body = self._loads(Position(), of_rows=False)
        for step in range(len(totals) // WIDTH):
            row = constant(step)
            if self._rows >= 0:
                row = self._tiles.step_of(self._rows, self._tile[self._rows], row)
            results = self._results(row, totals[WIDTH * step : WIDTH * (step + 1)], f"t{step}_")
            body += results if self._rows < 0 else self._where_row_is_inside(row, results)
        return self._where_columns_are_inside(body)

    def _of_row(self, part: Position, sums: nodes.Var, step: Position) -> Sequence[Stmt]:
        """Stores the four results of one row of the tile."""
        tiles, writer = self._tiles, self._writer
        row = step
        if self._rows >= 0:
            row = tiles.step_of(self._rows, self._tile[self._rows], step)
        totals = [c.variable(f"{_TOTAL}{k}", tiles.x.element) for k in range(WIDTH)]
        writer.local_types |= {total.name: total.type for total in totals}
        body: list[Stmt] = [
            Assign(name=total.name, value=self._sum(sums, add(times(step, WIDTH), constant(k))))
            for k, total in enumerate(totals)
        ]
        results = self._results(row, totals, "t_")
        if tiles.has_parts:
            parts = [*self._stores(PART, tiles.parts, (part,), row, totals)]
            body.append(tiles.parts_or_results(writer, parts, results))
        else:
            body += results
        return body if self._rows < 0 else self._where_row_is_inside(row, body)

    def _where_row_is_inside(self, row: Position, body: Sequence[Stmt]) -> Sequence[Stmt]:
        """Does `body` where a row is one of the results."""
        return self._tiles.inside(self._writer, self._rows, row, body)

    def _where_columns_are_inside(self, body: Sequence[Stmt]) -> Sequence[Stmt]:
        """Does `body` where the columns are results: all four, or none."""
        return self._tiles.inside(self._writer, self._columns, self._column(0), body)

    def _results(self, row: Position, totals: Sequence[nodes.Var], prefix: str) -> list[Stmt]:
        """Stores what becomes of the sums of one row."""
        loads = self._loads(row, of_rows=True)
        results = [self._finished(row, k, total) for k, total in enumerate(totals)]
        written = self._writer.written(results, prefix)
        stores = self._stores(RESULT, self._tiles.result, (), row, written.values)
        return [*loads, *written.body, *stores]

    def _stores(
        self, name: str, array: Value, before: Indices, row: Position, values: Sequence[Expr]
    ) -> Iterator[Stmt]:
        """Stores what belongs to one row in `array`, at once where it is four adjacent floats.

        `before` are the indices before those of the row.
        """
        if array.element != FLOAT or not self._are_adjacent:
            for k, value in enumerate(values):
                at = (*before, *self._at(row, self._column(k)))
                yield store(name, self._writer.indices_in(array, at), value)
            return
        column, shape = len(before) + self._columns, [*array.shape]
        shape[column] = quartered(shape[column])
        at = (*before, *self._at(row, self._tile[self._columns]))
        yield self._writer.store_vector(name, number(at, (*shape,)), values)

    def _column(self, k: int) -> Position:
        return self._tiles.step_of(self._columns, self._tile[self._columns], constant(k))

    def _sum(self, sums: nodes.Var, at: Position) -> Expr:
        place = self._writer.positions.expr(at)
        index = nodes.KnownNumber(type=INT, number=place, is_inside=True)
        return nodes.Element(type=self._tiles.x.element, value=sums, index=index)

    def _loads(self, row: Position, *, of_rows: bool) -> list[Stmt]:
        """Loads what each row reads anew, or what all read."""
        return [self._load(read, row) for read in self.reads if (read.row != 0) is of_rows]

    def _load(self, read: VectorRead, row: Position) -> Stmt:
        at = add(times(row, quartered(read.row)), self._tile[self._columns])
        load = self._writer.read_vector(read.value, add(at, quartered_position(read.rest)))
        name = f"{read.name}_four"
        self._writer.local_types[name] = load.type
        self._vector_by_name[read.name] = c.variable(name, load.type)
        return Assign(name=name, value=load)

    def _finished(self, row: Position, k: int, total: Expr) -> Expr:
        """The result in column `k` of the tile, whose sum is `total`."""
        positions = self._writer.positions
        parts = {name: c.component(v, k) for name, v in self._vector_by_name.items()}
        parts |= {_TOTAL: total, ROW: positions.expr(row)}
        return substitute(self._result, parts | {COLUMN: positions.expr(self._column(k))})
