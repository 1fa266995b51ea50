"""Loops of which each iteration is several steps -> their commands.

Two buffers hold each carry: an iteration reads one and writes the other. Invariant: when the
loop ends, the buffers of its results hold the last carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir import arrays, sizes
from shaderad.session.commands import Fill, While
from shaderad.session.plan_steps import work_step

if TYPE_CHECKING:
    from shaderad.graph.plan import Plan, Repeat, RepeatWhile
    from shaderad.ir.arrays import Value
    from shaderad.session.prepared import Preparation

ITERATIONS_A_LOOK = 8
"""Iterations of a while loop between two looks at whether it goes on."""


def add_repeat(preparation: Preparation, step: Repeat) -> None:
    """A loop that runs as often as the sizes say."""
    places, node = preparation.places, step.node
    count = sizes.evaluate(node.count, places.known)
    carries = _Carries(preparation, step.body, node.results[: node.carry_count])
    carries.start(step.reads[: node.carry_count], is_odd=count % 2 == 1)
    inputs = step.body.inputs[node.carry_count :]
    for inner, outer in zip(inputs, step.reads[node.carry_count :], strict=True):
        places.hold(inner, places.number(outer), places.offset(outer))
    for k in range(count):
        places.known[step.symbol] = count - 1 - k if node.is_reversed else k
        carries.iterate()
        for row in step.rows:
            store = work_step(row.work, is_filled=True)
            ((key, _), (out, _)) = store.values.items()
            store.values.update({key: row.row, out: row.target})
            preparation.binder.add(store)
        carries.drop_rows()
    carries.finish()


def add_while(preparation: Preparation, step: RepeatWhile) -> None:
    """A loop that runs until the device says that it has ended."""
    places, node = preparation.places, step.node
    *results, count = node.results
    carry_count = node.carry_count
    flag, counter = step.body.inputs[carry_count : carry_count + 2]
    places.make(flag)
    carries = _Carries(preparation, step.body, (*results, flag, count))
    carries.start(step.reads[:carry_count], is_odd=False)
    preparation.commands.append(Fill(places.number(flag), 1, places.byte_count(flag)))
    preparation.commands.append(Fill(places.number(count), 0, places.byte_count(counter)))
    inputs = step.body.inputs[carry_count + 2 :]
    for inner, outer in zip(inputs, step.reads[carry_count:], strict=True):
        places.hold(inner, places.number(outer), places.offset(outer))
    with preparation.block() as block:
        carries.iterate()
        carries.drop_rows()
        carries.iterate()
    (wants,) = carries.rows()
    preparation.commands.append(
        While(
            commands=tuple(block),
            times=ITERATIONS_A_LOOK // 2,
            goes_on=places.number(flag),
            wants=places.number(wants),
            ran_over=lambda: preparation.device.note(limit_error(node)),
        )
    )
    carries.drop_rows()
    carries.finish()
    places.drop([flag])


def limit_error(node: arrays.WhileLoop) -> Exception:
    """What a loop that ran past its limit raises at the next look at the device."""
    return error("SR0661", node.span, kernel="while_loop", length=node.limit, count=1)


class _Carries:
    """The carries of one loop and their buffers."""

    def __init__(self, preparation: Preparation, body: Plan, results: Sequence[Value]) -> None:
        self._preparation = preparation
        self._places = preparation.places
        self._body = body
        self._results = results
        self._new = [v for v, _ in body.outputs[: len(results)]]
        self._current: list[int] = []
        self._other: list[int] = []
        self._scratch: list[tuple[int, int]] = []

    def start(self, operands: Sequence[Value], *, is_odd: bool) -> None:
        """Brings the first carries where the first iteration reads them."""
        places = self._places
        for result in self._results:
            size = places.byte_count(result)
            own, other = places.number(result), places.scratch(size)
            self._scratch.append((other, size))
            self._current.append(other if is_odd else own)
            self._other.append(own if is_odd else other)
        for operand, number in zip(operands, self._current, strict=False):
            size = places.byte_count(operand)
            self._preparation.copy(places.number(operand), places.offset(operand), number, size)

    def iterate(self) -> None:
        """One iteration."""
        places = self._places
        for v, number in zip(self._body.inputs, self._current, strict=False):
            places.hold(v, number)
        for v, number in reversed([*zip(self._new, self._other, strict=True)]):
            places.hold(v, number)
        new = frozenset(self._new)
        self._preparation.add_steps(self._body, lambda v: None if v in new else places.make(v))
        for v, number in zip(self._new, self._other, strict=True):
            # One value may be what several carries become.
            self._preparation.copy(places.number(v), 0, number, places.byte_count(v))
        self._current, self._other = self._other, self._current

    def rows(self) -> list[Value]:
        """What an iteration leaves besides the carries."""
        values = dict.fromkeys(v for v, _ in self._body.outputs[len(self._new) :])
        return [v for v in values if v.producer is not None and v not in self._new]

    def drop_rows(self) -> None:
        self._places.drop(self.rows())

    def finish(self) -> None:
        """Lets the second buffers serve again."""
        for number, size in self._scratch:
            self._places.give_back(number, size)
