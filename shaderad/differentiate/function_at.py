"""A Python function at its arguments: differentiated by the trace of what it does to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array, uploaded, vector_of, zeros
from shaderad.arrays.tape import Trace, Values, When, taped, trace_of
from shaderad.arrays.textures import Texture
from shaderad.arrays.trees import HostPointer, StructArray, pointer_struct, struct_fields
from shaderad.diagnostics import error
from shaderad.differentiate import forms
from shaderad.differentiate.forms import (
    accumulated,
    check_keywords,
    cotangents_of,
    holds_floats,
    is_data,
    tangents_of,
)
from shaderad.execute.call import device_of
from shaderad.execute.convert import in_form_of, summed
from shaderad.ir import types
from shaderad.ir.pointers import comes_apart
from shaderad.language.structs import info_of
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.ir.nodes import Kernel


@dataclass(eq=False)
class FunctionAt:
    """A Python function at its arguments."""

    trace: Trace
    out: Any
    args: Sequence[Any]
    lifted: Sequence[Any]
    """`args` with a traced array for every leaf that holds floats."""

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for step in self.trace.steps for kernel in step.kernels]

    def is_differentiable(self, position: int) -> bool:
        return any(holds_floats(leaf) for leaf in _lifted_leaves(self.lifted[position]))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        cotangents = self._cotangents(out_bar)
        self.trace.pull(cotangents, self._wanted(positions))
        found = self._gradients(cotangents, positions)
        return found if into is None else accumulated(found, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        values = self._pushed(tangents)
        results = trees.leaves(self.out)
        found = [values.of(one) if isinstance(one, Array) else None for one in results]
        return tangents_of(self.out, found)

    def _cotangents(self, out_bar: Any) -> Values:
        found = Values(in_form_of, summed)
        results = trees.leaves(self.out)
        for result, cotangent in zip(results, cotangents_of(self.out, out_bar), strict=True):
            if cotangent is not None:
                found.add(result, cotangent)
        return found

    def _wanted(self, positions: Sequence[int]) -> list[Array]:
        return [a for k in positions for a in _lifted_leaves(self.lifted[k]) if holds_floats(a)]

    def _gradients(self, cotangents: Values, positions: Sequence[int]) -> list[Any]:
        return [
            _gradient_tree(cotangents, self.args[k], self.lifted[k])
            if self.is_differentiable(k)
            else None
            for k in positions
        ]

    def _pushed(self, tangents: Sequence[Any]) -> Values:
        """The tangents of all that was traced."""
        values = Values(in_form_of, summed)

        def set_tangent(_: Any, leaf: Any, tangent: Any) -> None:
            _set_tangent(values, leaf, tangent)

        for given, lifted, tangent in zip(self.args, self.lifted, tangents, strict=True):
            _mapped_lifted(set_tangent, given, lifted, tangent)
        self.trace.push(values)
        return values


def function_at(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> FunctionAt:
    check_keywords(keywords)
    trace = Trace(when)
    device = device_of(keywords.get("device"), args)

    def lift(leaf: Any) -> Any:
        return _lift(leaf, trace, device)

    for given in args:
        _check_followable(given)
    lifted = [_mapped_lifted(lift, given) for given in args]
    try:
        out = taped(function, *lifted, **keywords)
    finally:
        trace.close()
    return FunctionAt(trace, out, args, lifted)


def _check_followable(tree: Any) -> None:
    """Raises SR0470 for floats that structs with pointers hold behind a pointer."""
    for part in (trees.children(tree) or {}).values():
        t = pointer_struct(part) if isinstance(tree, StructArray) else None
        if t is not None and types.is_differentiable(t):
            raise error("SR0470", type=t)
        _check_followable(part)


def _lift(leaf: Any, trace: Trace, device: Device) -> Any:
    """A traced array in place of whatever holds floats; everything else as it is."""
    found: Array | None = None
    if isinstance(leaf, Array):
        if trace_of([leaf]) is not None:
            raise error("SR0451")
        if types.is_differentiable(leaf.element):
            found = leaf.viewed(leaf.element, leaf.shape)
    elif is_data(leaf):
        data = buffers.as_numpy(leaf, "argument")
        if data.dtype.names is not None:
            raise error("SR0454")
        found = array(data, device=device) if data.dtype.kind == "f" else None
    else:
        t = _value_struct(leaf)
        if t is not None and types.is_differentiable(t):
            storage, shape = buffers.to_storage(leaf, t, t.name)
            found = uploaded(device, t, storage, shape)
    if found is None:
        return leaf
    trace.follow(found)
    return found.noted_as(vector_of(leaf))


def _value_struct(value: Any) -> types.Struct | None:
    """The type of a host struct without arrays and pointers, which is one value to kernels."""
    info = None if isinstance(value, type) else info_of(value)
    return None if info is None or comes_apart(info.ir_type) else info.ir_type


def _mapped_lifted(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`trees.mapped`, with value structs as leaves."""
    if _value_struct(tree) is not None:
        return function(tree, *others)
    parts = trees.children(tree)
    if parts is None:
        return function(tree, *others)
    columns = [trees.matching(tree, parts, other, "tangent") for other in others]
    found = {
        key: _mapped_lifted(function, part, *(column[key] for column in columns))
        for key, part in parts.items()
    }
    return trees.built_like(tree, found)


def _lifted_leaves(lifted: Any) -> list[Any]:
    found: list[Any] = []

    def collect(leaf: Any) -> None:
        found.append(leaf)

    _mapped_lifted(collect, lifted)
    return found


def _gradient(cotangents: Values, given: Any, lifted: Any) -> Any:
    if not holds_floats(lifted):
        return None
    found = cotangents.of(lifted)
    if found is None:
        found = zeros(lifted.device, lifted.element, lifted.shape)
    fields = None if isinstance(given, Array) else struct_fields(given)
    if fields is not None:
        return forms.split(found, given, fields)
    return found.viewed(found.element, found.shape).noted_as(vector_of(given))


def _gradient_tree(cotangents: Values, given: Any, lifted: Any) -> Any:
    parts = None if _value_struct(given) is not None else trees.children(given)
    if parts is None:
        return _gradient(cotangents, given, lifted)
    columns = trees.matching(given, parts, lifted, "argument")
    found = {k: _gradient_tree(cotangents, part, columns[k]) for k, part in parts.items()}
    if isinstance(given, HostPointer) and found["target"] is None:
        return None
    if isinstance(given, Texture):
        return forms.texels_in_form(found["texels"], given)
    if info_of(given) is not None:  # fields that hold no float are 0
        found = {k: 0 if part is None else part for k, part in found.items()}
    return trees.built_like(given, found)


def _set_tangent(values: Values, lifted: Any, tangent: Any) -> None:
    if holds_floats(lifted):
        found = forms.cotangent_of(lifted, tangent, "tangent")
        if found is not None:
            values.add(lifted, found)
