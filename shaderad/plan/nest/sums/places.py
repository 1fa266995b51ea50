"""Where a thread is in a sum: the results of its tile, and the elements that it adds at a time.

Tiles at the end of an axis lie over those before them, so all their results exist. Where the
threads of a workgroup share loads, a block of tiles may reach beyond the end: there threads compute
the last results again, and do not store them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.dags import variables
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT
from shaderad.plan.kernels import WIDTH, Writer, number_writer
from shaderad.plan.nest.sums.tiles import SumTile
from shaderad.plan.nest.sums.work import SumWork
from shaderad.plan.positions import RANK_LIMIT, Indices, Position, add, constant, times

Place = tuple[int, ...]
"""The numbers of a result in a tile, or of an element among those that a thread adds at a time."""
LANE = "lane"


class SumPlaces:
    """The places of a thread.

    Args:
        work: The sum.
        tile: How threads share it.
    """

    def __init__(self, work: SumWork, tile: SumTile) -> None:
        self._work, self._tile = work, tile
        threads = (prod(tile.threads),) if tile.is_grouped else ()
        lanes = (tile.lanes,) if tile.lanes > 1 else ()
        self.writer: Writer = number_writer(
            (tile.part_count, *self._blocks(), *threads, *lanes), work.has_memory, dict(tile.known)
        )
        self.before: list[Stmt] = []
        """Computes what positions need."""
        own = [*self.writer.own]
        if len(own) > RANK_LIMIT:
            own = [self.named(f"own{k}", at) if at.terms else at for k, at in enumerate(own)]
        self.part = own[0]
        self.own = own[1 : 1 + len(tile.held)]
        """The tile or block along each axis of results."""
        self.thread = own[-1]
        """The number of the thread in a workgroup that shares loads."""
        self.part_lane = own[-1] if lanes else Position()
        """The number of the thread among those that share a part."""
        self._beside = [*self._threads_along()]
        self.results = [*product(*map(range, tile.held))]
        self.steps = [*product(*map(range, tile.steps))]
        self._along = [self._results_along(axis) for axis in range(len(tile.held))]
        self.lane = Position()
        """The thread's number in its team."""
        if tile.team > 1:
            lane = nodes.TeamLane(type=INT, size=tile.team)
            self.lane = self._local(LANE, lane)
        self._bases = [
            self.writer.positions.of_name(self.step(k).name) for k in range(len(tile.steps))
        ]

    def _blocks(self) -> Shape:
        """The tiles, or blocks of those of a workgroup, along each axis of results."""
        tile, tiles = self._tile, list[Size]()
        for axis, extent in enumerate(self._work.rows):
            along = sizes.divide_up(extent, tile.block(axis))
            if axis == tile.team_axis:
                along = sizes.multiply(tile.team, sizes.divide_up(along, tile.team))
            tiles.append(along)
        return tuple(tiles)

    def _threads_along(self) -> Iterator[Position]:
        """The number of the thread along each axis, of those of its workgroup."""
        rest, counts = self.thread, self._tile.threads
        for axis, count in enumerate(counts):
            inner = prod(counts[axis + 1 :])
            if count == 1:
                yield Position()
            elif inner == 1:
                yield rest
            else:
                at, rest = self.writer.positions.divided(rest, inner)
                yield self.named(f"thread{axis}", at)

    def _local(self, name: str, value: Expr) -> Position:
        local = self.writer.local(name, INT)
        self.before.append(Assign(name=name, value=value))
        return self.writer.positions.of(local)

    def named(self, name: str, at: Position) -> Position:
        """A local that holds a position."""
        return self._local(name, self.writer.positions.expr(at))

    def _least(self, name: str, at: Position, last: Size) -> Position:
        """A local with the lesser of two positions."""
        return self._local(name, self._lesser(at, last))

    def _lesser(self, at: Position, last: Size) -> Expr:
        expr = self.writer.positions.expr
        return c.apply(ops.MIN, expr(at), expr(constant(last)))

    # -- results -------------------------------------------------------------------------------

    def _results_along(self, axis: int) -> list[Position]:
        """The positions of a tile along an axis of results."""
        tile, extent = self._tile, self._work.rows[axis]
        own, count = self.own[axis], tile.held[axis]
        if tile.is_grouped:
            return [*self._grouped(axis)]
        if tile.are_even[axis]:
            start = times(own, count)
        elif not tile.fits:
            last = sizes.subtract(extent, 1)
            return [
                self._least(f"at{axis}_{k}", add(times(own, count), constant(k)), last)
                for k in range(count)
            ]
        elif tile.by_four[axis]:
            last = sizes.floor_divide(sizes.subtract(extent, count), WIDTH)
            start = times(self._least(f"start{axis}", times(own, count // WIDTH), last), WIDTH)
        else:
            last = sizes.subtract(extent, count)
            start = self._least(f"start{axis}", times(own, count), last)
        return [add(start, constant(k)) for k in range(count)]

    def _grouped(self, axis: int) -> Iterator[Position]:
        """`_results_along` where threads share loads: adjacent ones have adjacent fours."""
        tile = self._tile
        if tile.threads[axis] == 1:
            yield self.own[axis]
            return
        for k in range(tile.held[axis] // WIDTH):
            four = self.four(axis, self.own_four(axis, constant(k)))
            yield from self.of_four(axis, four, f"at{axis}_{k}")

    def own_four(self, axis: int, k: Position) -> Position:
        """The number in its block of four `k` of the thread along an axis."""
        return add(times(k, self._tile.threads[axis]), self._beside[axis])

    def four(self, axis: int, in_block: Position) -> Position:
        """The number of four results along an axis, by their number in the block."""
        return add(times(self.own[axis], self._tile.block(axis) // WIDTH), in_block)

    def of_four(self, axis: int, four: Position, name: str) -> list[Position]:
        """The positions of four results; the last ones in place of those beyond them.

        Locals begin with `name`.
        """
        tile, extent = self._tile, self._work.rows[axis]
        first = times(four, WIDTH)
        if not tile.are_even[axis] and not tile.by_four[axis]:
            last = sizes.subtract(extent, 1)
            return [self._least(f"{name}_{k}", add(first, constant(k)), last) for k in range(WIDTH)]
        if not tile.are_even[axis]:
            last = sizes.subtract(sizes.floor_divide(extent, WIDTH), 1)
            first = times(self._least(name, four, last), WIDTH)
        return [add(first, constant(k)) for k in range(WIDTH)]

    def is_inside(self, place: Place) -> Expr | None:
        """True if a result of a block exists; `None` if all do."""
        tests = [self._inside(axis, k) for axis, k in enumerate(place)]
        return c.all_hold([test for test in tests if test is not None])

    def is_column_inside(self, k: int) -> Expr | None:
        """True if column `k` of a tile exists; `None` if all do."""
        return self._inside(len(self._tile.held) - 1, k)

    def _inside(self, axis: int, k: int) -> Expr | None:
        tile, expr = self._tile, self.writer.positions.expr
        if not tile.is_grouped or tile.are_even[axis] or tile.threads[axis] == 1:
            return None
        four = self.four(axis, self.own_four(axis, constant(k // WIDTH)))
        at, extent = add(times(four, WIDTH), constant(k % WIDTH)), self._work.rows[axis]
        if tile.by_four[axis]:
            at, extent = four, sizes.floor_divide(extent, WIDTH)
        return c.apply(ops.LT, expr(at), expr(constant(extent)))

    @property
    def is_first_row(self) -> Expr:
        """True in the first tile along the first axis of results."""
        row = self.own[0]
        if self._tile.is_grouped:
            row = add(times(row, self._tile.threads[0]), self._beside[0])
        return c.apply(ops.EQ, self.writer.positions.expr(row), c.whole(0))

    def result(self, place: Place) -> Indices:
        """The indices of a result."""
        return tuple(along[k] for along, k in zip(self._along, place, strict=True))

    def counted(self, counters: Sequence[Position]) -> Indices:
        """The indices of a result by variables that count those of the tile."""
        return tuple(self._counted(axis, k) for axis, k in enumerate(counters))

    def _counted(self, axis: int, counter: Position) -> Position:
        tile, positions = self._tile, self.writer.positions
        if tile.is_grouped and tile.threads[axis] > 1:
            quotient, rest = positions.divided(counter, WIDTH)
            at = add(times(self.four(axis, self.own_four(axis, quotient)), WIDTH), rest)
        elif tile.is_grouped or tile.fits or tile.are_even[axis]:
            return add(self._along[axis][0], counter)
        else:
            at = add(times(self.own[axis], tile.held[axis]), counter)
        last = sizes.subtract(self._work.rows[axis], 1)
        return at if tile.are_even[axis] else positions.of(self._lesser(at, last))

    def of_lane(self, place: Place) -> Indices:
        """The indices of the result that stands for those of a team, at the place of the first."""
        at, axis = [*self.result(place)], self._tile.shared_axis
        at[axis] = add(at[axis], self.lane)
        return tuple(at)

    # -- elements of the sum -------------------------------------------------------------------

    def element(self, step: Place) -> Indices:
        """The indices along the summed axes of an element."""
        tile = self._tile
        return tuple(
            constant(k) if is_whole else add(times(base, count), constant(k))
            for base, count, is_whole, k in zip(
                self._bases, tile.steps, tile.are_whole, step, strict=True
            )
        )

    @property
    def columns(self) -> Sequence[Position]:
        """The positions of a tile along the last axis of results."""
        return self._along[-1]

    def step(self, axis: int) -> nodes.Var:
        """The variable that counts steps along a summed axis."""
        return c.variable(f"step{axis}", INT)

    def step_count(self, axis: int) -> Size:
        """The number of steps along a summed axis."""
        return sizes.floor_divide(self._work.summed[axis], self._tile.steps[axis])

    @property
    def of_team(self) -> frozenset[str]:
        """Variables that differ between the threads of a team."""
        axis = self._tile.team_axis
        positions: Sequence[Position] = [self.own[axis], *self._along[axis]]
        return frozenset[str]().union(
            *(variables(self.writer.positions.expr(at)) for at in positions)
        )
