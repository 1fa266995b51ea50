"""The addends of a thread's tile, and the loads that serve them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

from shaderad.ir import nodes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order, substitute
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, UINT
from shaderad.ir.walk import children, map_children
from shaderad.plan.discarded import without_test
from shaderad.plan.nest.statements import added_in_turn
from shaderad.plan.nest.sums.places import LANE, Place, SumPlaces
from shaderad.plan.nest.sums.tiles import SumTile
from shaderad.plan.nest.sums.work import SumWork
from shaderad.plan.nest.vectors import guarded_reads


class SumAddends:
    """The addends.

    Args:
        work: The sum.
        tile: How threads share it.
        places: Where the thread is.
    """

    def __init__(self, work: SumWork, tile: SumTile, places: SumPlaces) -> None:
        self._work, self._tile, self._places = work, tile, places
        self._reads, self._elements = guarded_reads(places.writer, work.has_memory)
        self._own = {place: self._at(place) for place in self._loading()}
        """The addends of the results for which the thread loads, step by step."""
        self._beside = [*self._of_columns()]
        """The addends of the sums along columns, column by column."""
        every = [e for addends in self._own.values() for e in addends]
        self.has_test = any(without_test(e) is not e for e in every)
        """True if addends have tests for discarded cotangents, which they are added without."""
        self._fours = self._reads.fours([*every, *self._beside])

    @property
    def beside_count(self) -> int:
        """The number of sums along columns."""
        return len(self._beside) // len(self._places.steps)

    def _loading(self) -> Iterator[Place]:
        """The first result of each team along the axis that it shares; else all."""
        tile = self._tile
        for place in self._places.results:
            if tile.team == 1 or place[tile.shared_axis] % tile.team == 0:
                yield place

    def _at(self, place: Place) -> list[Expr]:
        places = self._places
        at = places.result(place) if self._tile.team == 1 else places.of_lane(place)
        x = self._work.addends
        return [self._elements.at(x, (*at, *places.element(step))) for step in places.steps]

    def _of_columns(self) -> Iterator[Expr]:
        if self._work.column_sum is None:
            return
        (y,) = self._work.column_sum.operands
        for at in self._places.columns:
            for step in self._places.steps:
                yield self._elements.at(y, (at, *self._places.element(step)))

    # -- loads -----------------------------------------------------------------------------

    @property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four that it may have, the sizes that must be multiples of 4."""
        return [*self._fours.values()]

    def bound(self, chosen: Sequence[bool]) -> tuple[frozenset[Value], frozenset[Value]]:
        """Arrays that are read by four and by element, if those of `loads` are chosen."""
        return self._reads.bound([*compress(self._fours, chosen)])

    def added(self, chosen: Sequence[bool], sums: Sequence[nodes.Var]) -> Iterator[Stmt]:
        """Adds the elements of one step to the sums: first those of results, then along columns."""
        loads = self._reads.loads([*compress(self._fours, chosen)])
        addends = [substitute(e, loads) for e in (*self._all(), *self._beside)]
        written = self._places.writer.written([*loads.values(), *addends])
        # Loads come first, so that they are in flight together.
        yield from added_in_turn(written, len(loads), sums, len(self._places.steps))

    def _all(self) -> Iterator[Expr]:
        tile = self._tile
        if tile.team == 1:
            for addends in self._own.values():
                yield from map(without_test, addends)
            return
        giving = _Giving(self._reads.of(self._places.lane), self._reads.names, self._places.of_team)
        for place in self._places.results:
            lane = place[tile.shared_axis] % tile.team
            own = [*place]
            own[tile.shared_axis] -= lane
            for e in self._own[tuple(own)]:
                yield giving.of_lane(without_test(e), lane, tile.team)


class _Giving:
    """Addends of a lane -> those of any thread of its team, by what that lane computes.

    Args:
        of_lane: Variables of what depends on the lane.
        reads: Variables of all reads.
        of_thread: Other variables that differ between threads of a team.
    """

    def __init__(
        self, of_lane: frozenset[str], reads: frozenset[str], of_thread: frozenset[str]
    ) -> None:
        self._of_lane = of_lane | {LANE}
        self._of_thread = (reads | of_thread) - self._of_lane

    def of_lane(self, e: Expr, lane: int, size: int) -> Expr:
        """`e` for all threads, with what depends only on the lane from lane number `lane`."""
        given: dict[int, bool | None] = {}
        """For each part: true if it depends on the lane alone, false if on the thread, too."""
        new: dict[int, Expr] = {}
        for part in in_order(e):
            inner = [given[id(child)] for child in children(part)]
            given[id(part)] = self._is_given(part, inner)
            if given[id(part)] is False:
                new[id(part)] = map_children(
                    part, lambda child: self._from(child, given, new, lane, size)
                )
        return self._from(e, given, new, lane, size)

    def _is_given(self, part: Expr, inner: Sequence[bool | None]) -> bool | None:
        if isinstance(part, nodes.Var):
            return (
                True
                if part.name in self._of_lane
                else False
                if part.name in self._of_thread
                else None
            )
        if False in inner:
            return False
        if True not in inner:
            return None
        return part.type in (FLOAT, INT, UINT)

    def _from(
        self,
        e: Expr,
        given: Mapping[int, bool | None],
        new: Mapping[int, Expr],
        lane: int,
        size: int,
    ) -> Expr:
        if given[id(e)]:
            return nodes.OfTeam(type=e.type, value=e, lane=lane, size=size)
        return new.get(id(e), e)
