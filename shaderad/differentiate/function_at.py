"""A Python function at its arguments: differentiated by the tape of what it does to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, vector_of, zeros
from shaderad.arrays.containers import Container, container_of
from shaderad.arrays.numbers import host_number
from shaderad.arrays.tape import Trace, Values, When, taped, trace_of
from shaderad.arrays.trees import Structure
from shaderad.calls.call import device_of
from shaderad.calls.run_graph import GraphStep
from shaderad.diagnostics import error
from shaderad.differentiate.forms import check_keywords, holds_floats, is_data
from shaderad.differentiate.leaves import Core, Derivatives, Input, Linearised
from shaderad.execute.convert import in_form_of, summed
from shaderad.ir import types
from shaderad.ir.pointers import comes_apart
from shaderad.language.structs import info_of
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Mode


@dataclass(eq=False, slots=True)
class TapeCore(Core):
    """A function at its arguments, by the tape of its steps."""

    trace: Trace
    inputs: Sequence[Input]
    results: Sequence[Any]
    """The leaves of the result."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        return [kernel for step in self.trace.steps for kernel in step.kernels]

    def pull(self, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        values = self._values(self.results, bars)
        arrays = [x.array if flag else None for x, flag in zip(self.inputs, wanted, strict=True)]
        self.trace.pull(values, [x for x in arrays if x is not None])
        return [None if x is None else _gradient(values, x) for x in arrays]

    def push(self, dots: Derivatives) -> Derivatives:
        values = self._values([x.array for x in self.inputs], dots)
        self.trace.push(values)
        return [values.of(x) if isinstance(x, Array) else None for x in self.results]

    def compile(self, mode: Mode, wanted: Sequence[bool]) -> None:
        for step in self.trace.steps:
            if isinstance(step, GraphStep):
                step.compile(mode, tuple(map(step.is_active, range(len(step.operands)))))

    def _values(self, arrays: Sequence[Any], derivatives: Derivatives) -> Values:
        values = Values(in_form_of, summed)
        for x, derivative in zip(arrays, derivatives, strict=True):
            if derivative is not None:
                values.add(x, derivative)
        return values


def _gradient(values: Values, x: Array) -> Array:
    """The gradient of an array, as an array of its own."""
    gradient = values.of(x)
    if gradient is None:
        gradient = zeros(x.device, x.element, x.shape)
    return gradient.viewed(gradient.element, gradient.shape).noted_as(x.given_vector)


def function_at(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """A Python function at its arguments."""
    check_keywords(keywords)
    device = device_of(keywords.get("device"), args)
    flat = [trees.flatten(argument, _kind_of) for argument in args]
    inputs = [Input(leaf, _lifted(leaf, device)) for leaves, _ in flat for leaf in leaves]
    return taped_at(function, inputs, [structure for _, structure in flat], keywords, when)


def taped_at(
    function: Callable[..., Any],
    inputs: Sequence[Input],
    structures: Sequence[Structure],
    keywords: Mapping[str, Any],
    when: When,
) -> Linearised:
    """A function at arguments that were flattened, with an array of their own for all floats."""
    trace = Trace(when)
    for x in inputs:
        if x.array is not None:
            trace.follow(x.array)
    leaves = iter([x.given if x.array is None else x.array for x in inputs])
    args = [structure.unflatten(leaves) for structure in structures]
    try:
        out = taped(function, *args, **keywords)
    finally:
        trace.close()
    return Linearised(TapeCore(trace, inputs, trees.leaves(out)), inputs, structures, out)


def _lifted(leaf: Any, device: Device) -> Array | None:
    """An array in place of whatever holds floats; `None` for everything else."""
    if isinstance(leaf, Array):
        if trace_of([leaf]) is not None:
            raise error("SR0451")
        if not holds_floats(leaf):
            return None
        return leaf.viewed(leaf.element, leaf.shape).noted_as(leaf.given_vector)
    if is_data(leaf):
        data = buffers.as_numpy(leaf, "argument")
        if data.dtype.names is not None:
            raise error("SR0454")
        if data.dtype.kind != "f":
            return None
        if isinstance(leaf, float | np.floating):
            t = buffers.inferred_type(data) or types.FLOAT
            return host_number(leaf, t, "argument", device)
        return array(data, device=device).noted_as(vector_of(leaf))
    t = _value_struct(leaf)
    is_active = t is not None and types.is_differentiable(t)
    return host_number(leaf, t, t.name, device) if t is not None and is_active else None


def _kind_of(tree: Any) -> type[Container] | None:
    """The kind of a container. A host struct that is one value to kernels is a leaf."""
    return None if _value_struct(tree) is not None else container_of(tree)


def _value_struct(value: Any) -> types.Struct | None:
    """The type of a host struct without arrays and pointers."""
    info = None if isinstance(value, type) else info_of(value)
    return None if info is None or comes_apart(info.ir_type) else info.ir_type
