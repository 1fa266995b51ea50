"""What one run holds, and what one call of a function holds.

A `Frame` has a row for each thread that entered the function. Statements and expressions run on
`rows`: the sorted rows of their frame that are here now. Invariant: nothing is evaluated for
another thread, so divergence costs no masks and leaves no trace in values, reports or derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.interpret.cells import AnyArray, Cell, Value, combined, filled, mapped
from shaderad.interpret.memory import Memory
from shaderad.interpret.reports import Reports
from shaderad.interpret.tape import Cotangents, Tape
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
    reports: Reports
    run: Callable[[Machine, nodes.Function, list[Value], AnyArray], Frame]
    """Runs a function's body for threads; expressions need it, and it needs expressions."""
    rounds_constants: bool = True
    """Whether numbers of the program are those that a device's types hold: 0.1 as a ``float``."""
    gradients: Cotangents | None = None
    """Where ``w.d[i] += v`` adds while cotangents are pulled back."""

    def zero(self, t: Type, count: int) -> Value:
        """All-zero values of type `t` for `count` threads."""
        return filled(t, (count,), self.precision)


@dataclass(slots=True)
class Frame:
    """The variables of one function, a row a thread."""

    threads: AnyArray
    """The row-major number of each row's thread."""
    types: dict[str, Type]
    """Of parameters and locals."""
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
    known = frame.variables.get(name)
    frame.variables[name] = merged(machine, frame, known, rows, value, frame.types[name])


def merged(
    machine: Machine, frame: Frame, known: Value | None, rows: Rows, value: Value, t: Type
) -> Value:
    """`known` with `value` in `rows`."""
    if len(rows) == frame.count:
        return value
    if known is None:
        known = machine.zero(t, frame.count)
    tape = machine.tape
    return combined(lambda base, new: tape.put(base, rows, new), known, value)


def at_rows(tape: Tape, value: Value, rows: Rows, count: int) -> Value:
    """`value`, which has `count` rows, in some of them."""
    if len(rows) == count:
        return value
    return mapped(lambda c: tape.take(c, rows, is_unique=True), value)


def spread(tape: Tape, part: Cell, rows: Rows, count: int) -> Cell:
    """`part` in `rows` of `count`, zeros elsewhere."""
    if len(rows) == count:
        return part
    return tape.put(Cell(np.zeros((count, *part.data.shape[1:]), part.data.dtype)), rows, part)
