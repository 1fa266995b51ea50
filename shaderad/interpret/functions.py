"""The body of a function, run for the threads that call it."""

from __future__ import annotations

from shaderad.interpret.cells import AnyArray, Value
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.interpret.statements import Runner
from shaderad.ir.nodes import Function


def run(machine: Machine, function: Function, args: list[Value], threads: AnyArray) -> Frame:
    """The frame as the body leaves it."""
    names = [p.name for p in function.parameters]
    types = dict(function.local_types) | {p.name: p.type for p in function.parameters}
    frame = Frame(threads, types, dict(zip(names, args, strict=True)))
    Runner(machine, frame).block(function.body, all_rows(frame))
    return frame
