"""Kernels and functions with their arguments -> results, and derivatives in both directions.

The derivatives come from the rules alone, in any float precision, and are the reference for those
that devices compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Shape,
    Value,
    filled,
    float_cells,
    from_host,
    mapped,
    shape_of,
    to_host,
    zeros,
)
from shaderad.interpret.derivatives import DiffCall, backward_diff, forward_diff
from shaderad.interpret.machine import (
    CallFrame,
    Line,
    Machine,
    RunReport,
    RunReports,
    Stored,
    neutral,
)
from shaderad.interpret.statements import StatementRunner
from shaderad.interpret.tape import CellCotangents, CellTangents, Tape
from shaderad.ir.nodes import Function, Kernel
from shaderad.ir.types import INT, Access, Pair, Type, is_differentiable, tangent

_THREAD = np.zeros(1, np.int64)


def new_machine(
    *, precision: Any = np.float64, is_recording: bool = False, rounds_constants: bool = True
) -> Machine:
    """A machine without arrays."""
    tape = Tape(is_recording=is_recording)
    return Machine(tape, precision, {}, run_function, rounds_constants)


def run_function(
    machine: Machine, function: Function, args: list[Value], threads: AnyArray
) -> CallFrame:
    """The frame of a function after `threads` have run its body."""
    names = [p.name for p in function.parameters]
    types = dict(function.local_types) | {p.name: p.type for p in function.parameters}
    frame = StatementRunner(machine, threads, types, dict(zip(names, args, strict=True)))
    frame.block(function.body, frame.rows)
    return frame


# -- one call, on host values -----------------------------------------------------------------


def call_once(function: Function, args: Sequence[Any]) -> tuple[Any, RunReports]:
    """Calls a function of values in double precision.

    Returns:
        The result, structs and tuples as dicts; and the reports of the run.
    """
    machine = new_machine(rounds_constants=False)
    values = _from_hosts(args, [p.type for p in function.parameters])
    result = run_function(machine, function, values, _THREAD).result
    return to_host(result or {}, ()), machine.reports


def forward_once(function: Function, args: Sequence[Any]) -> Any:
    """``sad.fwd_diff(function)(*args)``: pairs have ``p`` and ``d``, the result is a dict."""
    return to_host(forward_diff(new_machine(rounds_constants=False), _diff(function, args)), ())


def backward_once(function: Function, args: Sequence[Any], cotangent: Any) -> list[Any]:
    """``sad.bwd_diff(function)(*args, cotangent)``: the new ``d`` of each pair, else `None`."""
    t = function.result
    bar: Value = from_host(cotangent, tangent(t), (), np.float64) if is_differentiable(t) else {}
    bars = backward_diff(new_machine(rounds_constants=False), _diff(function, args), bar)
    return [None if bar is None else to_host(bar, ()) for bar in bars]


def _diff(function: Function, args: Sequence[Any]) -> DiffCall:
    types = [Pair(p.type) if is_differentiable(p.type) else p.type for p in function.parameters]
    return DiffCall(function, _from_hosts(args, types), _THREAD)


def _from_hosts(args: Sequence[Any], types: Sequence[Type]) -> list[Value]:
    return [from_host(a, t, (), np.float64) for a, t in zip(args, types, strict=True)]


# -- launches ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Input:
    """An input of a run: an array that is read, or a uniform."""

    value: Value
    type: Type
    shape: Shape


class KernelRun:
    """A finished launch.

    Arrays and uniforms have the names of the kernel's IR. Structs are dicts of arrays; tangents
    and cotangents that are left out are 0.
    """

    def __init__(self, machine: Machine, inputs: dict[str, _Input]) -> None:
        self._machine = machine
        self._inputs = inputs
        self._written = {
            n: s for n, s in machine.memory.items() if s.buffer.access is not Access.IN
        }

    @property
    def outputs(self) -> dict[str, Any]:
        """The written arrays."""
        return {name: to_host(stored.value, stored.shape) for name, stored in self._written.items()}

    @property
    def reports(self) -> list[RunReport]:
        """The errors that a device would report, in order of execution."""
        return self._machine.reports.reports

    @property
    def printed(self) -> list[Line]:
        """The printed lines, in order of threads."""
        return sorted(self._machine.reports.printed, key=lambda line: line.thread)

    def push(self, tangents: Mapping[str, Any]) -> dict[str, Any]:
        """Tangents of the written arrays that hold floats.

        Raises:
            DerivativeError: SR0412 where the language has no such derivative.
        """
        tape, dots = self._machine.tape, self._input_tangents(tangents)
        with tape.paused():
            tape.push(tape.entries, dots)
        return {
            name: to_host(mapped(dots.full, stored.value), stored.shape)
            for name, stored in self._written.items()
            if is_differentiable(stored.buffer.type.element)
        }

    def pull(self, cotangents: Mapping[str, Any]) -> dict[str, Any]:
        """Gradients of the arrays read and of the uniforms that hold floats.

        Raises:
            DerivativeError: SR0411 where the language has no such derivative.
        """
        bars = CellCotangents()
        for c, bar in self._result_cotangents(cotangents):
            bars.add(c, bar.data)
        return self._pulled(bars)

    def move(self, cotangents: Mapping[str, Any], tangents: Mapping[str, Any]) -> dict[str, Any]:
        """The tangents of the gradients that `pull` gives, along `tangents` of the inputs.

        Computed as the gradient of ``<y_bar, J x_dot>`` by x.

        Raises:
            DerivativeError: SR0412 where the language has no such derivative.
        """
        tape, dots, bars = self._machine.tape, self._input_tangents(tangents), CellCotangents()
        tape.push([*tape.entries], dots)
        for c, bar in self._result_cotangents(cotangents):
            dot = dots.get(c)
            if dot is not None:
                bars.add(dot, bar.data)
        return self._pulled(bars)

    def _input_tangents(self, tangents: Mapping[str, Any]) -> CellTangents:
        dots = CellTangents()
        for name, data in tangents.items():
            x = self._inputs[name]
            for c, dot in self._float_cells(x.value, data, x.type, x.shape):
                dots.set(c, dot)
        return dots

    def _result_cotangents(self, cotangents: Mapping[str, Any]) -> Iterator[tuple[Cell, Cell]]:
        """Pairs of a written cell and its cotangent."""
        for name, data in cotangents.items():
            stored = self._machine.memory[name]
            t = stored.buffer.type.element
            yield from self._float_cells(stored.value, data, t, stored.shape)

    def _float_cells(
        self, value: Value, data: Any, t: Type, shape: Shape
    ) -> Iterator[tuple[Cell, Cell]]:
        """Pairs of a float cell of `value` and its tangent or cotangent from `data`."""
        derivative = from_host(data, t, shape, self._machine.precision)
        return zip(float_cells(value), float_cells(derivative), strict=True)

    def _pulled(self, bars: CellCotangents) -> dict[str, Any]:
        """The gradients of the inputs, from cotangents of the outputs."""
        self._machine.tape.pull(bars)
        return {
            name: to_host(mapped(bars.take_full, x.value), x.shape)
            for name, x in self._inputs.items()
            if is_differentiable(x.type)
        }


def interpret(
    kernel: Kernel,
    *,
    dim: int | Shape,
    arrays: Mapping[str, Any] | None = None,
    uniforms: Mapping[str, Any] | None = None,
    shapes: Mapping[str, int | Shape] | None = None,
    precision: Any = np.float64,
    is_recording: bool = True,
    rounds_constants: bool = True,
) -> KernelRun:
    """Runs a kernel.

    Args:
        kernel: The kernel, as the front end makes it.
        dim: Extents of the launch, one per Index.
        arrays: Every array that is read, by buffer name; array-likes, dicts for structs.
        uniforms: Values of the uniforms by name.
        shapes: Shapes of written arrays that do not have the launch's shape.
        precision: The NumPy type that computes ``float`` and ``half``.
        is_recording: True if derivatives are needed.
        rounds_constants: True if constants are rounded to their types, as on a device:
            ``x > 0.1`` is then false where x is 0.1 as a ``float``.
    """
    machine = new_machine(
        precision=precision, is_recording=is_recording, rounds_constants=rounds_constants
    )
    data = {**(arrays or {}), **(uniforms or {})}
    inputs: dict[str, _Input] = {}

    def read(name: str, t: Type, shape: Shape) -> Value:
        value = from_host(data[name], t, shape, precision)
        value = mapped(lambda c: Cell(c.data, is_tracked=is_recording and c.is_float), value)
        inputs[name] = _Input(value, t, shape)
        return value

    for b in kernel.buffers:
        t = b.type.element
        if b.access is Access.IN:
            shape = shape_of(data[b.name], t, b.type.rank)
            value = read(b.name, t, shape)
        else:
            shape = _shape((shapes or {}).get(b.name, dim))
            value = filled(zeros(t, (prod(shape),), precision), partial(neutral, b.access))
        machine.memory[b.name] = Stored(b, shape, value)
    for u in kernel.uniforms:
        read(u.name, u.type, ())
    _run_threads(kernel, machine, _shape(dim), inputs)
    return KernelRun(machine, inputs)


def _shape(extents: int | Shape) -> Shape:
    return extents if isinstance(extents, tuple) else (extents,)


def _run_threads(
    kernel: Kernel, machine: Machine, dims: Shape, inputs: Mapping[str, _Input]
) -> None:
    threads = np.arange(prod(dims))
    if not threads.size:
        return
    types = dict(kernel.local_types) | {u.name: u.type for u in kernel.uniforms}
    types |= dict.fromkeys(kernel.index_names, INT)
    variables: dict[str, Value] = {
        name: Cell(position.astype(np.int32))
        for name, position in zip(kernel.index_names, np.unravel_index(threads, dims), strict=True)
    }
    for u in kernel.uniforms:
        variables[u.name] = _repeated(machine.tape, inputs[u.name].value, len(threads))
    frame = StatementRunner(machine, threads, types, variables)
    frame.block(kernel.body, frame.rows)


def _repeated(tape: Tape, value: Value, count: int) -> Value:
    """The value of a uniform, repeated for every thread; its cotangent sums over threads."""

    def repeat(data: AnyArray) -> AnyArray:
        return np.broadcast_to(data, (count, *data.shape[1:]))

    return mapped(
        lambda c: tape.rearrange(c, repeat, lambda bar: np.sum(bar, axis=0, keepdims=True)), value
    )
