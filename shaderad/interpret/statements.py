"""Runs statements: they change variables and arrays.

`StatementRunner.block` returns the rows that continue after the block. Rows that leave by `break`
or `continue` are kept by their loop; those that leave by `return` are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cell,
    combined,
    filled,
    float_cells,
    mapped,
    parts,
    to_host,
)
from shaderad.interpret.derivatives import DiffCall, backward_diff
from shaderad.interpret.expressions import (
    buffer_place,
    columns,
    element,
    element_place,
    evaluate,
)
from shaderad.interpret.machine import (
    CallFrame,
    ElementRows,
    Line,
    ReportKind,
    Rows,
    Stored,
    at_rows,
    keep_extremes,
    keep_greatest,
    last_writes,
    push,
    unwritten,
)
from shaderad.ir import nodes
from shaderad.ir.shown import row_of
from shaderad.ir.tables import check_rows
from shaderad.ir.types import OF_OUR_KERNELS, Access

_NO_ROWS = np.zeros(0, np.intp)


@dataclass(slots=True)
class _LoopExits:
    """The rows that left the current iteration of a loop early."""

    continued: list[Rows] = field(default_factory=list[Rows])
    broken: list[Rows] = field(default_factory=list[Rows])


@dataclass(slots=True)
class StatementRunner(CallFrame):
    """A frame that runs statements."""

    loops: list[_LoopExits] = field(default_factory=list[_LoopExits])

    def block(self, body: tuple[nodes.Stmt, ...], rows: Rows) -> Rows:
        """Runs `body` for `rows`; returns those that reach its end."""
        for s in body:
            if not rows.size:
                break
            rows = _RUN[type(s)](self, s, rows)
        return rows

    def value(self, e: nodes.Expr, rows: Rows) -> Value:
        return evaluate(self, e, rows)

    # -- names --------------------------------------------------------------------------------

    def assign(self, s: nodes.Assign, rows: Rows) -> Rows:
        value = self.value(s.value, rows)
        if s.path:
            is_set = s.name in self.variables
            zero = self.machine.zero(self.types[s.name], len(rows))
            old = self.read(s.name, rows) if is_set else zero
            value = self._updated(old, s.path, rows, value)
        self.write(s.name, rows, value)
        return rows

    def _updated(self, value: Value, path: tuple[nodes.Step, ...], rows: Rows, new: Value) -> Value:
        """`value`, which has one row for each of `rows`, with `new` at `path`."""
        if not path:
            return new
        tape, step, rest = self.tape, path[0], path[1:]
        if isinstance(step, nodes.ElementStep):
            place = element_place(self, step.index, value, rows)
            old = element(tape, value, place, len(rows))
            new = at_rows(tape, self._updated(old, rest, rows, new), place.rows, len(rows))
            key = (place.rows, place.elements)
            return combined(lambda base, c: tape.put(base, key, c), value, new)
        if isinstance(step, nodes.SwizzleStep):
            key = (slice(None), columns(step.components))
            old = tape.take(cell(value), key, is_unique=True)
            return tape.put(cell(value), key, cell(self._updated(old, rest, rows, new)))
        name = step.name if isinstance(step, nodes.FieldStep) else "d"
        return parts(value) | {name: self._updated(parts(value)[name], rest, rows, new)}

    # -- arrays -------------------------------------------------------------------------------

    def store(self, s: nodes.Store, rows: Rows) -> Rows:
        value = self.value(s.value, rows)
        stored = self.machine.memory[s.buffer]
        place = buffer_place(self, s, rows)
        last = last_writes(place.elements)
        elements, writers = place.elements[last], place.rows[last]
        tape = self.tape
        value = at_rows(tape, value, writers, len(rows))
        if s.path:
            old = mapped(lambda c: tape.take(c, elements, is_unique=True), stored.value)
            value = self._updated(old, s.path, rows[writers], value)

        def put(base: Cell, new: Cell) -> Cell:
            is_whole = len(elements) == len(base.data) and np.all(np.diff(elements) > 0)
            return new if is_whole else tape.put(base, elements, new)

        stored.value = combined(put, stored.value, value)
        return rows

    def accumulate(self, s: nodes.Accumulate, rows: Rows) -> Rows:
        stored = self.machine.memory[s.buffer]
        if stored.buffer.access in OF_OUR_KERNELS:
            return self._write_own(s, rows, stored)
        if stored.buffer.access is not Access.ADD:
            return self._compete(s, rows, stored)
        place, _, value = self._operand(s, s.value, rows, Access.ADD)
        stored.value = combined(
            lambda base, new: self.tape.add_at(base, place.elements, new), stored.value, value
        )
        return rows

    def _compete(self, s: nodes.Accumulate, rows: Rows, stored: Stored) -> Rows:
        """A write to a Min or Max array and, in kernels with tangents, to its tangents."""
        place, _, value = self._operand(s, s.value, rows, stored.buffer.access)
        writes = [(stored, value)]
        if s.tangent is not None:
            _, _, dot = self._operand(s, s.tangent, rows, Access.ADD)
            writes.append((self.machine.memory[s.tangent_buffer], dot))
        keep_extremes(self.tape, writes, place.elements, self.threads[rows[place.rows]])
        return rows

    def _write_own(self, s: nodes.Accumulate, rows: Rows, stored: Stored) -> Rows:
        """A write to a Greatest or Lists array; neither has derivatives."""
        place, _, value = self._operand(s, s.value, rows, stored.buffer.access)
        words, values = cell(stored.value).data.copy(), cell(value).data
        if stored.buffer.access is Access.GREATEST:
            keep_greatest(words, place.elements, values)
        else:
            heads = cell(self.value(s.indices[-1], rows)).data[place.rows]
            push(words, place.elements, heads, values)
        stored.value = Cell(words)
        return rows

    def accumulate_gradient(self, s: nodes.AccumulateGradient, rows: Rows) -> Rows:
        place, part, value = self._operand(s, s.value, rows, Access.ADD)
        stored = self.machine.memory[s.buffer]
        gradients = self.machine.gradients
        if gradients is None:
            return rows
        bars = zip(float_cells(stored.value), float_cells(value), strict=True)
        if not s.is_store:
            for base, bar in bars:
                gradients.add_at(base, place.elements, bar.data)
            return rows
        is_written = self._whole(s, filled(part, lambda _: 1), rows[place.rows], Access.ADD)
        for (base, bar), mask in zip(bars, float_cells(is_written), strict=True):
            row, *axes = np.nonzero(mask.data)
            gradients.set_at(base, (place.elements[row], *axes), bar.data[row, *axes])
        return rows

    def _operand(
        self,
        s: nodes.Accumulate | nodes.AccumulateGradient,
        e: nodes.Expr,
        rows: Rows,
        access: Access,
    ) -> tuple[ElementRows, Value, Value]:
        """The elements of a write, the value of `e` for each, and that value as a whole element."""
        value = self.value(e, rows)
        place = buffer_place(self, s, rows)
        part = at_rows(self.tape, value, place.rows, len(rows))
        return place, part, self._whole(s, part, rows[place.rows], access)

    def _whole(
        self,
        s: nodes.Accumulate | nodes.AccumulateGradient,
        part: Value,
        rows: Rows,
        access: Access,
    ) -> Value:
        """Elements with `part` at the path of a write, neutral outside of it."""
        if not s.path:
            return part
        zeros = self.machine.zero(self.machine.memory[s.buffer].buffer.type.element, len(rows))
        return self._updated(filled(zeros, partial(unwritten, access)), s.path, rows, part)

    # -- calls --------------------------------------------------------------------------------

    def call(self, s: nodes.Evaluate, rows: Rows) -> Rows:
        self.value(s.call, rows)
        return rows

    def backward_diff(self, s: nodes.BackwardDiff, rows: Rows) -> Rows:
        args = [self.value(a, rows) for a in s.args]
        cotangent = self.value(s.cotangent, rows)
        diff = DiffCall(s.function, args, self.threads[rows])
        bars = backward_diff(self.machine, diff, cotangent)
        for a, pair, bar in zip(s.args, args, bars, strict=True):
            if bar is not None and isinstance(a, nodes.Var):
                self.write(a.name, rows, parts(pair) | {"d": bar})
        return rows

    def assert_(self, s: nodes.Assert, rows: Rows) -> Rows:
        fails = ~cell(self.value(s.condition, rows)).data
        self.report(ReportKind.ASSERT, s.span, s.text, rows[fails])
        return rows

    def print(self, s: nodes.Print, rows: Rows) -> Rows:
        values = [to_host(self.value(e, rows), (len(rows),)) for e in s.values]
        for k, thread in enumerate(self.threads[rows]):
            text = s.form.text(row_of(value, k) for value in values)
            self.machine.reports.printed.append(Line(s.span, int(thread), text))
        return rows

    # -- control flow -------------------------------------------------------------------------

    def branch(self, s: nodes.If, rows: Rows) -> Rows:
        condition = cell(self.value(s.condition, rows)).data
        then = self.block(s.then, rows[condition])
        otherwise = self.block(s.otherwise, rows[~condition])
        return _together(then, otherwise)

    def for_loop(self, s: nodes.For, rows: Rows) -> Rows:
        start, stop, step = (cell(self.value(e, rows)).data.astype(np.int64) for e in s.bounds)
        trips = _trip_count(start, stop, step)
        # Indexed by row of the frame: fewer rows remain in each iteration.
        first, stride, left = (np.zeros(self.count, np.int64) for _ in range(3))
        first[rows], stride[rows], left[rows] = start, step, trips

        def has_more(k: int, here: Rows) -> AnyArray:
            going = left[here] > k
            if s.limit is None or k < s.limit:
                position = (first[here] + k * stride[here])[going].astype(np.int32)
                if position.size:
                    self.write(s.variable, here[going], Cell(position))
            return going

        return self._loop(s, rows, has_more)

    def while_loop(self, s: nodes.While, rows: Rows) -> Rows:
        return self._loop(s, rows, lambda k, here: cell(self.value(s.condition, here)).data)

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
                self.report(ReportKind.LIMIT, s.span, str(s.limit), rows)
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
            self.result = self.merged(self.result, rows, value, s.value.type)
        return _NO_ROWS


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
# Kernels of plans are no programs of users.
check_rows(_RUN, nodes.STATEMENTS, but=(nodes.Barrier,))
