"""Runs the body of a function for the threads that call it."""

from __future__ import annotations

import numpy as np

from shaderad.interpret.cells import AnyArray, Value
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.interpret.reports import RunReports
from shaderad.interpret.statements import StatementRunner
from shaderad.interpret.tape import Tape
from shaderad.ir.nodes import Function


def machine(*, rounds_constants: bool = True) -> Machine:
    """A machine without arrays, which computes in float64 and records nothing."""
    return Machine(
        tape=Tape(is_recording=False), precision=np.float64, memory={}, reports=RunReports(),
        run=run, rounds_constants=rounds_constants,
    )  # fmt: skip


def run(machine: Machine, function: Function, args: list[Value], threads: AnyArray) -> Frame:
    """The frame after the body."""
    names = [p.name for p in function.parameters]
    types = dict(function.local_types) | {p.name: p.type for p in function.parameters}
    frame = Frame(threads, types, dict(zip(names, args, strict=True)))
    StatementRunner(machine, frame).block(function.body, all_rows(frame))
    return frame
