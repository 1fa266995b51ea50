"""Runs statements: they change variables and arrays.

`StatementRunner.block` returns the rows that continue after the block. Rows that leave by `break`
or `continue` are kept by their loop; those that leave by `return` are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cell,
    cells,
    combined,
    data_of,
    float_cells,
    mapped,
    parts,
    rebuilt,
)
from shaderad.interpret.derivatives import DiffCall, backward_diff
from shaderad.interpret.expressions import (
    buffer_place,
    columns,
    element,
    element_place,
    evaluate,
)
from shaderad.interpret.forms import row_of, to_host
from shaderad.interpret.machine import Frame, Machine, Rows, at_rows, merged, read, write
from shaderad.interpret.memory import (
    ElementRows,
    Stored,
    Write,
    kept_extreme,
    last_writes,
    unwritten,
)
from shaderad.interpret.reports import Line, ReportKind
from shaderad.interpret.tape import Tape
from shaderad.ir import nodes
from shaderad.ir.tables import check_rows
from shaderad.ir.types import Access, Pair

_NO_ROWS = np.zeros(0, np.intp)


@dataclass(slots=True)
class _LoopExits:
    """The rows that left the current iteration of a loop early."""

    continued: list[Rows] = field(default_factory=list[Rows])
    broken: list[Rows] = field(default_factory=list[Rows])


@dataclass(slots=True)
class StatementRunner:
    """Runs statements of one frame."""

    machine: Machine
    frame: Frame
    loops: list[_LoopExits] = field(default_factory=list[_LoopExits])

    def block(self, body: tuple[nodes.Stmt, ...], rows: Rows) -> Rows:
        """Runs `body` for `rows`; returns those that reach its end."""
        for s in body:
            if not rows.size:
                break
            rows = _RUN[type(s)](self, s, rows)
        return rows

    def value(self, e: nodes.Expr, rows: Rows) -> Value:
        return evaluate(self.machine, self.frame, e, rows)

    # -- names --------------------------------------------------------------------------------

    def assign(self, s: nodes.Assign, rows: Rows) -> Rows:
        value = self.value(s.value, rows)
        if s.path:
            old = self._variable(s.name, rows)
            value = self._updated(old, s.path, rows, lambda _: value)
        write(self.machine, self.frame, s.name, rows, value)
        return rows

    def _variable(self, name: str, rows: Rows) -> Value:
        if name not in self.frame.variables:
            return self.machine.zero(self.frame.types[name], len(rows))
        return read(self.machine, self.frame, name, rows)

    def _updated(
        self,
        value: Value,
        path: tuple[nodes.Step, ...],
        rows: Rows,
        change: Callable[[Value], Value],
    ) -> Value:
        """`value`, which has one row for each of `rows`, with the part at `path` changed."""
        if not path:
            return change(value)
        step, rest = path[0], path[1:]
        if isinstance(step, nodes.ElementStep):
            return self._with_element(value, step, rest, rows, change)
        if isinstance(step, nodes.SwizzleStep):
            key = (slice(None), columns(step.components))
            tape = self.machine.tape
            old = tape.take(cell(value), key, is_unique=True)
            return tape.put(cell(value), key, cell(self._updated(old, rest, rows, change)))
        name = step.name if isinstance(step, nodes.FieldStep) else "d"
        return parts(value) | {name: self._updated(parts(value)[name], rest, rows, change)}

    def _with_element(
        self,
        value: Value,
        step: nodes.ElementStep,
        rest: tuple[nodes.Step, ...],
        rows: Rows,
        change: Callable[[Value], Value],
    ) -> Value:
        index = data_of(self.value(step.index, rows))
        place = element_place(self.machine, self.frame, step.index, index, value, rows)
        new = self._updated(element(self.machine, value, place), rest, rows, change)
        tape, key = self.machine.tape, (place.rows, place.elements)
        inside = at_rows(tape, new, place.rows, len(rows))
        return combined(lambda base, c: tape.put(base, key, c), value, inside)

    # -- arrays -------------------------------------------------------------------------------

    def store(self, s: nodes.Store, rows: Rows) -> Rows:
        value = self.value(s.value, rows)
        stored = self.machine.memory[s.buffer]
        place = buffer_place(self.machine, self.frame, s, rows)
        last = last_writes(place.elements)
        elements, writers = place.elements[last], place.rows[last]
        tape = self.machine.tape
        value = at_rows(tape, value, writers, len(rows))
        if s.path:
            old = mapped(lambda c: tape.take(c, elements, is_unique=True), stored.value)
            value = self._updated(old, s.path, rows[writers], lambda _: value)
        stored.value = combined(
            lambda base, new: _with(tape, base, elements, new), stored.value, value
        )
        return rows

    def accumulate(self, s: nodes.Accumulate, rows: Rows) -> Rows:
        stored = self.machine.memory[s.buffer]
        if stored.buffer.access is not Access.ADD:
            return self._compete(s, rows, stored)
        place, value = self._addend(s, rows, Access.ADD)
        tape = self.machine.tape
        stored.value = combined(
            lambda base, new: tape.add_at(base, place.elements, new), stored.value, value
        )
        return rows

    def _compete(self, s: nodes.Accumulate, rows: Rows, stored: Stored) -> Rows:
        """A write to a Min or Max array and, in kernels with tangents, to its tangents."""
        place, value = self._addend(s, rows, stored.buffer.access)
        threads = self.frame.threads[rows[place.rows]]
        values = list(cells(value))
        new_dots: list[Cell | None] = [None] * len(values)
        dots = list(new_dots)
        if s.tangent is not None:
            _, dot = self._addend(replace(s, value=s.tangent), rows, Access.ADD)
            new_dots = [*cells(dot)]
            dots = [*cells(self.machine.memory[s.tangent_buffer].value)]
        extremes = [
            kept_extreme(self.machine.tape, stored, base,
                         Write(k, place.elements, values[k], threads, new_dots[k]), dots[k])
            for k, base in enumerate(cells(stored.value))
        ]  # fmt: skip
        stored.value = rebuilt(stored.value, iter([base for base, _ in extremes]))
        if s.tangent is not None:
            tangents = self.machine.memory[s.tangent_buffer]
            changed = iter([dot for _, dot in extremes if dot is not None])
            tangents.value = rebuilt(tangents.value, changed)
        return rows

    def accumulate_gradient(self, s: nodes.AccumulateGradient, rows: Rows) -> Rows:
        place, value = self._addend(s, rows, Access.ADD)
        stored = self.machine.memory[s.buffer]
        gradients = self.machine.gradients
        if gradients is None:
            return rows
        bars = zip(float_cells(stored.value), float_cells(value), strict=True)
        if not s.is_store:
            for base, bar in bars:
                gradients.add_at(base, place.elements, bar.data)
            return rows
        for (base, bar), mask in zip(bars, self._path_masks(s, rows, place), strict=True):
            row, *axes = np.nonzero(mask)
            gradients.set_at(base, (place.elements[row], *axes), bar.data[row, *axes])
        return rows

    def _path_masks(
        self, s: nodes.AccumulateGradient, rows: Rows, place: ElementRows
    ) -> list[AnyArray]:
        """For each float cell of the elements, True for the components at the path of the write."""
        t = self.machine.memory[s.buffer].buffer.type.element
        zeros = self.machine.zero(t, len(place.rows))

        def ones(value: Value) -> Value:
            return mapped(lambda c: Cell(np.ones_like(c.data)), value)

        value = self._updated(zeros, s.path, rows[place.rows], ones)
        return [c.data != 0 for c in float_cells(value)]

    def _addend(
        self, s: nodes.Accumulate | nodes.AccumulateGradient, rows: Rows, access: Access
    ) -> tuple[ElementRows, Value]:
        """The elements of a write, and whole operands for them, neutral outside the path."""
        value = self.value(s.value, rows)
        place = buffer_place(self.machine, self.frame, s, rows)
        value = at_rows(self.machine.tape, value, place.rows, len(rows))
        if s.path:
            element_type = self.machine.memory[s.buffer].buffer.type.element
            whole = mapped(
                lambda c: Cell(np.full_like(c.data, unwritten(access, c.data.dtype))),
                self.machine.zero(element_type, len(place.rows)),
            )
            value = self._updated(whole, s.path, rows[place.rows], lambda _: value)
        return place, value

    # -- calls --------------------------------------------------------------------------------

    def call(self, s: nodes.Evaluate, rows: Rows) -> Rows:
        self.value(s.call, rows)
        return rows

    def backward_diff(self, s: nodes.BackwardDiff, rows: Rows) -> Rows:
        args = [self.value(a, rows) for a in s.args]
        cotangent = self.value(s.cotangent, rows)
        is_pair = [isinstance(a.type, Pair) for a in s.args]
        diff = DiffCall(s.function, args, is_pair, self.frame.threads[rows])
        bars = backward_diff(self.machine, diff, cotangent)
        for a, pair, bar in zip(s.args, args, bars, strict=True):
            if bar is not None and isinstance(a, nodes.Var):
                write(self.machine, self.frame, a.name, rows, parts(pair) | {"d": bar})
        return rows

    def assert_(self, s: nodes.Assert, rows: Rows) -> Rows:
        fails = ~data_of(self.value(s.condition, rows))
        self.machine.reports.add(ReportKind.ASSERT, s.span, s.text, self.frame.threads[rows[fails]])
        return rows

    def print(self, s: nodes.Print, rows: Rows) -> Rows:
        values = [to_host(self.value(e, rows), (len(rows),)) for e in s.values]
        for k, thread in enumerate(self.frame.threads[rows]):
            text = s.form.text(row_of(value, k) for value in values)
            self.machine.reports.printed.append(Line(s.span, int(thread), text))
        return rows

    # -- control flow -------------------------------------------------------------------------

    def branch(self, s: nodes.If, rows: Rows) -> Rows:
        condition = data_of(self.value(s.condition, rows))
        then = self.block(s.then, rows[condition])
        otherwise = self.block(s.otherwise, rows[~condition])
        return _together(then, otherwise)

    def for_loop(self, s: nodes.For, rows: Rows) -> Rows:
        start, stop, step = (
            data_of(self.value(e, rows)).astype(np.int64) for e in (s.start, s.stop, s.step)
        )
        trips = _trip_count(start, stop, step)
        # Indexed by row of the frame: fewer rows remain in each iteration.
        first, stride, left = (np.zeros(self.frame.count, np.int64) for _ in range(3))
        first[rows], stride[rows], left[rows] = start, step, trips

        def has_more(k: int, here: Rows) -> AnyArray:
            going = left[here] > k
            if s.limit is None or k < s.limit:
                position = (first[here] + k * stride[here])[going].astype(np.int32)
                if position.size:
                    write(self.machine, self.frame, s.variable, here[going], Cell(position))
            return going

        return self._loop(s, rows, has_more)

    def while_loop(self, s: nodes.While, rows: Rows) -> Rows:
        return self._loop(s, rows, lambda k, here: data_of(self.value(s.condition, here)))

    def _loop(
        self, s: nodes.For | nodes.While, rows: Rows, has_more: Callable[[int, Rows], AnyArray]
    ) -> Rows:
        """Iterates until `has_more` is false for all rows; reports rows that reach the limit."""
        finished: list[Rows] = []
        k = 0
        while rows.size:
            going = has_more(k, rows)
            finished.append(rows[~going])
            rows = rows[going]
            if not rows.size:
                break
            if s.limit is not None and k >= s.limit:
                threads = self.frame.threads[rows]
                self.machine.reports.add(ReportKind.LIMIT, s.span, str(s.limit), threads)
                break
            loop = _LoopExits()
            self.loops.append(loop)
            rows = _together(self.block(s.body, rows), *loop.continued)
            self.loops.pop()
            finished += loop.broken
            k += 1
        return _together(rows, *finished)

    def break_(self, s: nodes.Break, rows: Rows) -> Rows:
        self.loops[-1].broken.append(rows)
        return _NO_ROWS

    def continue_(self, s: nodes.Continue, rows: Rows) -> Rows:
        self.loops[-1].continued.append(rows)
        return _NO_ROWS

    def return_(self, s: nodes.Return, rows: Rows) -> Rows:
        if s.value is not None:
            value = self.value(s.value, rows)
            frame = self.frame
            frame.result = merged(self.machine, frame, frame.result, rows, value, s.value.type)
        return _NO_ROWS


def _with(tape: Tape, base: Cell, elements: AnyArray, new: Cell) -> Cell:
    """`base` with some elements replaced."""
    if len(elements) == len(base.data) and np.all(np.diff(elements) > 0):
        return new
    return tape.put(base, elements, new)


def _together(*groups: Rows) -> Rows:
    """The rows of all groups, sorted."""
    filled = [g for g in groups if g.size]
    if len(filled) == 1:
        return filled[0]
    return np.sort(np.concatenate(filled)) if filled else _NO_ROWS


def _trip_count(start: AnyArray, stop: AnyArray, step: AnyArray) -> AnyArray:
    """The length of ``range(start, stop, step)``; 0 for a step of 0."""
    distance = np.where(step > 0, stop - start, start - stop)
    size = np.abs(step)
    count = -(-distance // np.where(size == 0, 1, size))
    return np.where(size == 0, 0, np.maximum(count, 0))


_RUN: dict[type[nodes.Stmt], Callable[[StatementRunner, Any, Rows], Rows]] = {
    nodes.Assign: StatementRunner.assign,
    nodes.Store: StatementRunner.store,
    nodes.Accumulate: StatementRunner.accumulate,
    nodes.AccumulateGradient: StatementRunner.accumulate_gradient,
    nodes.Evaluate: StatementRunner.call,
    nodes.BackwardDiff: StatementRunner.backward_diff,
    nodes.Assert: StatementRunner.assert_,
    nodes.Print: StatementRunner.print,
    nodes.If: StatementRunner.branch,
    nodes.For: StatementRunner.for_loop,
    nodes.While: StatementRunner.while_loop,
    nodes.Break: StatementRunner.break_,
    nodes.Continue: StatementRunner.continue_,
    nodes.Return: StatementRunner.return_,
}
check_rows(_RUN, nodes.STATEMENTS)
