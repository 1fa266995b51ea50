"""Sums over tiles whose threads load four elements at once, for sizes that allow it.

A thread takes 8 or 16 adjacent rows, 4 adjacent columns, and 4 elements of the sum at a time. Each
load goes along the axis whose elements lie side by side in memory: that of the sum, or its own.
Where the sum has no whole fours of elements, a thread takes one of these at a time, which is one
load of a read along the sum. The threads of a team lie along columns, so they need the same
elements of rows, and of what depends on neither: each of them loads a part, and reads the others
across the wave, or from memory of the workgroup where there are no waves. Invariant: where
`WideTiles.multiples_by_steps` are multiples of 4, so are the numbers of the elements at which loads
of four start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order, variables
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, LocalArray
from shaderad.plan.discarded import without_test
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, PlanKernel, Writer
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.steps import GROUPED, WideTiles
from shaderad.plan.tile_kernels import BLOCK, SUMS, Tiles, parts_of, summed, zeroed
from shaderad.plan.vector_reads import (
    COLUMN,
    ROW,
    STEP,
    NotWide,
    VectorRead,
    quartered,
    vector_read,
)
from shaderad.plan.wide_steps import WideSteps
from shaderad.plan.wide_stores import WideStores

GROUP_TEAM = 8
"""Threads of a team that shares through group memory."""
ROWS_PER_LANE = 2
"""Rows of a tile for each thread of a team, which loads two vectors of each read of rows."""


def wide_tiles_of(tiles: Tiles) -> WideTiles | None:
    """The kernels that compute what `tiles` does with loads of four; `None` without one."""
    wide, x = WideKernel(tiles, team=1, steps=WIDTH), tiles.x
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
    def work(kind: int, steps: int, has_wide_stores: bool, is_short: bool) -> PlanKernel:
        is_grouped = kind == GROUPED
        kernel = WideKernel(
            tiles,
            team=GROUP_TEAM if is_grouped else kind,
            steps=steps,
            is_grouped=is_grouped,
            has_wide_stores=has_wide_stores,
            is_short=is_short,
        )
        return kernel.kernel("short_tiles" if is_short else "wide_tiles")

    # Threads of a team are adjacent along the last axis.
    is_last = all(extent == 1 for extent in x.shape[wide.columns + 1 : -1])
    shared = [ROWS_PER_LANE if read.row != 0 else 1 for read in reads if read.column == 0]
    return WideTiles(
        multiples_by_steps=multiples_by_steps,
        stored_multiples=tuple(dict.fromkeys(stored_multiples)),
        rows=x.shape[wide.rows] if wide.rows >= 0 else 1,
        columns=x.shape[wide.columns],
        count=x.shape[-1],
        part_count=tiles.part_count,
        vectors=tuple(dict.fromkeys(read.value for read in (*reads, *stored))),
        work=work,
        shared_vectors=sum(shared) if is_last else 0,
    )


@dataclass(frozen=True)
class WideElement:
    """An element of a sum, in which reads and positions are variables."""

    quick: Expr
    """Without a test for a discarded cotangent."""
    reads: list[VectorRead]
    beside: Expr | None
    """An element of the sum along columns, if there is one."""
    has_test: bool


class WideKernel(Tiles):
    """The kernel.

    Args:
        tiles: The kernel for all sizes.
        team: How many threads share what they read; 1 for none.
        steps: The elements of the sum that a thread takes at a time, 4 or 1.
        is_grouped: True if they do so through group memory, else across the wave.
        has_wide_stores: True if `WideTiles.stored_multiples` are multiples of 4.
        is_short: True if also each sum is one part, which is one block.
    """

    def __init__(
        self,
        tiles: Tiles,
        *,
        team: int,
        steps: int,
        is_grouped: bool = False,
        has_wide_stores: bool = False,
        is_short: bool = False,
    ) -> None:
        super().__init__(
            tiles.node,
            tiles.result,
            tiles.is_stored,
            tiles.size_by_axis,
            tiles.shape,
            tiles.column_sum,
        )
        self.team, self.steps, self.has_wide_stores = team, steps, has_wide_stores
        self.is_grouped, self.has_parts = is_grouped, not is_short
        *rows, self.columns = self.size_by_axis
        (self.rows,) = rows or [-1]
        """The axis of rows; -1 for tiles of columns."""
        self.part_count, self.parts = tiles.part_count, tiles.parts
        self.size_by_axis = {
            axis: -(-size // WIDTH) * WIDTH for axis, size in self.size_by_axis.items()
        }
        if team > WIDTH:
            self.size_by_axis[self.rows] = ROWS_PER_LANE * team
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
        return self.element(writer, writer.own[1:]).reads

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
    ) -> Sequence[Stmt]:
        if not self.has_wide_stores:
            return super().stores(writer, part, tile, sums)
        return self._wide_stores(writer, tile).stores(part, sums)

    def stores_along_columns(
        self,
        writer: Writer,
        name: str,
        array: Value,
        before: Indices,
        column: Position,
        totals: Sequence[Expr],
    ) -> Sequence[Stmt]:
        if not self.has_wide_stores:
            return super().stores_along_columns(writer, name, array, before, column, totals)
        shape = (*array.shape[:-1], quartered(array.shape[-1]))
        stored = writer.store_vector(name, number((*before, column), shape), totals)
        return self.inside(writer, 1, self.step_of(1, column, constant(0)), [stored])

    def element(self, writer: Writer, tile: Sequence[Position]) -> WideElement:
        """An element of the sum.

        Raises:
            NotWide: A read that does not come by four.
        """
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

        elements = Elements(writer.positions, self.has_memory, read)
        element = elements.at(self.x, tuple(at))
        # What a choice reads may lie outside of the array where another side is taken.
        has_choice = any(isinstance(part, nodes.Conditional) for part in in_order(element))
        if self.x.element != FLOAT or not found or has_choice:
            raise NotWide
        quick = without_test(element)
        beside = None
        if self.column_sum is not None:
            (y,) = self.column_sum.operands
            beside = elements.at(y, (bases[1], bases[2]))
        return WideElement(quick, [*found.values()], beside, has_test=quick is not element)

    def element_at(self, writer: Writer, at: Indices) -> Expr:
        """An element of the sum with its tests; reads are components of loads of four."""
        positions = writer.positions

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            if sizes.product(value.shape) == 1:
                return writer.read(value, at, view)
            place = positions.expr(number(at, value.shape))
            quarter = positions.of(c.apply(ops.FLOOR_DIV, place, c.whole(WIDTH)))
            part = c.apply(ops.MOD, place, c.whole(WIDTH))
            index = nodes.KnownNumber(type=INT, number=part, is_inside=True)
            four = writer.read_vector(value, quarter)
            return nodes.Element(type=FLOAT, value=four, index=index)

        return Elements(positions, self.has_memory, read).at(self.x, at)

    def tile(self, writer: Writer) -> list[Stmt]:
        body: list[Stmt] = []
        part, *tile = (self.named(writer, axis, at, body) for axis, at in enumerate(writer.own))
        steps = WideSteps(self, writer, tile, body)
        own_count = self.row_count * WIDTH
        count = own_count if self.column_sum is None else own_count + WIDTH
        totals = [c.variable(f"block{k}", FLOAT) for k in range(count)]
        writer.local_types |= {name.name: name.type for name in totals}
        sums = c.variable(SUMS, LocalArray(FLOAT, len(totals)))
        start = Assign(name=sums.name, value=nodes.Zero(type=sums.type))
        if not self.has_parts:
            body += [*map(zeroed, totals), self._over_all(writer, steps, totals)]
            body += self.column_stores(writer, part, tile, totals[own_count:])
            totals = totals[:own_count]
            stores = self._wide_stores(writer, tile).row_by_row(totals)
            if not steps.has_test:
                return [*body, *stores]
            writer.local_types[sums.name] = sums.type
            checks, is_nan = self.any_is_nan(writer, totals)
            tested = self.tested_sums(writer, part, tile, sums)
            then = (start, tested, *self._wide_stores(writer, tile).stores(part, sums))
            return [*body, *checks, If(condition=is_nan, then=then, otherwise=tuple(stores))]
        writer.local_types[sums.name] = sums.type
        body += [start, self._over_blocks(writer, part, steps, totals, sums)]
        if steps.has_test:
            checks, is_nan = self.any_is_nan(writer, parts_of(sums))
            tested = self.tested_sums(writer, part, tile, sums)
            body += [*checks, If(condition=is_nan, then=(tested,), otherwise=())]
        body += self.column_stores(writer, part, tile, parts_of(sums)[own_count:])
        return [*body, *self.stores(writer, part, tile, sums)]

    @property
    def part_length(self) -> Size:
        return sizes.multiply(self.steps, sizes.divide_up(self._step_count, self.part_count))

    @property
    def _step_count(self) -> Size:
        """How often a thread takes elements of a sum."""
        return sizes.floor_divide(self.count, self.steps)

    def _over_all(self, writer: Writer, steps: WideSteps, totals: Sequence[nodes.Var]) -> Stmt:
        """Adds all elements to `totals`."""
        stop = writer.positions.size(self._step_count)
        return self._over_steps(writer, steps, totals, c.whole(0), stop)

    def _over_blocks(
        self,
        writer: Writer,
        part: Position,
        steps: WideSteps,
        totals: Sequence[nodes.Var],
        sums: nodes.Var,
    ) -> Stmt:
        """Adds the elements of one part to the sums, block by block."""
        positions, count = writer.positions, self._step_count
        length = sizes.divide_up(count, self.part_count)
        begin, block = times(part, length), c.whole(BLOCK // self.steps)
        first = c.variable("first", INT)
        writer.local_types[first.name] = first.type
        if steps.has_barriers:
            start, stop = c.whole(0), positions.size(length)
            inner = self._over_steps_in_group(writer, steps, totals, begin, first)
        else:
            end = positions.expr(add(begin, constant(length)))
            start, stop = positions.expr(begin), c.apply(ops.MIN, end, positions.size(count))
            last = c.apply(ops.MIN, c.apply(ops.ADD, first, block), stop)
            inner = self._over_steps(writer, steps, totals, first, last)
        after = (summed(sums, k, total) for k, total in enumerate(totals))
        body = (*map(zeroed, totals), inner, *after)
        return nodes.For(variable=first.name, start=start, stop=stop, step=block, body=body)

    def _over_steps_in_group(
        self,
        writer: Writer,
        steps: WideSteps,
        totals: Sequence[nodes.Var],
        begin: Position,
        first: nodes.Var,
    ) -> Stmt:
        """Adds the block from `first` on in the part that begins at `begin`.

        The counts of its loop and of that around it are the same for all threads, which meet here.
        """
        positions, count = writer.positions, self._step_count
        length = sizes.divide_up(count, self.part_count)
        step, at = (c.variable(name, INT) for name in ("step", "at"))
        writer.local_types |= {name.name: INT for name in (step, at)}
        in_part = c.apply(ops.ADD, first, step)
        place = positions.expr(add(begin, positions.of(in_part)))
        last = positions.expr(constant(sizes.subtract(count, 1)))
        is_there = c.apply(
            ops.BIT_AND,
            c.apply(ops.LT, in_part, positions.size(length)),
            c.apply(ops.LE, place, last),
        )
        return nodes.For(
            variable=step.name,
            start=c.whole(0),
            stop=c.whole(BLOCK // self.steps),
            step=c.whole(1),
            body=(
                Assign(name=at.name, value=c.apply(ops.MIN, place, last)),
                *steps.added(positions.of(at), totals, is_there),
            ),
        )

    def _over_steps(
        self,
        writer: Writer,
        steps: WideSteps,
        totals: Sequence[nodes.Var],
        start: Expr,
        stop: Expr,
    ) -> Stmt:
        """Adds the elements from ``self.steps * start`` on to `totals`."""
        own = c.variable("quarter" if self.steps == WIDTH else "term", INT)
        writer.local_types[own.name] = own.type
        body = tuple(steps.added(writer.positions.of(own), totals))
        return nodes.For(variable=own.name, start=start, stop=stop, step=c.whole(1), body=body)
