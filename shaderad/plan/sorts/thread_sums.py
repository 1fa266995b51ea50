"""Sums over the threads of a workgroup: those before a thread, and the total.

Lanes of a wave add first, then threads add the totals of waves in group memory, level by level. On
devices without waves each thread is a wave of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import INT
from shaderad.plan.kernels import Writer
from shaderad.plan.nest.exchange import each, of_lane_below, of_last_lane, thread_of
from shaderad.plan.nest.memory import SharedArray, shared_array
from shaderad.plan.nest.scan_sharing import Level, ScanSharing
from shaderad.plan.nest.statements import assigned, counted, guarded, plus, zeroed
from shaderad.plan.nest.teams import Team
from shaderad.plan.positions import Position, add, constant, times


@dataclass(frozen=True, slots=True)
class _ThreadSum:
    """The sum of one value: `before` a thread and in `total`, and the totals of waves."""

    value: nodes.Var
    before: nodes.Var
    total: nodes.Var
    slots: SharedArray


def slots_of(team: Team) -> int:
    """The totals in group memory for each value."""
    return _sharing(team).slots


def _sharing(team: Team) -> ScanSharing:
    return ScanSharing(team, width=1, depth=1, is_repeated=False)


class ThreadSums:
    """Writes the statements that add ints.

    Threads reach another barrier before the statements run again.

    Args:
        writer: Of the kernel.
        team: All threads of a workgroup.
        thread: The number of the thread.
        values: The variables whose values are added.
    """

    def __init__(
        self, writer: Writer, team: Team, thread: Position, values: Sequence[nodes.Var]
    ) -> None:
        self._writer, self._team, self._thread = writer, team, thread
        self._sums = [
            _ThreadSum(
                value,
                writer.local(f"{value.name}_before", INT),
                writer.local(f"{value.name}_total", INT),
                shared_array(writer, f"{value.name}_slots", INT, max(1, slots_of(team))),
            )
            for value in values
        ]

    @property
    def before(self) -> Sequence[nodes.Var]:
        """The sums over the threads before the own one."""
        return [s.before for s in self._sums]

    @property
    def totals(self) -> Sequence[nodes.Var]:
        """The sums over all threads."""
        return [s.total for s in self._sums]

    def statements(self) -> Iterator[Stmt]:
        """Computes `before` and `totals`."""
        for s in self._sums:
            yield from self._in_wave(s)
        for level in _sharing(self._team).levels():
            yield from self._in_group(level)

    def _in_wave(self, s: _ThreadSum) -> Iterator[Stmt]:
        wave, distance = self._team.wave, 1
        yield assigned(s.total, s.value)
        while distance < wave:
            other = self._writer.local(f"{s.value.name}_below{distance}", INT)
            yield assigned(other, of_lane_below(s.total, distance))
            has_other = c.apply(ops.GE, thread_of(wave), c.whole(distance))
            yield from guarded(has_other, [plus(s.total, other)])
            distance *= 2
        yield assigned(s.before, c.apply(ops.SUB, s.total, s.value))
        if wave > 1:
            yield assigned(s.total, of_last_lane(s.total, wave))

    def _in_group(self, level: Level) -> Iterator[Stmt]:
        """Makes the totals of teams those of `count` teams."""
        positions = self._writer.positions
        own, _ = positions.divided(self._thread, level.threads)
        block, _ = positions.divided(self._thread, level.threads * level.count)
        start = times(block, level.count)
        first = constant(level.first)
        yield each(level.threads, [s.slots.put(add(first, own), s.total) for s in self._sums])
        yield nodes.Barrier()
        team = positions.expr(add(own, times(start, -1)))
        k = self._writer.local(f"team{level.threads}", INT)
        at = add(add(first, start), positions.of(k))
        is_before = c.apply(ops.LT, k, team)
        body: list[Stmt] = []
        for s in self._sums:
            other = self._writer.local(f"{s.value.name}_other", INT)
            body += [
                assigned(other, s.slots.get(at)),
                plus(s.total, other),
                plus(s.before, c.select(is_before, other, c.whole(0))),
            ]
        yield from (zeroed(s.total) for s in self._sums)
        yield counted(k, c.whole(0), c.whole(level.count), body)
