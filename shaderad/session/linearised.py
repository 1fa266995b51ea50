"""A function at its arguments, ready to pull cotangents back and to push tangents forward.

Kernels are differentiated by their own launch; any other Python function by the trace of what it
does to arrays. Both look the same from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shaderad.diagnostics import error
from shaderad.frontend.decorators import KernelFunction
from shaderad.frontend.structs import info_of
from shaderad.ir import types
from shaderad.ir.pointers import comes_apart, reaches_floats
from shaderad.runtime import buffers
from shaderad.session import forms, trees
from shaderad.session.arguments import struct_fields
from shaderad.session.arrays import Array, Shape, array, uploaded, zeros
from shaderad.session.call import bound_call, device_of, launch_of, results_of
from shaderad.session.convert import summed
from shaderad.session.dispatch import copied
from shaderad.session.gradients import gradient_form
from shaderad.session.pointers import HostPointer, StructArray, pointer_struct
from shaderad.session.tangents import Tangents
from shaderad.session.tape import LaunchStep, Trace, Values, trace_of

if TYPE_CHECKING:
    from shaderad.session.devices import Device
    from shaderad.session.launch import Launch


class Linearised(Protocol):
    """What the transforms need of a function at its arguments."""

    @property
    def out(self) -> Any:
        """The result, with pending arrays where the linearisation is lazy."""
        ...

    @property
    def launches(self) -> list[Launch]: ...
    def is_differentiable(self, position: int) -> bool: ...
    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        """The gradients of the arguments at `positions`, in their form."""
        ...

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the result, in its structure."""
        ...


def linearised(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, is_lazy: bool
) -> Linearised:
    """Runs `function` (lazily: leaves out what nobody looks at) and remembers what it did.

    Raises:
        DerivativeError: SR0451 inside another transform, SR0453 for a differentiable argument
            given by keyword.
    """
    if not callable(function):
        raise error("SR0466", found=repr(function))
    if isinstance(function, KernelFunction):
        return _kernel_at(function, args, keywords, is_lazy=is_lazy)
    return _function_at(function, args, keywords, is_lazy=is_lazy)


# -- kernels ----------------------------------------------------------------------------------


@dataclass(eq=False)
class KernelAt:
    """A kernel at its arguments."""

    launch: Launch
    out: Any
    arguments: list[tuple[str, types.Type, Any]]
    """Name, type and given value of each positional argument."""

    @property
    def launches(self) -> list[Launch]:
        return [self.launch]

    def is_differentiable(self, position: int) -> bool:
        name, _, _ = self.arguments[position]
        return bool(self.launch.facts.names_under((name,)))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        launch = self.launch
        cotangents = _cotangents(self.out, out_bar)
        names = list(launch.outputs)
        given = dict(zip(names, cotangents, strict=True))
        wanted: frozenset[str] = frozenset()
        for position in positions:
            wanted |= launch.facts.names_under((self.arguments[position][0],))
        sums = self._in_place(positions, into) if into is not None else None
        is_in_place = sums is not None and frozenset(sums) == wanted
        gradients = launch.backward(wanted, given, sums if is_in_place else None) if wanted else {}
        found = [self._form(position, gradients) for position in positions]
        if into is None:
            return found
        return list(into) if is_in_place else _accumulated(found, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        launch = self.launch
        collected = Tangents(launch)
        for (name, t, value), tangent in zip(self.arguments, tangents, strict=True):
            collected.add(t, (name,), value, tangent)
        given = collected.arrays()
        found = launch.forward(given) if given else {}
        return _tangents(self.out, [found.get(name) for name in launch.outputs])

    def _form(self, position: int, gradients: Mapping[str, Array]) -> Any:
        name, t, value = self.arguments[position]
        if not self.is_differentiable(position):
            return None
        return gradient_form(value, t, (name,), self.launch, gradients)

    def _in_place(self, positions: Sequence[int], into: Sequence[Any]) -> dict[str, Array]:
        """Sums that the dispatch itself can add to: arrays of 32-bit floats, by name."""
        found: dict[str, Array] = {}
        paths = self.launch.facts.name_by_path
        for position, total in zip(positions, into, strict=True):
            name, t, _ = self.arguments[position]
            element = t.element if isinstance(t, types.BufferType) else t
            is_float = {s.kind for s in types.scalars(element)} == {types.Kind.FLOAT}
            if isinstance(total, Array) and is_float and (name,) in paths:
                shape = self.launch.shape_of(paths[name,])
                _check_sum(total, element, shape, self.launch.device)
                found[paths[name,]] = total.viewed(element, shape)
        return found


def _kernel_at(
    function: KernelFunction, args: Sequence[Any], keywords: Mapping[str, Any], *, is_lazy: bool
) -> KernelAt:
    call = bound_call(function, args, keywords)
    type_by_name = {p.name: p.type for p in function.signature.parameters if not p.is_const}
    for name in call.given:
        t = type_by_name.get(name)
        if name not in call.positional and t is not None and reaches_floats(t):
            raise error("SR0453", name=name)
    launch = launch_of(call)
    if trace_of(launch.sources.values()) is not None:
        raise error("SR0451")
    if launch.checks or not is_lazy:
        launch.run()
    arguments = [
        # A constant has no derivative, whatever its type.
        (name, type_by_name.get(name, types.VOID), call.given[name])
        for name in call.positional
    ]
    return KernelAt(launch, results_of(launch), arguments)


# -- other functions --------------------------------------------------------------------------


@dataclass(eq=False)
class FunctionAt:
    """A Python function at its arguments."""

    trace: Trace
    out: Any
    args: Sequence[Any]
    lifted: Sequence[Any]
    """`args` with a traced array for every leaf that holds floats."""

    @property
    def launches(self) -> list[Launch]:
        return [step.launch for step in self.trace.steps if isinstance(step, LaunchStep)]

    def is_differentiable(self, position: int) -> bool:
        return any(_is_lifted(leaf) for leaf in _lifted_leaves(self.lifted[position]))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        cotangents = Values()
        results = trees.leaves(self.out)
        for result, cotangent in zip(results, _cotangents(self.out, out_bar), strict=True):
            if cotangent is not None:
                cotangents.add(result, cotangent)
        wanted = [a for k in positions for a in _lifted_leaves(self.lifted[k]) if _is_lifted(a)]
        self.trace.pull(cotangents, wanted)
        found = [
            _gradient_tree(cotangents, self.args[k], self.lifted[k])
            if self.is_differentiable(k)
            else None
            for k in positions
        ]
        return found if into is None else _accumulated(found, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        values = Values()

        def set_tangent(_: Any, leaf: Any, tangent: Any) -> None:
            _set_tangent(values, leaf, tangent)

        for given, lifted, tangent in zip(self.args, self.lifted, tangents, strict=True):
            _mapped_lifted(set_tangent, given, lifted, tangent)
        self.trace.push(values)
        results = trees.leaves(self.out)
        found = [values.of(one) if isinstance(one, Array) else None for one in results]
        return _tangents(self.out, found)


def _function_at(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, is_lazy: bool
) -> FunctionAt:
    for name, value in keywords.items():
        for leaf in trees.leaves(value):
            is_floats = (
                isinstance(leaf, np.ndarray) and buffers.as_numpy(leaf, name).dtype.kind == "f"
            )
            if is_floats or _is_lifted(leaf):
                raise error("SR0453", name=name)
    trace = Trace(is_lazy=is_lazy)
    device = device_of(keywords.get("device"), args)

    def lift(leaf: Any) -> Any:
        return _lift(leaf, trace, device)

    for given in args:
        _check_followable(given)
    lifted = [_mapped_lifted(lift, given) for given in args]
    try:
        out = function(*lifted, **keywords)
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
    elif _is_data(leaf):
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
    return found


def _is_data(leaf: Any) -> bool:
    return isinstance(leaf, float | np.floating | np.ndarray | list)


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
    _mapped_lifted(found.append, lifted)
    return found


def _is_lifted(leaf: Any) -> bool:
    return isinstance(leaf, Array) and types.is_differentiable(leaf.element)


def _gradient(cotangents: Values, given: Any, lifted: Any) -> Any:
    if not _is_lifted(lifted):
        return None
    found = cotangents.of(lifted)
    if found is None:
        found = zeros(lifted.device, lifted.element, lifted.shape)
    fields = None if isinstance(given, Array) else struct_fields(given)
    return found if fields is None else forms.split(found, given, fields)


def _gradient_tree(cotangents: Values, given: Any, lifted: Any) -> Any:
    parts = None if _value_struct(given) is not None else trees.children(given)
    if parts is None:
        return _gradient(cotangents, given, lifted)
    columns = trees.matching(given, parts, lifted, "argument")
    found = {k: _gradient_tree(cotangents, part, columns[k]) for k, part in parts.items()}
    if isinstance(given, HostPointer) and found["target"] is None:
        return None
    if info_of(given) is not None:  # fields that hold no float are 0
        found = {k: 0 if part is None else part for k, part in found.items()}
    return trees.built_like(given, found)


def _set_tangent(values: Values, lifted: Any, tangent: Any) -> None:
    if _is_lifted(lifted):
        found = forms.cotangent_of(lifted, tangent, "tangent")
        if found is not None:
            values.add(lifted, found)


# -- both -------------------------------------------------------------------------------------


def _cotangents(out: Any, out_bar: Any) -> list[Array | None]:
    """The cotangent of each leaf of `out`; `None` where nothing is given or nothing flows."""
    found: list[Array | None] = []

    def collect(leaf: Any, given: Any) -> None:
        is_array = isinstance(leaf, Array)
        found.append(forms.cotangent_of(leaf, given, "out_bar") if is_array else None)

    trees.mapped(collect, out, out_bar, name="out_bar")
    return found


def _tangents(out: Any, found: Sequence[Array | None]) -> Any:
    """Tangents of the results in their structure: zeros where nothing flows, `None` for ints."""
    remaining = iter(found)

    def tangent(leaf: Any) -> Array | None:
        known = next(remaining)
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        if known is None:
            return zeros(leaf.device, leaf.element, leaf.shape)
        return forms.in_form(known, leaf.element, leaf.shape)

    return trees.mapped(tangent, out)


def _check_sum(total: Any, element: types.Type, shape: Shape, device: Device) -> None:
    """Raises SR0469 for what cannot hold such a gradient, SR0650 where it is elsewhere."""
    wanted = buffers.byte_count(element, prod(shape))
    base = buffers.base_of(element)
    if not isinstance(total, Array):
        found = f"a `{type(total).__name__}`"
    elif buffers.base_of(total.element) != base or total.byte_count != wanted:
        found = repr(total)
    elif total.device is not device:
        raise error("SR0650", name="accumulate", found=total.device, device=device)
    else:
        return
    raise error("SR0469", found=found, wanted=f"an array of `{element}` with shape {shape}")


def _accumulated(gradients: list[Any], into: Sequence[Any]) -> list[Any]:
    """Adds `gradients` to the arrays of `into`, in place, and returns those."""

    def add(gradient: Any, total: Any) -> Any:
        if total is None or not isinstance(gradient, Array):
            return gradient
        _check_sum(total, gradient.element, gradient.shape, gradient.device)
        copied(summed(forms.in_form(gradient, total.element, total.shape), total), total)
        return total

    pairs = zip(gradients, into, strict=True)
    return [trees.mapped(add, gradient, total, name="accumulate") for gradient, total in pairs]
