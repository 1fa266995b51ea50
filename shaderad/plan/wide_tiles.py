"""Sums over tiles whose threads load four elements at once, for sizes that allow it.

A thread takes 8 or 16 adjacent rows, 4 adjacent columns, and 4 elements of the sum at a time. Each
load goes along the axis whose elements lie side by side in memory: that of the sum, or its own.
Where the sum has no whole fours of elements, a thread takes one of these at a time, which is one
load of a read along the sum. The threads of a team lie along columns, so they need the same
elements of rows: each of them loads a part, and reads the others across the wave. Invariant: where
`WideTiles.multiples_by_steps` are multiples of 4, so are the numbers of the elements at which loads
of four start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, LocalArray
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import PlanKernel, Writer
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.steps import WideTiles
from shaderad.plan.tile_kernels import BLOCK, SUMS, Tiles, plus, summed, zeroed
from shaderad.plan.vector_reads import (
    COLUMN,
    ROW,
    STEP,
    WIDTH,
    NotWide,
    VectorRead,
    quartered,
    quartered_position,
    vector_read,
)
from shaderad.plan.wide_stores import WideStores
from shaderad.rules import composing as c
from shaderad.rules.expressions import in_order, substitute, variables

ROWS_A_LANE = 2
"""Rows of a tile for each thread of a team, which loads two vectors of each read of rows."""


def wide_tiles_of(tiles: Tiles) -> WideTiles | None:
    """The kernels that compute what `tiles` does with loads of four; `None` without one."""
    wide, x = _Tiles(tiles, team=1, steps=WIDTH, has_wide_stores=False), tiles.x
    try:
        reads = wide.reads()
    except NotWide:
        return None
    across = [read for read in reads if not read.is_along_sum]
    multiples = [size for read in across for size in read.multiples]
    multiples += [x.shape[wide.rows if read.row != 0 else wide.columns] for read in across]
    by_steps = {WIDTH: [x.shape[-1], *multiples, *(m for read in reads for m in read.multiples)]}
    if all(read.row == 0 for read in across):
        by_steps[1] = multiples
    multiples_by_steps = {
        steps: tuple(dict.fromkeys(size for size in multiples if not isinstance(size, int)))
        for steps, multiples in by_steps.items()
        if not any(isinstance(size, int) and size % WIDTH for size in multiples)
    }
    if not multiples_by_steps:
        return None
    stored = wide.stored_reads()
    stored_multiples = [x.shape[wide.columns], *(m for read in stored for m in read.multiples)]

    @cache
    def work(team: int, steps: int, has_wide_stores: bool) -> PlanKernel:
        kernel = _Tiles(tiles, team=team, steps=steps, has_wide_stores=has_wide_stores)
        return kernel.kernel("wide_tiles")

    # Threads of a team are adjacent along the last axis.
    is_last = all(extent == 1 for extent in x.shape[wide.columns + 1 : -1])
    return WideTiles(
        multiples_by_steps=multiples_by_steps,
        stored_multiples=tuple(dict.fromkeys(stored_multiples)),
        rows=x.shape[wide.rows] if wide.rows >= 0 else 1,
        columns=x.shape[wide.columns],
        vectors=tuple(dict.fromkeys(read.value for read in (*reads, *stored))),
        work=work,
        may_share=is_last and any(read.row != 0 for read in reads),
    )


class _Tiles(Tiles):
    """The kernel.

    Args:
        tiles: The kernel for all sizes.
        team: How many threads share what they read; 1 for none.
        steps: The elements of the sum that a thread takes at a time, 4 or 1.
        has_wide_stores: True if `WideTiles.stored_multiples` are multiples of 4.
    """

    def __init__(self, tiles: Tiles, *, team: int, steps: int, has_wide_stores: bool) -> None:
        super().__init__(tiles.node, tiles.result, tiles.is_stored, tiles.size_by_axis)
        self.team, self.steps, self.has_wide_stores = team, steps, has_wide_stores
        *rows, self.columns = self.size_by_axis
        (self.rows,) = rows or [-1]
        """The axis of rows; -1 for tiles of columns."""
        self.part_count, self.parts = tiles.part_count, tiles.parts
        self.size_by_axis = {
            axis: -(-size // WIDTH) * WIDTH for axis, size in self.size_by_axis.items()
        }
        if team > WIDTH:
            self.size_by_axis[self.rows] = ROWS_A_LANE * team
        self.row_count = self.size_by_axis.get(self.rows, 1)
        counts = [
            sizes.divide_up(extent, self.size_by_axis.get(axis, 1))
            for axis, extent in enumerate(self.x.shape[:-1])
        ]
        teams = sizes.divide_up(counts[self.columns], team)
        counts[self.columns] = sizes.multiply(team, teams)
        self.tiles = tuple(counts)

    def step_of(self, axis: int, tile: Position, step: Position) -> Position:
        return add(times(tile, self.size_by_axis[axis]), step)

    def is_whole(self, axis: int) -> bool:
        extent, size = self.x.shape[axis], self.size_by_axis.get(axis, 1)
        size *= self.team if axis == self.columns else 1
        return isinstance(extent, int) and extent % size == 0

    def reads(self) -> list[VectorRead]:
        """The reads of an element.

        Raises:
            NotWide: One that does not come by four.
        """
        writer = self._trial()
        return self.element(writer, writer.own[1:])[1]

    def stored_reads(self) -> Sequence[VectorRead]:
        """The reads by four of what becomes of the sum."""
        writer = self._trial()
        return self._wide_stores(writer, writer.own[1:]).reads

    def _trial(self) -> Writer:
        return Writer((self.part_count, *self.tiles), self.has_memory, None)

    def _wide_stores(self, writer: Writer, tile: Sequence[Position]) -> WideStores:
        return WideStores(self, (self.rows, self.columns), writer, tile)

    def stores(
        self, writer: Writer, part: Position, tile: Sequence[Position], sums: nodes.Var
    ) -> Stmt:
        if not self.has_wide_stores:
            return super().stores(writer, part, tile, sums)
        return self._wide_stores(writer, tile).stores(part, sums)

    def element(self, writer: Writer, tile: Sequence[Position]) -> tuple[Expr, list[VectorRead]]:
        """An element of the sum, in which reads and positions are variables."""
        found: dict[tuple[Value, Indices], VectorRead] = {}
        bases = [writer.positions.of(c.variable(name, INT)) for name in (ROW, COLUMN, STEP)]
        at = [*tile, bases[2]]
        at[self.columns] = bases[1]
        if self.row_count > 1:
            at[self.rows] = bases[0]

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            if view is None and sizes.product(value.shape) == 1:
                return writer.read(value, at)
            if view is not None or value.element != FLOAT:
                raise NotWide
            key, name = (value, at), f"read{len(found)}"
            one = vector_read(name, value, number(at, value.shape), bases)
            if one.step == 0 or (one.row != 0 and one.column != 0):
                raise NotWide
            found.setdefault(key, one)
            rest = writer.positions.expr(found[key].rest)
            if not variables(rest).isdisjoint((ROW, COLUMN, STEP)):
                raise NotWide
            return c.variable(found[key].name, FLOAT)

        element = Elements(writer.positions, self.has_memory, read).at(self.x, tuple(at))
        # What a choice reads may lie outside of the array where another side is taken.
        has_choice = any(isinstance(part, nodes.Conditional) for part in in_order(element))
        if self.x.element != FLOAT or not found or has_choice:
            raise NotWide
        return element, [*found.values()]

    def tile(self, writer: Writer) -> list[Stmt]:
        body: list[Stmt] = []
        part, *tile = (self.named(writer, axis, at, body) for axis, at in enumerate(writer.own))
        sums = c.variable(SUMS, LocalArray(FLOAT, self.row_count * WIDTH))
        writer.local_types[sums.name] = sums.type
        body.append(Assign(name=sums.name, value=nodes.Zero(type=sums.type)))
        steps = _TileSteps(self, writer, tile, body)
        body.append(self._over_steps(writer, part, steps, sums))
        return [*body, self.stores(writer, part, tile, sums)]

    def _over_steps(
        self, writer: Writer, part: Position, steps: _TileSteps, sums: nodes.Var
    ) -> Stmt:
        """Adds the elements of one part to the sums."""
        positions, count = writer.positions, sizes.floor_divide(self.count, self.steps)
        length = sizes.divide_up(count, self.part_count)
        start, block = times(part, length), c.whole(BLOCK // self.steps)
        end = positions.expr(add(start, constant(length)))
        stop = c.apply(ops.MIN, end, positions.size(count))
        first = c.variable("first", INT)
        own = c.variable("quarter" if self.steps == WIDTH else "term", INT)
        last = c.apply(ops.MIN, c.apply(ops.ADD, first, block), stop)
        totals = [c.variable(f"block{k}", FLOAT) for k in range(self.row_count * WIDTH)]
        writer.local_types |= {name.name: name.type for name in (first, own, *totals)}
        added = tuple(steps.added(positions.of(own), totals))
        inner = nodes.For(variable=own.name, start=first, stop=last, step=c.whole(1), body=added)
        after = (summed(sums, k, total) for k, total in enumerate(totals))
        body = (*map(zeroed, totals), inner, *after)
        return nodes.For(
            variable=first.name, start=positions.expr(start), stop=stop, step=block, body=body
        )


@dataclass(frozen=True)
class _Place:
    """A position along an axis, ``4 * quarter + offset``."""

    quarter: Position = Position()  # noqa: RUF009, a constant
    offset: Position = Position()  # noqa: RUF009, a constant

    def quarter_of(self, factor: Size) -> Position:
        """A quarter of its product with `factor`; that is a multiple of 4 if there is an offset."""
        return add(times(self.quarter, factor), times(self.offset, quartered(factor)))


_START = _Place()


class _TileSteps:
    """The statements that add four elements to each sum of a tile.

    Args:
        tiles: The kernel.
        writer: Of its statements.
        tile: Where the thread is.
        body: What precedes the loop.
    """

    def __init__(
        self, tiles: _Tiles, writer: Writer, tile: Sequence[Position], body: list[Stmt]
    ) -> None:
        self._tiles, self._writer, self._tile, self._body = tiles, writer, tile, body
        self._element, self._reads = tiles.element(writer, tile)
        self._loaded: dict[tuple[str, int, int], Expr] = {}
        """The vectors of each read, by its name and the elements of the sum: see `_loads`."""
        has_rows = any(read.row != 0 for read in self._reads)
        self._team = tiles.team if has_rows else 1
        self._lane = self._low_lane = self._high_lane = Position()
        """The lane in a team, its remainder by 4 and its quarter."""
        if self._team > 1:
            lane = nodes.TeamLane(type=INT, size=self._team)
            self._lane = self._low_lane = writer.positions.of(self._local("lane", lane))
        if self._team > WIDTH:
            self._low_lane = self._part_of_lane("low", ops.MOD)
            self._high_lane = self._part_of_lane("high", ops.FLOOR_DIV)
        self._places = {read.name: self._places_of(read) for read in self._reads}

    def _part_of_lane(self, name: str, op: ops.Op) -> Position:
        lane = self._writer.positions.expr(self._lane)
        return self._writer.positions.of(self._local(name, c.apply(op, lane, c.whole(WIDTH))))

    def _local(self, name: str, value: Expr) -> nodes.Var:
        """A local that is computed before the loop."""
        self._writer.local_types[name] = value.type
        self._body.append(Assign(name=name, value=value))
        return c.variable(name, value.type)

    def _inside(self, name: str, at: Position, extent: Size, axis: int) -> Position:
        """A position along an axis, the last one in place of those beyond it."""
        if self._tiles.is_whole(axis):
            return at
        positions = self._writer.positions
        last = positions.expr(constant(sizes.subtract(extent, 1)))
        return positions.of(self._local(name, c.apply(ops.MIN, positions.expr(at), last)))

    def _places_of(self, read: VectorRead) -> list[_Place]:
        """Where the loads of a step lie along the axis of rows or columns."""
        if read.row == 0 and read.column == 0:
            return [_START]
        axis = self._tiles.rows if read.row != 0 else self._tiles.columns
        extent, size = self._tiles.x.shape[axis], self._tiles.size_by_axis[axis]
        first, name = times(self._tile[axis], size // WIDTH), f"{read.name}_at"
        team, is_shared = self._team, self._is_shared(read)
        if not read.is_along_sum:
            first = add(first, self._high_lane) if is_shared else first
            quarters = quartered(extent)
            step = max(1, team // WIDTH) if is_shared else 1
            return [
                _Place(self._inside(f"{name}{k}", add(first, constant(k)), quarters, axis))
                for k in range(0, size // WIDTH, step)
            ]
        start = add(times(first, WIDTH), self._lane if is_shared else Position())
        return [
            _Place(offset=self._inside(f"{name}{k}", add(start, constant(k)), extent, axis))
            for k in range(0, size, team if is_shared else 1)
        ]

    def _is_shared(self, read: VectorRead) -> bool:
        """True if the threads of a team need the same elements."""
        return self._team > 1 and read.row != 0

    # -- statements ------------------------------------------------------------------------

    def added(self, own: Position, totals: Sequence[nodes.Var]) -> Iterator[Stmt]:
        """Adds the elements from ``steps * own`` on to `totals`."""
        steps = self._tiles.steps
        for read in self._reads:
            if steps == 1:
                yield from self._loads(read, _Place(offset=own))
            elif read.is_along_sum:
                yield from self._loads(read, _Place(own))
            elif self._is_shared(read):
                yield from self._loads(read, _Place(own, self._low_lane))
            else:
                for step in range(steps):
                    yield from self._loads(read, _Place(own, constant(step)), step)
        # Row by row: a row's elements of the sum meet totals that are in registers.
        tile = [*product(range(self._tiles.row_count), range(WIDTH), range(steps))]
        first = times(own, steps)
        written = self._writer.written([self._element_at(first, *at) for at in tile])
        for (row, column, _), (statements, value) in zip(tile, written.in_turn(), strict=True):
            yield from statements
            yield plus(totals[row * WIDTH + column], value)

    def _loads(self, read: VectorRead, step: _Place, number: int = 0) -> Iterator[Stmt]:
        """Loads what a read takes for one element of the sum, by its number, or for all."""
        for k, place in enumerate(self._places[read.name]):
            name = f"{read.name}_{k}" if number == 0 else f"{read.name}_{k}_{number}"
            load = self._load(read, step, place)
            self._writer.local_types[name] = load.type
            self._loaded[read.name, k, number] = c.variable(name, load.type)
            yield Assign(name=name, value=load)

    def _load(self, read: VectorRead, step: _Place, place: _Place) -> Expr:
        factor = read.row or read.column
        if self._is_single(read):
            at = add(times(step.offset, read.step), times(place.offset, factor))
            return self._writer.read_number(read.value, add(at, read.rest))
        at = add(step.quarter_of(read.step), place.quarter_of(factor))
        return self._writer.read_vector(read.value, add(at, quartered_position(read.rest)))

    def _is_single(self, read: VectorRead) -> bool:
        """True if loads are of one element."""
        return self._tiles.steps == 1 and read.is_along_sum

    def _element_at(self, first: Position, row: int, column: int, step: int) -> Expr:
        positions, tiles = self._writer.positions, self._tiles
        at = add(first, constant(step))
        parts = {STEP: positions.expr(at)}
        for name, axis, k in ((ROW, tiles.rows, row), (COLUMN, tiles.columns, column)):
            if axis in tiles.size_by_axis:
                parts[name] = positions.expr(tiles.step_of(axis, self._tile[axis], constant(k)))
        for read in self._reads:
            own = row if read.row != 0 else column if read.column != 0 else 0
            parts[read.name] = self._part(read, own, step)
        return substitute(self._element, parts)

    def _part(self, read: VectorRead, own: int, step: int) -> Expr:
        """The element of a read in row or column `own` of the tile."""
        if self._is_shared(read):
            team = self._team
            vector = self._loaded[read.name, own // team, 0]
            position, lane = step, own % team
            if not read.is_along_sum:
                position, lane = own % WIDTH, own % team // WIDTH * WIDTH + step
            shared = vector if self._is_single(read) else c.component(vector, position)
            return nodes.OfTeam(type=FLOAT, value=shared, lane=lane, size=team)
        if self._is_single(read):
            return self._loaded[read.name, own, 0]
        if read.is_along_sum:
            return c.component(self._loaded[read.name, own, 0], step)
        return c.component(self._loaded[read.name, own // WIDTH, step], own % WIDTH)
