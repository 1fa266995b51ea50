"""The totals of adjacent threads -> one total: first across the wave, then in group memory.

Sizes and the launch shape decide the association, so it is the same in every run. Lanes without
elements have no total: those of functions, which have no neutral element, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, If, Stmt, Store
from shaderad.ir.types import FLOAT, INT, UINT, Access, BufferType, Scalar, Struct, Type, Vector
from shaderad.plan.kernels import Writer
from shaderad.plan.positions import Position, add, constant, times

_FOLDED_AT_ONCE = 8
"""Totals that one thread folds between two barriers."""


@dataclass(frozen=True, slots=True)
class Team:
    """Adjacent threads that fold their totals.

    Attributes:
        lanes: Its threads, a power of two.
        wave: Lanes that fold across the wave, a power of two; 1 for none.
        workgroup: Threads of a workgroup, a multiple of `lanes`.
    """

    lanes: int
    wave: int
    workgroup: int

    @property
    def slots(self) -> int:
        """Totals in group memory; 0 if all lanes are of one wave."""
        return self.workgroup // self.wave if self.lanes > self.wave else 0


def crosses_waves(t: Type) -> bool:
    """True if lanes of a wave can exchange values of type `t`."""
    if isinstance(t, Struct):
        return all(crosses_waves(field) for _, field in t.fields)
    return (t.element if isinstance(t, Vector) else t) in (FLOAT, INT, UINT)


def each(distance: int, body: Sequence[Stmt]) -> Stmt:
    """Does `body` in the first of each so many threads of a workgroup."""
    place = nodes.TeamLane(type=INT, size=distance, is_of_group=True)
    is_first = c.apply(ops.EQ, place, c.whole(0))
    return If(condition=is_first, then=tuple(body), otherwise=())


def _of_lane(value: Expr, mask: int) -> Expr:
    """`value` in the lane whose number differs in the bits of `mask`."""
    t = value.type
    if isinstance(t, Struct):
        return c.construct(t, [_of_lane(c.field(value, name), mask) for name, _ in t.fields])
    if isinstance(t, Vector):
        return c.construct(t, [_of_lane(c.component(value, k), mask) for k in range(t.count)])
    assert isinstance(t, Scalar)
    return nodes.OfLane(type=t, value=value, mask=mask)


class TeamFold:
    """Writes the statements that fold one total.

    Args:
        team: The threads.
        writer: Of their kernel.
        total: The local variable with the total of each lane.
        combined: Two totals, in the order of elements -> one.
        has_elements: The number of a lane -> true if it or lanes behind it hold elements; `None` if
            every lane has a total.
        lane: The thread's number in its team.
        number: Of the fold in its kernel.
    """

    def __init__(
        self,
        team: Team,
        writer: Writer,
        total: nodes.Var,
        combined: Callable[[Expr, Expr], Expr],
        has_elements: Callable[[Position], Expr] | None,
        lane: Position,
        number: int,
    ) -> None:
        self._team, self._writer, self._total = team, writer, total
        self._combined, self._has_elements = combined, has_elements
        self._lane, self._number = lane, number
        self._slots = f"slots{number}"

    def statements(self, *, for_all: bool) -> Iterator[Stmt]:
        """Folds the totals; the first lane has the result, or all lanes have it."""
        yield from self._in_wave()
        if self._team.slots:
            yield from self._in_group(for_all=for_all)

    def _local(self, name: str, t: Type) -> nodes.Var:
        self._writer.local_types[name] = t
        return c.variable(name, t)

    # -- the wave ------------------------------------------------------------------------------

    def _in_wave(self) -> Iterator[Stmt]:
        """Each lane of a wave gets the total of all of them."""
        mask, total = 1, self._total
        while mask < self._team.wave:
            other = self._local(f"other{self._number}_{mask}", total.type)
            yield Assign(name=other.name, value=_of_lane(total, mask))
            if self._has_elements is None:
                # Both lanes fold in the same order, so they agree where rounding depends on it.
                yield Assign(name=total.name, value=self._combined(total, other))
            else:
                yield from self._in_order(other, mask)
            mask *= 2

    def _in_order(self, other: nodes.Var, mask: int) -> Iterator[Stmt]:
        """Folds the total of the lane with `mask` in its number onto that of the one without."""
        total, lane = self._total, self._writer.positions.expr(self._lane)
        low, high = (
            self._local(f"{name}{self._number}", total.type) for name in ("lower", "upper")
        )
        is_low = c.apply(ops.EQ, c.apply(ops.BIT_AND, lane, c.whole(mask)), c.whole(0))
        sides = [
            (Assign(name=low.name, value=a), Assign(name=high.name, value=b))
            for a, b in ((total, other), (other, total))
        ]
        yield If(condition=is_low, then=sides[0], otherwise=sides[1])
        # The numbers of lanes that are behind begin with that bit.
        first = c.apply(ops.BIT_AND, c.apply(ops.BIT_OR, lane, c.whole(mask)), c.whole(-mask))
        yield from self._onto(low, high, self._writer.positions.of(first))

    def _onto(self, low: Expr, high: Expr, lane: Position) -> Iterator[Stmt]:
        """Folds `high`, the total of lanes from `lane` on, onto `low`."""
        both = Assign(name=self._total.name, value=self._combined(low, high))
        if self._has_elements is None:
            yield both
            return
        alone = () if low is self._total else (Assign(name=self._total.name, value=low),)
        yield If(condition=self._has_elements(lane), then=(both,), otherwise=alone)

    # -- group memory --------------------------------------------------------------------------

    def _in_group(self, *, for_all: bool) -> Iterator[Stmt]:
        """Folds the totals of waves; the first lane of the team, or all, get the result."""
        team, total, positions = self._team, self._total, self._writer.positions
        count = team.lanes // team.wave
        self._writer.add_scratch(
            nodes.Buffer(
                name=self._slots,
                path=(self._slots,),
                type=BufferType(Access.GROUP, total.type, 1),
                count=team.slots,
            ),
            (team.slots,),
        )
        thread = nodes.TeamLane(type=INT, size=team.workgroup, is_of_group=True)
        slot = self._local(f"slot{self._number}", INT)
        own, _ = positions.divided(positions.of(thread), team.wave)
        yield Assign(name=slot.name, value=positions.expr(own))
        at = positions.of(slot)
        yield each(team.wave, [self._put(at, total)])
        yield nodes.Barrier()
        step, distance = 1, team.wave
        while count > _FOLDED_AT_ONCE:
            folded = self._fold_slots(at, step, _FOLDED_AT_ONCE)
            distance *= _FOLDED_AT_ONCE
            yield each(distance, [*folded, self._put(at, total)])
            yield nodes.Barrier()
            count, step = count // _FOLDED_AT_ONCE, step * _FOLDED_AT_ONCE
        last = [*self._fold_slots(at, step, count)]
        if not for_all:
            yield each(team.lanes, last)
            return
        yield each(team.lanes, [*last, self._put(at, total)])
        yield nodes.Barrier()
        number, _ = positions.divided(positions.of(thread), team.lanes)
        first = times(number, team.lanes // team.wave)
        yield Assign(name=total.name, value=self._get(first))

    def _fold_slots(self, first: Position, step: int, count: int) -> Iterator[Stmt]:
        """Folds totals in group memory, which are `step` apart, onto that of the thread."""
        for k in range(1, count):
            other = self._get(add(first, constant(k * step)))
            lane = add(self._lane, constant(k * step * self._team.wave))
            yield from self._onto(self._total, other, lane)

    def _slot(self, at: Position) -> tuple[Expr, ...]:
        place = self._writer.positions.expr(at)
        return (nodes.KnownNumber(type=INT, number=place, is_inside=True),)

    def _put(self, at: Position, value: Expr) -> Stmt:
        return Store(buffer=self._slots, indices=self._slot(at), value=value, is_unique=True)

    def _get(self, at: Position) -> Expr:
        return nodes.Load(type=self._total.type, buffer=self._slots, indices=self._slot(at))
