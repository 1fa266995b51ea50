"""A kernel with its arguments -> its results, and their derivatives in both directions.

The derivatives come from the rules alone, in any float precision: the reference for those that
devices compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    filled,
    float_cells,
    mapped,
)
from shaderad.interpret.forms import Shape, from_host, shape_of, to_host
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.interpret.memory import Stored, neutral
from shaderad.interpret.reports import Line, RunReport, RunReports
from shaderad.interpret.statements import StatementRunner
from shaderad.interpret.tape import CellCotangents, CellTangents, Tape
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import INT, Access, Type, is_differentiable


class KernelRun:
    """A finished launch.

    Arrays and uniforms have the names of the kernel's IR. Structs are dicts of arrays; tangents
    and cotangents that are left out are 0.
    """

    def __init__(self, kernel: Kernel, machine: Machine, inputs: dict[str, _Input]) -> None:
        self._kernel = kernel
        self._machine = machine
        self._inputs = inputs

    @property
    def outputs(self) -> dict[str, Any]:
        """The written arrays."""
        return {name: to_host(stored.value, stored.shape) for name, stored in self._written()}

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
        machine, dots = self._machine, self._input_tangents(tangents)
        with machine.tape.paused():
            machine.tape.push(machine.tape.entries, dots)
        return {
            name: to_host(mapped(dots.full, stored.value), stored.shape)
            for name, stored in self._written()
            if is_differentiable(stored.buffer.type.element)
        }

    def pull(self, cotangents: Mapping[str, Any]) -> dict[str, Any]:
        """Gradients of the arrays read and of the uniforms that hold floats.

        Raises:
            DerivativeError: SR0411 where the language has no such derivative.
        """
        bars = CellCotangents()
        for c, bar in self._results(cotangents):
            bars.add(c, bar.data)
        return self._pulled(bars)

    def move(self, cotangents: Mapping[str, Any], tangents: Mapping[str, Any]) -> dict[str, Any]:
        """The tangents of the gradients that `pull` gives, along `tangents` of the inputs.

        Computed as the gradient of ``<y_bar, J x_dot>`` by x.

        Raises:
            DerivativeError: SR0412 where the language has no such derivative.
        """
        machine, dots, bars = self._machine, self._input_tangents(tangents), CellCotangents()
        machine.tape.push(list(machine.tape.entries), dots)
        for c, bar in self._results(cotangents):
            dot = dots.get(c)
            if dot is not None:
                bars.add(dot, bar.data)
        return self._pulled(bars)

    def _input_tangents(self, tangents: Mapping[str, Any]) -> CellTangents:
        dots = CellTangents()
        for name, data in tangents.items():
            primal = self._inputs[name]
            value = from_host(data, primal.type, primal.shape, self._machine.precision)
            for c, dot in zip(float_cells(primal.value), float_cells(value), strict=True):
                dots.set(c, dot)
        return dots

    def _results(self, cotangents: Mapping[str, Any]) -> Iterator[tuple[Cell, Cell]]:
        """Pairs of a written cell and its cotangent."""
        for name, data in cotangents.items():
            stored = self._machine.memory[name]
            t = stored.buffer.type.element
            value = from_host(data, t, stored.shape, self._machine.precision)
            yield from zip(float_cells(stored.value), float_cells(value), strict=True)

    def _pulled(self, bars: CellCotangents) -> dict[str, Any]:
        """The gradients of the inputs, from cotangents of the outputs."""
        self._machine.tape.pull(bars)
        return {
            name: to_host(mapped(bars.take_full, x.value), x.shape)
            for name, x in self._inputs.items()
            if is_differentiable(x.type)
        }

    def _written(self) -> list[tuple[str, Stored]]:
        names = [b.name for b in self._kernel.buffers if b.access is not Access.IN]
        return [(name, self._machine.memory[name]) for name in names]


class _Input:
    """An input of a run: an array that is read, or a uniform."""

    def __init__(self, value: Value, t: Type, shape: Shape, *, is_tracked: bool) -> None:
        self.value = mapped(lambda c: Cell(c.data, is_tracked=is_tracked and c.is_float), value)
        self.type = t
        self.shape = shape


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
    dims = _shape(dim)
    data = {**(arrays or {}), **(uniforms or {})}
    inputs: dict[str, _Input] = {}
    memory: dict[str, Stored] = {}
    for b in kernel.buffers:
        if b.access is Access.IN:
            shape = shape_of(data[b.name], b.type.element, b.type.rank)
            value = from_host(data[b.name], b.type.element, shape, precision)
            inputs[b.name] = _Input(value, b.type.element, shape, is_tracked=is_recording)
            memory[b.name] = Stored(b, shape, inputs[b.name].value)
        else:
            shape = _shape((shapes or {}).get(b.name, dims))
            zeros = filled(b.type.element, (prod(shape),), precision)
            start = mapped(
                lambda c, a=b.access: Cell(np.full_like(c.data, neutral(a, c.data.dtype))), zeros
            )
            memory[b.name] = Stored(b, shape, start)
    for u in kernel.uniforms:
        value = from_host(data[u.name], u.type, (), precision)
        inputs[u.name] = _Input(value, u.type, (), is_tracked=is_recording)
    machine = Machine(
        tape=Tape(is_recording=is_recording), precision=precision, memory=memory,
        reports=RunReports(), run=functions.run, rounds_constants=rounds_constants,
    )  # fmt: skip
    _run_threads(kernel, machine, dims, inputs)
    return KernelRun(kernel, machine, inputs)


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
    variables: dict[str, Value] = {}
    for name, position in zip(kernel.index_names, np.unravel_index(threads, dims), strict=True):
        variables[name] = Cell(position.astype(np.int32))
    for u in kernel.uniforms:
        variables[u.name] = _repeated(machine.tape, inputs[u.name].value, len(threads))
    frame = Frame(threads, types, variables)
    StatementRunner(machine, frame).block(kernel.body, all_rows(frame))


def _repeated(tape: Tape, value: Value, count: int) -> Value:
    """The value of a uniform, repeated for every thread; its cotangent sums over threads."""

    def repeat(data: AnyArray) -> AnyArray:
        return np.broadcast_to(data, (count, *data.shape[1:]))

    return mapped(
        lambda c: tape.rearrange(c, repeat, lambda bar: np.sum(bar, axis=0, keepdims=True)), value
    )
