"""Loops of which each iteration is several steps -> their instructions.

Two buffers hold each carry: an iteration reads one and writes the other. Invariant: when the
loop ends, the buffers of its results hold the last carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shaderad.execute import schedule as to
from shaderad.execute.plan_steps import work_step

if TYPE_CHECKING:
    from shaderad.execute.plan_to_schedule import Scheduler
    from shaderad.ir.arrays import Value
    from shaderad.plan.steps import Plan, Repeat, RepeatWhile


def add_repeat(scheduler: Scheduler, step: Repeat) -> None:
    """A loop that runs as often as the sizes say."""
    node = step.node
    carries = _Carries(scheduler, step.body, node.results[: node.carry_count])
    start = carries.moves(step.reads[: node.carry_count])
    with scheduler.block() as body:
        _hold(scheduler, step.body.inputs[node.carry_count :], step.reads[node.carry_count :])
        carries.iterate()
        for row in step.rows:
            store = work_step(row.work, is_filled=True)
            ((key, _), (out, _)) = store.values.items()
            store.values.update({key: row.row, out: row.target})
            scheduler.binder.add(store)
    scheduler.instructions.append(
        to.Repeat(
            symbol=step.symbol,
            count=node.count,
            is_reversed=node.is_reversed,
            carries=carries.pairs,
            rows=tuple(map(scheduler.places.number, node.results[node.carry_count :])),
            start=tuple(start),
            body=tuple(body),
        )
    )


def add_while(scheduler: Scheduler, step: RepeatWhile) -> None:
    """A loop that runs until the device says that it has ended."""
    places, node = scheduler.places, step.node
    *results, count = node.results
    carry_count = node.carry_count
    flag, counter = step.body.inputs[carry_count : carry_count + 2]
    places.make(flag)
    carries = _Carries(scheduler, step.body, (*results, flag, count))
    scheduler.instructions.extend(carries.moves(step.reads[:carry_count]))
    first_flag, first_count = places.number(flag), places.number(count)
    scheduler.instructions.append(to.Set(first_flag, 1, places.byte_count(flag)))
    scheduler.instructions.append(to.Set(first_count, 0, places.byte_count(counter)))
    with scheduler.block() as body:
        _hold(scheduler, step.body.inputs[carry_count + 2 :], step.reads[carry_count:])
        carries.iterate()
    wants = places.number(step.body.outputs[-1][0])
    scheduler.instructions.append(
        to.RepeatWhile(
            carries=carries.pairs,
            body=tuple(body),
            goes_on=first_flag,
            wants=wants,
            limit=node.limit,
            span=node.span,
        )
    )


def _hold(scheduler: Scheduler, inner: Iterable[Value], outer: Iterable[Value]) -> None:
    places = scheduler.places
    for one, other in zip(inner, outer, strict=True):
        places.hold(one, places.number(other), places.start(other))


class _Carries:
    """The carries of one loop and their buffers."""

    def __init__(self, scheduler: Scheduler, body: Plan, results: Sequence[Value]) -> None:
        self._scheduler = scheduler
        self._places = places = scheduler.places
        self._body = body
        self._new = [v for v, _ in body.outputs[: len(results)]]
        self.pairs = tuple((places.number(v), places.scratch(places.byte_count(v)))
                           for v in results)  # fmt: skip
        """Where each result lies, and the buffer beside it."""

    def moves(self, operands: Sequence[Value]) -> list[to.Move]:
        """What brings the first carries where the first iteration reads them."""
        places = self._places
        return [
            to.Move(places.number(v), places.start(v), first, 0, places.byte_count(v))
            for v, (first, _) in zip(operands, self.pairs, strict=False)
        ]

    def iterate(self) -> None:
        """One iteration: it reads the first of each pair and writes the second."""
        places = self._places
        for v, (first, _) in zip(self._body.inputs, self.pairs, strict=False):
            places.hold(v, first)
        for v, (_, second) in reversed([*zip(self._new, self.pairs, strict=True)]):
            places.hold(v, second)
        new = frozenset(self._new)
        self._scheduler.add_steps(self._body, lambda v: None if v in new else places.make(v))
        for v, (_, second) in zip(self._new, self.pairs, strict=True):
            # One value may be what several carries become.
            self._scheduler.move(places.number(v), 0, second, places.byte_count(v))
