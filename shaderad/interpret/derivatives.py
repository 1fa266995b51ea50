"""Calls of functions, the user's own derivatives, and ``fwd_diff`` and ``bwd_diff`` in kernels.

A call of a function with a custom derivative is one entry of the tape: its body runs unrecorded,
and the user's derivative runs when the tape is pushed or pulled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shaderad.diagnostics import error
from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cells,
    filled,
    float_cells,
    float_part,
    mapped,
    parts,
)
from shaderad.interpret.machine import Machine
from shaderad.interpret.tape import CellCotangents, CellTangents, Tape
from shaderad.ir import ops
from shaderad.ir.nodes import Function
from shaderad.ir.types import Pair, Type, is_differentiable
from shaderad.rules import PARTIALS


def call(machine: Machine, function: Function, args: list[Value], threads: AnyArray) -> Value:
    """The result of a user function for `threads`; empty where it returns nothing."""
    if (function.backward or function.forward) is None or not machine.tape.is_recording:
        return machine.run(machine, function, args, threads).result or {}
    with machine.tape.paused():
        result = _tracked(machine.run(machine, function, args, threads).result or {})
    machine.tape.note(OwnDerivative(machine, function, args, result, threads))
    return result


def _tracked(value: Value) -> Value:
    """`value` in new cells whose floats are tracked."""
    return mapped(lambda c: Cell(c.data, is_tracked=c.is_float), value)


@dataclass(slots=True)
class OwnDerivative:
    """The tape entry of a call of a function with a custom derivative."""

    machine: Machine
    function: Function
    args: list[Value]
    result: Value
    threads: AnyArray

    def push(self, tape: Tape, dots: CellTangents) -> None:
        """Runs the forward derivative on pairs.

        Raises:
            DerivativeError: SR0412 where the function has only a backward one.
        """
        function = self.function
        if function.forward is None:
            raise error("SR0412", function.span, function=function.name)
        args = self._args(function.forward, lambda floats: mapped(dots.full, floats))
        pair = call(self.machine, function.forward, args, self.threads)
        if is_differentiable(function.result):
            primals = float_part(self.result, function.result)
            for primal, dot in zip(cells(primals), cells(parts(pair)["d"]), strict=True):
                dots.set(primal, dot)

    def pull(self, bars: CellCotangents) -> None:
        """Runs the backward derivative on pairs that start at 0.

        Raises:
            DerivativeError: SR0411 where the function has only a forward one.
        """
        primal = self.function
        if primal.backward is None:
            raise error("SR0411", primal.span, function=primal.name)
        function = primal.backward
        args = self._args(function, lambda floats: filled(floats, lambda _: 0))
        result_bar = _taken(bars, self.result, primal.result)
        if len(function.parameters) > len(args):
            args.append(result_bar)
        machine = self.machine
        outer, machine.gradients = machine.gradients, bars
        try:
            with machine.tape.paused():
                frame = machine.run(machine, function, args, self.threads)
        finally:
            machine.gradients = outer
        for own, value in zip(function.parameters, self.args, strict=False):
            if isinstance(own.type, Pair):
                arg_bars = cells(parts(frame.variables[own.name])["d"])
                for c, bar in zip(float_cells(value), arg_bars, strict=True):
                    bars.add(c, bar.data)

    def _args(self, own: Function, d: Callable[[Value], Value]) -> list[Value]:
        """The arguments of a user-defined derivative: pairs have ``d(floats of the primal)``."""
        parameters = zip(self.function.parameters, own.parameters, self.args, strict=False)
        return [
            {"p": value, "d": d(float_part(value, p.type))} if isinstance(o.type, Pair) else value
            for p, o, value in parameters
        ]


@dataclass(frozen=True, slots=True)
class DiffCall:
    """A call of ``fwd_diff(function)`` or ``bwd_diff(function)``."""

    function: Function
    args: list[Value]
    threads: AnyArray

    @property
    def is_pair(self) -> list[bool]:
        """For each argument, True if it is a pair."""
        return [is_differentiable(p.type) for p in self.function.parameters]

    def primals(self, fresh: Callable[[Value], Value]) -> list[Value]:
        """The arguments, with ``fresh(primal)`` in place of each pair."""
        return [
            fresh(parts(value)["p"]) if is_pair else value
            for value, is_pair in zip(self.args, self.is_pair, strict=True)
        ]

    def derivatives(
        self, of: Callable[[Value, Type], Value], primals: list[Value]
    ) -> list[Value | None]:
        """``of(primal, its type)`` for each pair, `None` for other arguments."""
        types = [p.type for p in self.function.parameters]
        return [
            of(primal, t) if is_pair else None
            for primal, t, is_pair in zip(primals, types, self.is_pair, strict=True)
        ]


def forward_diff(machine: Machine, diff: DiffCall) -> Value:
    """``sad.fwd_diff(f)(...)``: runs `f`, then pushes its tape entries.

    If the tape is recording, it records the push too.
    """
    outer = machine.tape
    if not outer.is_recording:
        machine.tape = Tape(is_recording=True)
    tape = machine.tape
    start = len(tape.entries)
    dots = CellTangents()
    primals = diff.primals(lambda primal: _fresh(tape, primal))
    for value, primal, is_pair in zip(diff.args, primals, diff.is_pair, strict=True):
        if is_pair:
            for c, dot in zip(float_cells(primal), cells(parts(value)["d"]), strict=True):
                dots.set(c, dot)
    try:
        result = call(machine, diff.function, primals, diff.threads)
        entries = tape.entries[start:]
        tape.is_recording = outer.is_recording
        tape.push(entries, dots)
    finally:
        machine.tape = outer
    d = mapped(dots.full, float_part(result, diff.function.result))
    if not outer.is_recording:
        result = mapped(lambda c: Cell(c.data), result)
    return {"p": result, "d": d}


def _fresh(tape: Tape, value: Value) -> Value:
    """`value` with its floats as new cells of `tape`."""
    return mapped(lambda c: tape.fresh(c) if c.is_float else c, value)


def backward_diff(machine: Machine, diff: DiffCall, cotangent: Value) -> list[Value | None]:
    """``sad.bwd_diff(f)(...)``: the new ``.d`` of each pair, `None` for other arguments."""
    if machine.tape.is_recording:
        return _transposed(machine, diff, cotangent)
    primals = diff.primals(_tracked)
    function = diff.function
    outer, machine.tape = machine.tape, Tape(is_recording=True)
    bars = CellCotangents()
    try:
        result = call(machine, function, primals, diff.threads)
        if is_differentiable(function.result):
            for c, bar in zip(float_cells(result), cells(cotangent), strict=True):
                bars.add(c, bar.data)
        machine.tape.pull(bars)
    finally:
        machine.tape = outer
    if machine.gradients is not None:  # custom derivatives have cotangents of arrays
        for stored in machine.memory.values():
            for c in float_cells(stored.value):
                array_bar = bars.take(c)
                if array_bar is not None:
                    machine.gradients.add(c, array_bar)
    return diff.derivatives(lambda primal, t: _taken(bars, primal, t), primals)


def _transposed(machine: Machine, diff: DiffCall, cotangent: Value) -> list[Value | None]:
    """``J^T y_bar``, recorded on the tape: component k is ``<y_bar, J e_k>``, e_k a unit vector."""
    tape, start = machine.tape, len(machine.tape.entries)
    primals = diff.primals(lambda primal: _fresh(tape, primal))
    result = call(machine, diff.function, primals, diff.threads)
    entries = tape.entries[start:]
    results = list(zip(float_cells(result), cells(cotangent), strict=True))

    def component(c: Cell, index: tuple[int, ...]) -> Cell:
        unit = np.zeros_like(c.data)
        unit[(slice(None), *index)] = 1
        dots = CellTangents()
        dots.set(c, Cell(unit))
        tape.push(entries, dots)
        return _summed(tape, [(bar, dots.get(y)) for y, bar in results], len(c.data))

    def bar(c: Cell) -> Cell:
        indices = np.ndindex(*c.data.shape[1:])
        return tape.join([component(c, index) for index in indices], c.data.shape)

    return diff.derivatives(lambda primal, t: mapped(bar, float_part(primal, t)), primals)


def _summed(tape: Tape, pairs: list[tuple[Cell, Cell | None]], count: int) -> Cell:
    """The inner product of cotangents and tangents, for each thread."""
    total = Cell(np.zeros(count))
    for bar, dot in pairs:
        if dot is None:
            continue
        product = tape.apply(PARTIALS[ops.MUL], bar.data * dot.data, (bar, dot))
        shape = product.data.shape
        sums = tape.rearrange(
            product,
            lambda data: data.reshape(len(data), -1).sum(1),
            lambda data, shape=shape: np.broadcast_to(
                data.reshape(-1, *[1] * (len(shape) - 1)), shape
            ),
        )
        total = tape.apply(PARTIALS[ops.ADD], total.data + sums.data, (total, sums))
    return total


def _taken(bars: CellCotangents, value: Value, t: Type) -> Value:
    """The cotangents of the floats in a value of type `t`."""
    return mapped(bars.take_full, float_part(value, t))
