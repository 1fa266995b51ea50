"""The totals of the threads of a team -> one total: across the wave, then in group memory.

Sizes and the launch shape decide the association, so it is the same in every run. Lanes without
elements have no total: those of functions, which have no neutral element, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.types import (
    FLOAT,
    INT,
    UINT,
    Struct,
    Type,
    Vector,
)
from shaderad.plan.kernels import Writer
from shaderad.plan.nest.exchange import by_scalar
from shaderad.plan.nest.memory import SharedArray, shared_array
from shaderad.plan.positions import Position, add, constant, times

_SLOT = "slot"
_FOLDED_AT_ONCE = 8
"""Totals that one thread folds between two barriers."""


@dataclass(frozen=True, slots=True)
class Team:
    """Threads of a workgroup that fold their totals.

    Attributes:
        lanes: Its threads, a power of two.
        wave: Lanes that fold across the wave, a power of two; 1 for none.
        workgroup: Threads of a workgroup, a multiple of `lanes` times `span`.
        span: The distance of its threads, a power of two; those between are of other teams. Only
            adjacent threads, whose distance is 1, fold across the wave.
    """

    lanes: int
    wave: int
    workgroup: int
    span: int = 1

    @property
    def slots(self) -> int:
        """Totals in group memory; 0 if all lanes are of one wave."""
        return self.workgroup // self.wave if self.lanes > self.wave else 0


def crosses_waves(t: Type) -> bool:
    """True if lanes of a wave can exchange values of type `t`."""
    if isinstance(t, Struct):
        return all(crosses_waves(field) for _, field in t.fields)
    return (t.element if isinstance(t, Vector) else t) in (FLOAT, INT, UINT)


def _of_lane(value: Expr, mask: int) -> Expr:
    """`value` in the lane whose number differs in the bits of `mask`."""
    return by_scalar(value, lambda e: nodes.OfLane(type=e.type, value=e, mask=mask))


class TeamFold:
    """Writes the statements that fold totals.

    Args:
        team: The threads.
        writer: Of their kernel.
        totals: Local variables with the totals of each lane.
        combined: Two totals, in the order of elements -> one.
        has_elements: The number of a lane -> true if it or lanes behind it hold elements; `None` if
            every lane has a total.
        lane: The thread's number in its team.
    """

    def __init__(
        self,
        team: Team,
        writer: Writer,
        totals: Sequence[nodes.Var],
        combined: Callable[[Expr, Expr], Expr],
        has_elements: Callable[[Position], Expr] | None,
        lane: Position,
    ) -> None:
        self._team, self._writer, self._totals = team, writer, totals
        self._combined, self._has_elements = combined, has_elements
        self._lane = lane
        self._slots: Sequence[tuple[nodes.Var, SharedArray]] = ()
        """The totals, and the arrays in which those of waves lie."""

    def statements(self, *, for_all: bool) -> Iterator[Stmt]:
        """Folds the totals; the first lane has the results, or all lanes have them."""
        for total in self._totals:
            yield from self._in_wave(total)
        if self._team.slots:
            yield from self._in_group(for_all=for_all)

    def first(self, body: Sequence[Stmt]) -> Stmt:
        """Does `body` in the first lane."""
        return self._each(self._team.lanes, body)

    def _each(self, distance: int, body: Sequence[Stmt]) -> Stmt:
        """Does `body` in the first of each so many lanes, which are more than one."""
        lane = self._writer.positions.expr(self._lane)
        rest = c.apply(ops.BIT_AND, lane, c.whole(distance - 1))
        is_first = c.apply(ops.EQ, rest, c.whole(0))
        return If(condition=is_first, then=tuple(body), otherwise=())

    # -- the wave ------------------------------------------------------------------------------

    def _in_wave(self, total: nodes.Var) -> Iterator[Stmt]:
        """Each lane of a wave gets the total of all of them."""
        mask = 1
        while mask < self._team.wave:
            other = self._writer.local(f"{total.name}_lane{mask}", total.type)
            yield Assign(name=other.name, value=_of_lane(total, mask))
            if self._has_elements is None:
                # Both lanes fold in the same order, so they agree where rounding depends on it.
                yield Assign(name=total.name, value=self._combined(total, other))
            else:
                yield from self._in_order(total, other, mask)
            mask *= 2

    def _in_order(self, total: nodes.Var, other: nodes.Var, mask: int) -> Iterator[Stmt]:
        """Folds the total of the lane with `mask` in its number onto that of the one without."""
        lane = self._writer.positions.expr(self._lane)
        low, high = (
            self._writer.local(f"{total.name}_{side}", total.type) for side in ("low", "high")
        )
        is_low = c.apply(ops.EQ, c.apply(ops.BIT_AND, lane, c.whole(mask)), c.whole(0))
        sides = [
            (Assign(name=low.name, value=a), Assign(name=high.name, value=b))
            for a, b in ((total, other), (other, total))
        ]
        yield If(condition=is_low, then=sides[0], otherwise=sides[1])
        # The numbers of lanes that are behind begin with that bit.
        first = c.apply(ops.BIT_AND, c.apply(ops.BIT_OR, lane, c.whole(mask)), c.whole(-mask))
        yield from self._onto(total, low, high, self._writer.positions.of(first))

    def _onto(self, total: nodes.Var, low: Expr, high: Expr, lane: Position) -> Iterator[Stmt]:
        """Makes `total` of `low` and of `high`, the total of lanes from `lane` on."""
        both = Assign(name=total.name, value=self._combined(low, high))
        if self._has_elements is None:
            yield both
            return
        alone = () if low is total else (Assign(name=total.name, value=low),)
        yield If(condition=self._has_elements(lane), then=(both,), otherwise=alone)

    # -- group memory --------------------------------------------------------------------------

    def _in_group(self, *, for_all: bool) -> Iterator[Stmt]:
        """Folds the totals of waves; the first lane of the team, or all, get the results."""
        team, positions = self._team, self._writer.positions
        self._slots = [
            (total, shared_array(self._writer, f"{total.name}_slots", total.type, team.slots))
            for total in self._totals
        ]
        thread = positions.of(nodes.TeamLane(type=INT, size=team.workgroup, is_of_group=True))
        own = self._writer.local(_SLOT, INT)
        slot, _ = positions.divided(thread, team.wave)
        yield Assign(name=own.name, value=positions.expr(slot))
        at = positions.of(own)
        if team.wave == 1:
            yield from self._put(at)
        else:
            yield self._each(team.wave, self._put(at))
        yield nodes.Barrier()
        step, count = team.wave, team.lanes // team.wave
        while count > _FOLDED_AT_ONCE:
            folded = self._fold_slots(at, step, _FOLDED_AT_ONCE)
            step *= _FOLDED_AT_ONCE
            count //= _FOLDED_AT_ONCE
            yield self._each(step, [*folded, *self._put(at)])
            yield nodes.Barrier()
        last = [*self._fold_slots(at, step, count)]
        if not for_all:
            yield self.first(last)
            return
        yield self.first([*last, *self._put(at)])
        yield nodes.Barrier()
        # Threads past the end of the launch take the lane of the last one, so that does not tell
        # where their team begins.
        block, _ = positions.divided(thread, team.lanes * team.span)
        _, beside = positions.divided(thread, team.span)
        first = add(times(block, team.lanes * team.span // team.wave), beside)
        for total, shared in self._slots:
            yield Assign(name=total.name, value=shared.get(first))

    def _fold_slots(self, first: Position, step: int, count: int) -> Iterator[Stmt]:
        """Folds totals in group memory, `step` lanes apart, onto those of the thread."""
        distance = step * self._team.span // self._team.wave
        for k in range(1, count):
            lane, at = add(self._lane, constant(k * step)), add(first, constant(k * distance))
            for total, shared in self._slots:
                yield from self._onto(total, total, shared.get(at), lane)

    def _put(self, slot: Position) -> Sequence[Stmt]:
        return [shared.put(slot, total) for total, shared in self._slots]
