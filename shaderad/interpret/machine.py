"""The state of a run: its arrays and reports, and the variables of each call of a function.

A `CallFrame` has a row for each thread that entered the function. Statements and expressions run on
`rows`: the sorted rows of their frame whose threads execute them. Invariant: nothing is evaluated
for other threads, so divergence needs no masks and changes no value, report or derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from shaderad.diagnostics import Span
from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Shape,
    Value,
    cells,
    combined,
    mapped,
    rebuilt,
    zeros,
)
from shaderad.interpret.tape import CellCotangents, Tape
from shaderad.ir import nodes
from shaderad.ir.types import Access, Type

Rows = AnyArray
_NO_THREAD = np.iinfo(np.int64).max


class ReportKind(Enum):
    """The kind of error."""

    BOUNDS = "bounds"
    LIMIT = "limit"
    ASSERT = "assert"
    DIVISION = "division"


@dataclass(frozen=True, slots=True)
class RunReport:
    """An error at one place of the program, in the first thread that met it."""

    kind: ReportKind
    span: Span
    name: str
    """The array, the limit, or the assert's text."""
    thread: int
    """Row-major number of the thread."""
    index: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A line that one thread printed."""

    span: Span
    thread: int
    """Row-major number of the thread."""
    text: str


@dataclass(slots=True)
class RunReports:
    """All reports and printed lines of a run, in order of execution."""

    reports: list[RunReport] = field(default_factory=list[RunReport])
    printed: list[Line] = field(default_factory=list[Line])
    """The lines of each thread are in order; those of different threads are interleaved."""

    def add(
        self, kind: ReportKind, span: Span, name: str, threads: AnyArray, *access: AnyArray
    ) -> None:
        """Reports an error in `threads`, of which there may be none.

        `access` is, for each thread, the index out of range and the length of its axis.
        """
        if threads.size:
            first = np.argmin(threads)
            numbers = (int(array[first]) for array in (threads, *access))
            self.reports.append(RunReport(kind, span, name, *numbers))


@dataclass(slots=True)
class Machine:
    """The state of a run."""

    tape: Tape
    precision: Any
    """The NumPy type of ``float`` and ``half``."""
    memory: dict[str, Stored]
    run: Callable[[Machine, nodes.Function, list[Value], AnyArray], CallFrame]
    """`run.run_function`; a field, because expressions and function bodies need each other."""
    rounds_constants: bool = True
    """True if constants are rounded to their type as on a device: 0.1 to ``float``."""
    reports: RunReports = field(default_factory=RunReports)
    gradients: CellCotangents | None = None
    """The cotangents that ``w.d[i] += v`` adds to, while a custom derivative runs."""

    def zero(self, t: Type, count: int) -> Value:
        """All-zero values of type `t` for `count` threads."""
        return zeros(t, (count,), self.precision)


@dataclass(slots=True)
class CallFrame:
    """The variables of one function call, one row per thread."""

    machine: Machine
    threads: AnyArray
    """Row-major number of the thread of each row."""
    types: dict[str, Type]
    """Types of parameters and locals."""
    variables: dict[str, Value]
    result: Value | None = None

    @property
    def tape(self) -> Tape:
        return self.machine.tape

    @property
    def count(self) -> int:
        return len(self.threads)

    @property
    def rows(self) -> Rows:
        """All rows."""
        return np.arange(self.count)

    def read(self, name: str, rows: Rows) -> Value:
        """A variable's values in `rows`."""
        return at_rows(self.tape, self.variables[name], rows, self.count)

    def write(self, name: str, rows: Rows, value: Value) -> None:
        """Gives a variable new values in `rows`."""
        old = self.variables.get(name)
        self.variables[name] = self.merged(old, rows, value, self.types[name])

    def merged(self, old: Value | None, rows: Rows, value: Value, t: Type) -> Value:
        """`old`, by default zeros, with `value` in `rows`."""
        if len(rows) == self.count:
            return value
        if old is None:
            old = self.machine.zero(t, self.count)
        return combined(lambda base, new: self.tape.put(base, rows, new), old, value)

    def report(
        self, kind: ReportKind, span: Span, name: str, rows: Rows, *access: AnyArray
    ) -> None:
        """Reports an error in `rows`, of which there may be none."""
        self.machine.reports.add(kind, span, name, self.threads[rows], *access)


def at_rows(tape: Tape, value: Value, rows: Rows, count: int) -> Value:
    """The given rows of `value`, which has `count` rows."""
    if len(rows) == count:
        return value
    return mapped(lambda c: tape.take(c, rows, is_unique=True), value)


def spread(tape: Tape, part: Cell, rows: Rows, count: int) -> Cell:
    """`part` in `rows` of `count`, zeros elsewhere."""
    if len(rows) == count:
        return part
    return tape.put(Cell(np.zeros((count, *part.data.shape[1:]), part.data.dtype)), rows, part)


# -- arrays -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Stored:
    """An array in memory: a value whose threads are its elements in row-major order.

    Invariant: a write makes a new value, so that earlier reads keep their derivatives.
    """

    buffer: nodes.Buffer
    shape: Shape
    value: Value
    owners: dict[int, AnyArray] = field(default_factory=dict[int, AnyArray])
    """For Min and Max arrays, by position of a cell: the threads whose values the array holds."""


@dataclass(frozen=True, slots=True)
class ElementRows:
    """Elements of an array that rows access, at most one per row."""

    elements: AnyArray
    """Row-major numbers of the elements in range."""
    rows: AnyArray
    """The rows that access them."""
    missed: tuple[AnyArray, AnyArray, AnyArray]
    """Rows out of range, their index, and the length of its axis."""


def elements_at(indices: Sequence[AnyArray], shape: Shape) -> ElementRows:
    """The elements at `indices`, an array per axis; `missed` names the first axis out of range."""
    count = len(indices[0])
    elements = np.zeros(count, np.int64)
    is_inside = np.ones(count, bool)
    nothing = np.zeros(0, np.int64)
    missed: tuple[AnyArray, AnyArray, AnyArray] = (nothing, nothing, nothing)
    for index, length in zip(indices, shape, strict=True):
        fits = (index >= 0) & (index < length)
        outside = np.flatnonzero(is_inside & ~fits)
        if not missed[0].size:
            missed = (outside, index[outside], np.full(len(outside), length))
        is_inside &= fits
        elements = elements * length + index
    rows = np.flatnonzero(is_inside)
    return ElementRows(elements[rows], rows, missed)


def elements_behind(base: AnyArray, count: AnyArray, index: AnyArray) -> ElementRows:
    """The elements at `index` behind pointers, one pointer per row."""
    is_inside = (index >= 0) & (index < count)
    rows, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    return ElementRows((base + index)[rows], rows, (outside, index[outside], count[outside]))


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """The initial value of the elements of a written array."""
    if access not in (Access.MIN, Access.MAX):
        return 0
    is_min = access is Access.MIN
    if dtype.kind == "f":
        return np.inf if is_min else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if is_min else limits.min


def unwritten(access: Access, dtype: np.dtype[Any]) -> Any:
    """The operand for components that are not written; NaN never replaces an extreme."""
    is_extreme = access in (Access.MIN, Access.MAX)
    return np.nan if is_extreme and dtype.kind == "f" else neutral(access, dtype)


def last_writes(elements: AnyArray) -> AnyArray:
    """For each written element the last row that writes it."""
    if np.all(np.diff(elements) > 0):
        return np.arange(len(elements))
    _, first_from_behind = np.unique(elements[::-1], return_index=True)
    return np.sort(len(elements) - 1 - first_from_behind)


def keep_extremes(
    tape: Tape, writes: Sequence[tuple[Stored, Value]], elements: AnyArray, threads: AnyArray
) -> None:
    """Simultaneous writes of `threads` to a Min or Max array, scalar by scalar.

    The extreme value stays. Among equal values the lowest thread wins, with its first write.

    Args:
        tape: Records what changes.
        writes: The array and the values; in kernels with tangents also the array of tangents and
            the tangents, which follow the values.
        elements: For each value the number of its element.
        threads: For each value the thread that writes it.
    """
    stored, _ = writes[0]
    is_min = stored.buffer.access is Access.MIN
    bases = [[*cells(target.value)] for target, _ in writes]
    values = [[*cells(value)] for _, value in writes]
    for part, (base, value) in enumerate(zip(bases[0], values[0], strict=True)):
        shape = base.data.shape
        owner = stored.owners.setdefault(part, np.full(shape, _NO_THREAD, np.int64))
        for component in np.ndindex(shape[1:]):
            column = (slice(None), *component)
            held = (base.data[column][elements], owner[column][elements])
            rows = _replacing_rows(elements, threads, value.data[column], held, is_min=is_min)
            if not rows.size:
                continue
            key = (elements[rows], *component)
            owner[key] = threads[rows]
            for old, new in zip(bases, values, strict=True):
                winners = tape.take(new[part], (rows, *component), is_unique=True)
                old[part] = tape.put(old[part], key, winners)
    for (target, _), kept in zip(writes, bases, strict=True):
        target.value = rebuilt(target.value, iter(kept))


def keep_greatest(pairs: AnyArray, elements: AnyArray, values: AnyArray) -> None:
    """Writes `values` to a Greatest array of `pairs`, which compare by their last word first."""
    order = np.lexsort((values[:, 0], values[:, 1]))
    for element, value in zip(elements[order], values[order], strict=True):
        if tuple(value[::-1]) > tuple(pairs[element][::-1]):
            pairs[element] = value


def push(words: AnyArray, elements: AnyArray, heads: AnyArray, items: AnyArray) -> None:
    """Puts `items` on lists of the array `words`, one after the other.

    `heads` are the indices of the lists on the last axis, `elements` their numbers in the array.
    """
    for element, head, item in zip(elements, heads, items, strict=True):
        words[element - head + item] = words[element]
        words[element] = item


def _replacing_rows(
    elements: AnyArray,
    threads: AnyArray,
    value: AnyArray,
    held: tuple[AnyArray, AnyArray],
    *,
    is_min: bool,
) -> AnyArray:
    """The rows that replace the values and owners `held`, at most one per element; never NaN."""
    before, owner = held
    is_better = value < before if is_min else value > before
    rows = np.flatnonzero(is_better | ((value == before) & (threads < owner)))
    # The rows of an element are sorted by value, equal values by thread; the first one is kept.
    # Ints widen to 64 bits, where each can be negated.
    best = value[rows] if value.dtype.kind == "f" else value[rows].astype(np.int64)
    rows = rows[np.lexsort((threads[rows], best if is_min else -best, elements[rows]))]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = np.diff(elements[rows]) != 0
    return rows[is_first]
