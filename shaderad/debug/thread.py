"""``kernel.debug(..)``: runs one thread of a launch as Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shaderad.arrays.arguments import at_path, normalised_shape, struct_fields
from shaderad.arrays.arrays import Array
from shaderad.arrays.pointers import HostPointer
from shaderad.bodies.extents import axes_of_launch
from shaderad.debug.arrays import PointerTarget, ReadArray, WrittenArray
from shaderad.debug.calls import Calls
from shaderad.debug.values import Classes, from_numpy
from shaderad.diagnostics import error
from shaderad.execute.call import CallArguments, asked_shapes, bound_call, checked_dim, inferred_dim
from shaderad.ir import types
from shaderad.ir.nodes import KernelParameter
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Access
from shaderad.language.signatures import signature_of
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.language.decorators import KernelFunction


def debug_kernel(
    function: KernelFunction,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    thread: int | tuple[int, ...],
) -> dict[str, dict[Any, Any]]:
    """Runs the Python body for one thread.

    Args:
        function: The decorated kernel.
        args: As in a call of the kernel.
        kwargs: As in a call of the kernel.
        thread: Its index, or its row-major number.

    Returns:
        For each written array the elements that the thread wrote, by index.

    Raises:
        ShapeError: As a call of the kernel; SR0676 where the launch has no such thread.
        BoundsError: SR0675 at the line that uses an index out of range.
    """
    call = bound_call(function, args, kwargs)
    count = len(function.signature.index_names)
    asked = call.options.get("dim")
    dim = (
        _inferred_dim(function, call)
        if asked is None
        else checked_dim(function.name, count, asked, function.def_span)
    )
    index = _thread_index(function, thread, dim)
    binder = _ThreadBinder(signature_of(function).structs, call.options, dim)
    position = [np.int32(i) for i in index]
    values = [binder.bind(p, call.given.get(p.name)) for p in function.signature.parameters]
    calls = Calls()
    with np.errstate(all="ignore"):
        calls.body(function)(*position, *values)
    return {name: array.written() for name, array in binder.written.items()}


def _inferred_dim(function: KernelFunction, call: CallArguments) -> tuple[int, ...]:
    """The extents of a launch without ``dim=``."""
    constants = {p.name: call.given[p.name] for p in function.signature.parameters if p.is_const}
    kernel = function.specialise(constants)
    axes = axes_of_launch(kernel)
    shapes = asked_shapes(kernel, call.options.get("shapes"))
    for b in map(kernel.buffer, {name for places in axes for name, _ in places}):
        if b.access is Access.IN:
            data = _as_numpy(at_path(call.given, b.path))
            shapes[b.name] = buffers.to_storage(data, b.type.element, b.shown_name)[1]
    return inferred_dim(kernel, axes, shapes, function.def_span)


def _thread_index(
    function: KernelFunction, thread: int | tuple[int, ...], dim: tuple[int, ...]
) -> tuple[int, ...]:
    number = thread if isinstance(thread, int) else -1
    index = thread if isinstance(thread, tuple) else ()
    count = int(np.prod(dim, dtype=int))
    if isinstance(thread, int) and 0 <= number < count:
        return tuple(int(i) for i in np.unravel_index(number, dim)) if dim else ()
    fits = len(index) == len(dim) and all(0 <= i < n for i, n in zip(index, dim, strict=False))
    if isinstance(thread, int) or not fits:
        raise error("SR0676", function.def_span, thread=thread, name=function.name, dim=dim)
    return index


class _ThreadBinder:
    """Arguments of the call -> the values that the body's parameters hold."""

    def __init__(self, classes: Classes, options: Mapping[str, Any], dim: tuple[int, ...]) -> None:
        self._classes = classes
        self._shapes: Mapping[str, Any] = options.get("shapes") or {}
        self._bounds = options.get("bounds", "raise")
        self._dim = dim
        self.written: dict[str, WrittenArray] = {}

    def bind(self, p: KernelParameter, argument: Any) -> Any:
        """The value of parameter `p`."""
        t = p.type
        if p.is_const:
            return argument
        if isinstance(t, types.BufferType) and t.access is not Access.IN:
            shape = normalised_shape(self._shapes.get(p.name, self._dim), p.name)
            array = WrittenArray(p.name, t, shape, self._classes, self._bounds)
            self.written[p.name] = array
            return array
        return self._bound(argument, t, p.name)

    def _bound(self, value: Any, t: types.Type, name: str) -> Any:
        if isinstance(t, types.Pointer):
            return self._target(value, t, name)
        if isinstance(t, types.BufferType):
            if holds_pointers(t.element):
                return self._target(HostPointer(value), types.Pointer(t.element), name)
            storage, shape = buffers.to_storage(_as_numpy(value), t.element, name)
            data = buffers.to_host(storage, t.element)
            return ReadArray(name, t, data, shape, self._classes, self._bounds)
        if isinstance(t, types.Struct) and (t.holds_buffers or holds_pointers(t)):
            fields = struct_fields(value) or {}
            parts = {n: self._bound(fields[n], f, f"{name}.{n}") for n, f in t.fields}
            return self._classes[t](**parts)
        storage, _ = buffers.to_storage(_as_numpy(value), t, name)
        return from_numpy(buffers.to_host(storage, t), t, self._classes)

    def _target(self, pointer: Any, t: types.Pointer, name: str) -> PointerTarget:
        """The elements behind a pointer; structs with pointers are bound when they are read."""
        bounds = self._bounds
        elements: Any
        if holds_pointers(t.element):
            # A struct of pointers has no zero: an index out of range is always an error.
            elements, bounds = list(pointer.target), "raise"
        else:
            storage, _ = buffers.to_storage(_as_numpy(pointer.target), t.element, name)
            elements = buffers.to_host(storage, t.element)

        def read(element: Any) -> Any:
            if holds_pointers(t.element):
                return self._bound(element, t.element, name)
            return from_numpy(element, t.element, self._classes)

        return PointerTarget(name, t, elements, read, self._classes, bounds)


def _as_numpy(value: Any) -> Any:
    """The data of a device array as a NumPy array; other values as they are."""
    return value.numpy() if isinstance(value, Array) else value
