"""The loads of tiles whose threads take four elements at once, and the sums of these: see
`wide_tiles.py`.

Invariant: all threads of a team load before each of them reads what the others hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.dags import substitute, variables
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, Access, BufferType, Vector
from shaderad.plan.kernels import WIDTH, Writer
from shaderad.plan.positions import Position, add, constant, times
from shaderad.plan.tile_kernels import plus, store
from shaderad.plan.vector_reads import (
    COLUMN,
    ROW,
    STEP,
    VectorRead,
    functions_of_reads,
    quartered,
    quartered_position,
)

if TYPE_CHECKING:
    from shaderad.plan.wide_tiles import WideKernel


@dataclass(frozen=True)
class _Place:
    """A position along an axis, ``4 * quarter + offset``."""

    quarter: Position = Position()  # noqa: RUF009, a constant
    offset: Position = Position()  # noqa: RUF009, a constant

    def quarter_of(self, factor: Size) -> Position:
        """A quarter of its product with `factor`; that is a multiple of 4 if there is an offset."""
        return add(times(self.quarter, factor), times(self.offset, quartered(factor)))


_START = _Place()


class WideSteps:
    """The statements that add four elements to each sum of a tile.

    Args:
        tiles: The kernel.
        writer: Of its statements.
        tile: Where the thread is.
        body: What precedes the loop.
    """

    def __init__(
        self, tiles: WideKernel, writer: Writer, tile: Sequence[Position], body: list[Stmt]
    ) -> None:
        self._tiles, self._writer, self._tile, self._body = tiles, writer, tile, body
        element = tiles.element(writer, tile)
        self._reads, self.has_test = element.reads, element.has_test
        self._beside = element.beside
        kept = () if element.beside is None else variables(element.beside)
        names = {read.name for read in self._reads}
        self._element, self._function_by_read = functions_of_reads(element.quick, names, kept)
        self._loaded: dict[tuple[str, int, int], Expr] = {}
        """The vectors of each read, by its name and the elements of the sum: see `_loads`."""
        has_shared = any(read.row != 0 or self._is_of_all(read) for read in self._reads)
        self._team = tiles.team if has_shared else 1
        self._lane = self._low_lane = self._high_lane = Position()
        """The lane in a team, its remainder by 4 and its quarter."""
        if self._team > 1:
            lane = nodes.TeamLane(type=INT, size=self._team, is_of_group=tiles.is_grouped)
            self._lane = self._low_lane = writer.positions.of(self._local("lane", lane))
        if self._team > WIDTH:
            self._low_lane = self._part_of_lane("low", ops.MOD)
            self._high_lane = self._part_of_lane("high", ops.FLOOR_DIV)
        self._places = {read.name: self._places_of(read) for read in self._reads}
        self._shared: dict[str, nodes.Buffer] = {}
        """Arrays in group memory of the reads that a team shares; none if a wave does."""
        self._team_start = Position()
        """The number in the workgroup of the first thread of the team."""
        if tiles.is_grouped and self._team > 1:
            self._share_in_group()

    def _share_in_group(self) -> None:
        """Adds the arrays of `_shared`."""
        positions, workgroup = self._writer.positions, self._tiles.shape.workgroup
        thread = nodes.TeamLane(type=INT, size=workgroup, is_of_group=True)
        start = c.apply(ops.SUB, thread, positions.expr(self._lane))
        self._team_start = positions.of(self._local("team_start", start))
        for read in filter(self._is_shared, self._reads):
            name = f"shared_{read.name}"
            element = FLOAT if self._is_single(read) else Vector(FLOAT, WIDTH)
            count = workgroup * len(self._places[read.name])
            of_group = BufferType(Access.GROUP, element, 1)
            buffer = nodes.Buffer(name=name, path=(name,), type=of_group, count=count)
            self._shared[read.name] = buffer
            self._writer.add_scratch(buffer, (count,))

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
        return self._team > 1 and (read.row != 0 or self._is_of_all(read))

    def _is_of_all(self, read: VectorRead) -> bool:
        """True if all rows and columns need the same four elements."""
        return self._tiles.steps == WIDTH and read.row == 0 and read.column == 0

    # -- statements ------------------------------------------------------------------------

    @property
    def has_barriers(self) -> bool:
        """True if all threads of a workgroup must come to `added`."""
        return bool(self._shared)

    def added(
        self, own: Position, totals: Sequence[nodes.Var], is_there: Expr | None = None
    ) -> Iterator[Stmt]:
        """Adds the elements from ``steps * own`` on to `totals`, if `is_there`."""
        yield from self._all_loads(own)
        if self.has_barriers:
            yield from self._shared_stores()
            yield nodes.Barrier()
        adds = tuple(self._adds(own, totals))
        if is_there is not None:
            adds = (If(condition=is_there, then=adds, otherwise=()),)
        yield from adds
        if self.has_barriers:
            yield nodes.Barrier()

    def _shared_stores(self) -> Iterator[Stmt]:
        """Gives what the thread loaded to its team."""
        for name, buffer in self._shared.items():
            for k in range(len(self._places[name])):
                at = self._place_of_team(k, self._lane)
                yield store(buffer.name, (at,), self._loaded[name, k, 0])

    def _place_of_team(self, number: int, lane: Position) -> Expr:
        """The index in group memory of load `number` of a thread of the team."""
        at = add(add(self._team_start, lane), constant(number * self._tiles.shape.workgroup))
        place = self._writer.positions.expr(at)
        return nodes.KnownNumber(type=INT, number=place, is_inside=True)

    def _all_loads(self, own: Position) -> Iterator[Stmt]:
        steps = self._tiles.steps
        for read in self._reads:
            if steps == 1:
                yield from self._loads(read, _Place(offset=own))
            elif self._is_of_all(read) and self._is_shared(read):
                at = add(times(own, WIDTH), self._low_lane)
                yield from self._loads(read, _Place(offset=at))
            elif read.is_along_sum:
                yield from self._loads(read, _Place(own))
            elif self._is_shared(read):
                yield from self._loads(read, _Place(own, self._low_lane))
            else:
                for step in range(steps):
                    yield from self._loads(read, _Place(own, constant(step)), step)

    def _adds(self, own: Position, totals: Sequence[nodes.Var]) -> Iterator[Stmt]:
        steps = self._tiles.steps
        # Row by row: a row's elements of the sum meet totals that are in registers.
        tile = [*product(range(self._tiles.row_count), range(WIDTH), range(steps))]
        first = times(own, steps)
        written = self._writer.written([self._element_at(first, *at) for at in tile])
        for (row, column, _), (statements, value) in zip(tile, written.in_turn(), strict=True):
            yield from statements
            yield plus(totals[row * WIDTH + column], value)
        if self._beside is not None:
            places = [*product(range(WIDTH), range(steps))]
            values = [self._with_parts(self._beside, first, 0, *at) for at in places]
            written = self._writer.written(values, "beside")
            yield from written.body
            for (column, _), value in zip(places, written.values, strict=True):
                yield plus(totals[self._tiles.row_count * WIDTH + column], value)

    def _loads(self, read: VectorRead, step: _Place, number: int = 0) -> Iterator[Stmt]:
        """Loads what a read takes for one element of the sum, by its number, or for all."""
        for k, place in enumerate(self._places[read.name]):
            name = f"{read.name}_{k}" if number == 0 else f"{read.name}_{k}_{number}"
            load = self._load(read, step, place)
            self._writer.local_types[name] = load.type
            yield Assign(name=name, value=load)
            self._loaded[read.name, k, number] = self._applied(read, c.variable(name, load.type))

    def _applied(self, read: VectorRead, loaded: nodes.Var) -> Expr:
        """The function of a read at what was loaded: a team shares its results."""
        function = self._function_by_read.get(read.name)
        if function is None:
            return loaded
        parts = [substitute(function, {read.name: x}) for x in c.components(loaded)]
        return c.construct(loaded.type, parts) if isinstance(loaded.type, Vector) else parts[0]

    def _load(self, read: VectorRead, step: _Place, place: _Place) -> Expr:
        factor = read.row or read.column
        if self._is_single(read):
            at = add(times(step.offset, read.step), times(place.offset, factor))
            return self._writer.read_number(read.value, add(at, read.rest))
        at = add(step.quarter_of(read.step), place.quarter_of(factor))
        return self._writer.read_vector(read.value, add(at, quartered_position(read.rest)))

    def _is_single(self, read: VectorRead) -> bool:
        """True if loads are of one element."""
        is_of_all = self._is_of_all(read) and self._is_shared(read)
        return is_of_all or (self._tiles.steps == 1 and read.is_along_sum)

    def _element_at(self, first: Position, row: int, column: int, step: int) -> Expr:
        return self._with_parts(self._element, first, row, column, step)

    def _with_parts(self, element: Expr, first: Position, row: int, column: int, step: int) -> Expr:
        """`element` with what was loaded in place of variables."""
        positions, tiles = self._writer.positions, self._tiles
        at = add(first, constant(step))
        parts = {STEP: positions.expr(at)}
        for name, axis, k in ((ROW, tiles.rows, row), (COLUMN, tiles.columns, column)):
            if axis in tiles.size_by_axis:
                parts[name] = positions.expr(tiles.step_of(axis, self._tile[axis], constant(k)))
        for read in self._reads:
            own = row if read.row != 0 else column if read.column != 0 else 0
            parts[read.name] = self._part(read, own, step)
        return substitute(element, parts)

    def _part(self, read: VectorRead, own: int, step: int) -> Expr:
        """The element of a read in row or column `own` of the tile."""
        if self._is_shared(read):
            team = self._team
            vector = self._loaded[read.name, own // team, 0]
            position, lane = step, own % team
            if self._is_of_all(read):
                lane = step
            elif not read.is_along_sum:
                position, lane = own % WIDTH, own % team // WIDTH * WIDTH + step
            if self.has_barriers:
                at = self._place_of_team(own // team, constant(lane))
                name = self._shared[read.name].name
                vector = nodes.Load(type=vector.type, buffer=name, indices=(at,))
            element = vector if self._is_single(read) else c.component(vector, position)
            of_wave = nodes.OfTeam(type=FLOAT, value=element, lane=lane, size=team)
            return element if self.has_barriers else of_wave
        if self._is_single(read):
            return self._loaded[read.name, own, 0]
        if read.is_along_sum:
            return c.component(self._loaded[read.name, own, 0], step)
        return c.component(self._loaded[read.name, own // WIDTH, step], own % WIDTH)
