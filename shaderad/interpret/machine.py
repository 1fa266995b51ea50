"""The state of a run, and of one call of a function.

A `Frame` has a row for each thread that entered the function. Statements and expressions run on
`rows`: the sorted rows of their frame whose threads execute them. Invariant: nothing is evaluated
for other threads, so divergence needs no masks and changes no value, report or derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.interpret.cells import AnyArray, Cell, Value, combined, filled, mapped
from shaderad.interpret.memory import Memory
from shaderad.interpret.reports import RunReports
from shaderad.interpret.tape import CellCotangents, Tape
from shaderad.ir import nodes
from shaderad.ir.types import Type

Rows = AnyArray


@dataclass(slots=True)
class Machine:
    """The state of a run."""

    tape: Tape
    precision: Any
    """The NumPy type of ``float`` and ``half``."""
    memory: Memory
    reports: RunReports
    run: Callable[[Machine, nodes.Function, list[Value], AnyArray], Frame]
    """`functions.run`; a field, because expressions and function bodies need each other."""
    rounds_constants: bool = True
    """True if constants are rounded to their type as on a device: 0.1 to ``float``."""
    gradients: CellCotangents | None = None
    """The cotangents that ``w.d[i] += v`` adds to, while a custom derivative runs."""

    def zero(self, t: Type, count: int) -> Value:
        """All-zero values of type `t` for `count` threads."""
        return filled(t, (count,), self.precision)


@dataclass(slots=True)
class Frame:
    """The variables of one function call, one row per thread."""

    threads: AnyArray
    """Row-major number of the thread of each row."""
    types: dict[str, Type]
    """Types of parameters and locals."""
    variables: dict[str, Value]
    result: Value | None = None

    @property
    def count(self) -> int:
        return len(self.threads)


def all_rows(frame: Frame) -> Rows:
    return np.arange(frame.count)


def read(machine: Machine, frame: Frame, name: str, rows: Rows) -> Value:
    """A variable's values in `rows`."""
    return at_rows(machine.tape, frame.variables[name], rows, frame.count)


def write(machine: Machine, frame: Frame, name: str, rows: Rows, value: Value) -> None:
    """Gives a variable new values in `rows`."""
    old = frame.variables.get(name)
    frame.variables[name] = merged(machine, frame, old, rows, value, frame.types[name])


def merged(
    machine: Machine, frame: Frame, old: Value | None, rows: Rows, value: Value, t: Type
) -> Value:
    """`old`, by default zeros, with `value` in `rows`."""
    if len(rows) == frame.count:
        return value
    if old is None:
        old = machine.zero(t, frame.count)
    tape = machine.tape
    return combined(lambda base, new: tape.put(base, rows, new), old, value)


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
