"""Calls of functions, the user's own derivatives, and ``fwd_diff`` and ``bwd_diff`` in kernels.

A function with a derivative of its own is one entry of the tape: its body is run without being
recorded, and the derivative runs as it is written when cotangents or tangents come by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shaderad.diagnostics import error
from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cells,
    float_cells,
    float_part,
    mapped,
    parts,
)
from shaderad.interpret.machine import Frame, Machine
from shaderad.interpret.tape import Cotangents, Tangents, Tape
from shaderad.ir import ops
from shaderad.ir.nodes import Function
from shaderad.ir.types import Pair, Type, is_differentiable
from shaderad.rules import row_of


def call(machine: Machine, function: Function, args: list[Value], threads: AnyArray) -> Value:
    """The result of a user function for `threads`; empty where it returns nothing."""
    has_own = function.backward is not None or function.forward is not None
    if not has_own or not machine.tape.is_recording:
        return _result(machine, function, args, threads)
    with machine.tape.paused():
        found = _result(machine, function, args, threads)
    made = mapped(lambda c: Cell(c.data, is_tracked=c.is_float), found)
    machine.tape.note(OwnDerivative(machine, function, args, made, threads))
    return made


def _result(machine: Machine, function: Function, args: list[Value], threads: AnyArray) -> Value:
    result = machine.run(machine, function, args, threads).result
    return {} if result is None else result


@dataclass(slots=True)
class OwnDerivative:
    """A call of a function whose derivative the user wrote."""

    machine: Machine
    function: Function
    args: list[Value]
    made: Value
    threads: AnyArray

    def push(self, tape: Tape, dots: Tangents) -> None:
        """Runs the forward derivative on pairs.

        Raises:
            DerivativeError: SR0412 where the function has only a backward one.
        """
        function = self.function
        if function.forward is None:
            raise error("SR0412", function.span, function=function.name)
        given: list[Value] = []
        for p, own, value in zip(
            function.parameters, function.forward.parameters, self.args, strict=True
        ):
            if isinstance(own.type, Pair):
                dot = mapped(dots.full, float_part(value, p.type))
                given.append({"p": value, "d": dot})
            else:
                given.append(value)
        found = call(self.machine, function.forward, given, self.threads)
        if is_differentiable(function.result):
            made = float_part(self.made, function.result)
            for primal, dot in zip(cells(made), cells(parts(found)["d"]), strict=True):
                dots.set(primal, dot)

    def pull(self, bars: Cotangents) -> None:
        """Runs the backward derivative on pairs that start at 0.

        Raises:
            DerivativeError: SR0411 where the function has only a forward one.
        """
        primal = self.function
        if primal.backward is None:
            raise error("SR0411", primal.span, function=primal.name)
        parameters = list(
            zip(primal.parameters, primal.backward.parameters, self.args, strict=False)
        )
        given = [
            _with_zero(value, p.type) if isinstance(own.type, Pair) else value
            for p, own, value in parameters
        ]
        bars_of_result = _taken(bars, self.made, primal.result)
        if len(primal.backward.parameters) > len(given):
            given.append(bars_of_result)
        frame = self._run_backward(primal.backward, given, bars)
        for _, own, value in parameters:
            if isinstance(own.type, Pair):
                found = cells(parts(frame.variables[own.name])["d"])
                for c, bar in zip(float_cells(value), found, strict=True):
                    bars.add(c, bar.data)

    def _run_backward(self, backward: Function, given: list[Value], bars: Cotangents) -> Frame:
        machine = self.machine
        outer, machine.gradients = machine.gradients, bars
        try:
            with machine.tape.paused():
                return machine.run(machine, backward, given, self.threads)
        finally:
            machine.gradients = outer


@dataclass(frozen=True, slots=True)
class Derived:
    """What ``fwd_diff`` or ``bwd_diff`` is called with."""

    function: Function
    args: list[Value]
    is_pair: list[bool]
    """Which of them are pairs."""
    threads: AnyArray


def forward_diff(machine: Machine, derived: Derived) -> Value:
    """``sad.fwd_diff(f)(..)``: runs `f`, then its record forward.

    Where this run is itself recorded, so is what the second step computes.
    """
    outer = machine.tape
    if not outer.is_recording:
        machine.tape = Tape(is_recording=True)
    tape = machine.tape
    start = len(tape.entries)
    dots = Tangents()
    primals = [
        _moved(tape, dots, parts(value)) if is_pair else value
        for value, is_pair in zip(derived.args, derived.is_pair, strict=True)
    ]
    try:
        found = call(machine, derived.function, primals, derived.threads)
        entries = tape.entries[start:]
        tape.is_recording = outer.is_recording
        tape.push(entries, dots)
    finally:
        machine.tape = outer
    d = mapped(dots.full, float_part(found, derived.function.result))
    if not outer.is_recording:
        found = mapped(lambda c: Cell(c.data), found)
    return {"p": found, "d": d}


def _moved(tape: Tape, dots: Tangents, pair: dict[str, Value]) -> Value:
    """The primal of a pair in new cells, which have its ``.d`` as tangent."""
    primal = mapped(lambda c: tape.fresh(c) if c.is_float else c, pair["p"])
    for c, dot in zip(float_cells(primal), cells(pair["d"]), strict=True):
        dots.set(c, dot)
    return primal


def backward_diff(machine: Machine, derived: Derived, cotangent: Value) -> list[Value | None]:
    """``sad.bwd_diff(f)(..)``: for each argument that is a pair, its new ``.d``."""
    if machine.tape.is_recording:
        return _transposed(machine, derived, cotangent)
    primals = [
        mapped(lambda c: Cell(c.data, is_tracked=c.is_float), parts(value)["p"])
        if is_pair
        else value
        for value, is_pair in zip(derived.args, derived.is_pair, strict=True)
    ]
    function = derived.function
    outer, machine.tape = machine.tape, Tape(is_recording=True)
    bars = Cotangents()
    try:
        found = call(machine, function, primals, derived.threads)
        if is_differentiable(function.result):
            for c, bar in zip(float_cells(found), cells(cotangent), strict=True):
                bars.add(c, bar.data)
        machine.tape.pull(bars)
    finally:
        machine.tape = outer
    _pass_on(machine, bars)
    return [
        _taken(bars, primal, p.type) if is_pair else None
        for p, primal, is_pair in zip(function.parameters, primals, derived.is_pair, strict=True)
    ]


def _transposed(machine: Machine, derived: Derived, cotangent: Value) -> list[Value | None]:
    """``J^T y_bar`` as a record: its components are ``<y_bar, J e>`` for the unit vectors e."""
    tape, start = machine.tape, len(machine.tape.entries)
    primals = [
        mapped(lambda c: tape.fresh(c) if c.is_float else c, parts(value)["p"])
        if is_pair
        else value
        for value, is_pair in zip(derived.args, derived.is_pair, strict=True)
    ]
    found = call(machine, derived.function, primals, derived.threads)
    entries = tape.entries[start:]
    results = list(zip(float_cells(found), cells(cotangent), strict=True))

    def component(c: Cell, index: tuple[int, ...]) -> Cell:
        unit = np.zeros_like(c.data)
        unit[(slice(None), *index)] = 1
        dots = Tangents()
        dots.set(c, Cell(unit))
        tape.push(entries, dots)
        return _summed(tape, [(bar, dots.get(y)) for y, bar in results], len(c.data))

    def bar(c: Cell) -> Cell:
        indices = np.ndindex(*c.data.shape[1:])
        return tape.join([component(c, index) for index in indices], c.data.shape)

    return [
        mapped(bar, float_part(primal, p.type)) if is_pair else None
        for p, primal, is_pair in zip(
            derived.function.parameters, primals, derived.is_pair, strict=True
        )
    ]


def _summed(tape: Tape, pairs: list[tuple[Cell, Cell | None]], count: int) -> Cell:
    """The inner product of cotangents and tangents, for each thread."""
    total = Cell(np.zeros(count))
    for bar, dot in pairs:
        if dot is None:
            continue
        product = tape.apply(row_of(ops.MUL), bar.data * dot.data, (bar, dot))
        shape = product.data.shape
        sums = tape.rearrange(
            product,
            lambda data: data.reshape(len(data), -1).sum(1),
            lambda data, shape=shape: np.broadcast_to(
                data.reshape(-1, *[1] * (len(shape) - 1)), shape
            ),
        )
        total = tape.apply(row_of(ops.ADD), total.data + sums.data, (total, sums))
    return total


def _pass_on(machine: Machine, bars: Cotangents) -> None:
    """What derivatives of the user's own added to arrays belongs to the pull around this one."""
    for stored in machine.memory.values():
        for c in float_cells(stored.value):
            bar = bars.take(c)
            if bar is not None and machine.gradients is not None:
                machine.gradients.add(c, bar)


def _with_zero(value: Value, t: Type) -> Value:
    """The pair of an argument whose cotangent is still 0."""
    zeros = mapped(lambda c: Cell(np.zeros_like(c.data)), float_part(value, t))
    return {"p": value, "d": zeros}


def _taken(bars: Cotangents, value: Value, t: Type) -> Value:
    """The cotangents of the floats in a value of type `t`, zeros where there are none."""

    def taken(c: Cell) -> Cell:
        bar = bars.take(c)
        return Cell(np.zeros_like(c.data) if bar is None else bar)

    return mapped(taken, float_part(value, t))
