"""``kernel.debug(..)``: one thread of a launch, run as Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shaderad.bodies.extents import axes_of_launch
from shaderad.debug.arrays import Pointed, ReadArray, WrittenArray
from shaderad.debug.calls import Calls
from shaderad.debug.values import Classes, from_numpy
from shaderad.diagnostics import error
from shaderad.frontend.signatures import signature_of
from shaderad.ir import types
from shaderad.ir.nodes import KernelParameter
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Access
from shaderad.runtime import buffers
from shaderad.session.arguments import at_path, normalised_shape, struct_fields
from shaderad.session.arrays import Array
from shaderad.session.call import Call, asked_shapes, bound_call, checked_dim, inferred_dim
from shaderad.session.pointers import HostPointer

if TYPE_CHECKING:
    from shaderad.frontend.decorators import KernelFunction


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
        For each written array what the thread wrote, by index.

    Raises:
        ShapeError: What a call raises; SR0676 where the launch has no such thread.
        BoundsError: SR0675 at the line that uses an index out of range.
    """
    call = bound_call(function, args, kwargs)
    count = len(function.signature.index_names)
    given = call.options.get("dim")
    dim = (
        _inferred_dim(function, call)
        if given is None
        else checked_dim(function.name, count, given, function.def_span)
    )
    index = _thread_index(function, thread, dim)
    binder = _Binder(signature_of(function).structs, call.options, dim)
    position = [np.int32(i) for i in index]
    values = [binder.bind(p, call.given.get(p.name)) for p in function.signature.parameters]
    calls = Calls()
    with np.errstate(all="ignore"):
        calls.body(function)(*position, *values)
    return {name: array.written() for name, array in binder.written.items()}


def _inferred_dim(function: KernelFunction, call: Call) -> tuple[int, ...]:
    """The extents of a launch that was asked for without ``dim=``."""
    constants = {p.name: call.given[p.name] for p in function.signature.parameters if p.is_const}
    kernel = function.specialise(constants)
    axes = axes_of_launch(kernel)
    shapes = asked_shapes(kernel, call.options.get("shapes"))
    for b in map(kernel.buffer, {name for places in axes for name, _ in places}):
        if b.access is Access.IN:
            given = _plain(at_path(call.given, b.path))
            shapes[b.name] = buffers.to_storage(given, b.type.element, b.shown_name)[1]
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


class _Binder:
    """Arguments as the body sees them."""

    def __init__(self, classes: Classes, options: Mapping[str, Any], dim: tuple[int, ...]) -> None:
        self._classes = classes
        self._shapes: Mapping[str, Any] = options.get("shapes") or {}
        self._bounds = options.get("bounds", "raise")
        self._dim = dim
        self.written: dict[str, WrittenArray] = {}

    def bind(self, p: KernelParameter, given: Any) -> Any:
        """One parameter."""
        t = p.type
        if p.is_const:
            return given
        if isinstance(t, types.BufferType) and t.access is not Access.IN:
            shape = normalised_shape(self._shapes.get(p.name, self._dim), p.name)
            made = WrittenArray(p.name, t, shape, self._classes, self._bounds)
            self.written[p.name] = made
            return made
        return self._bound(given, t, p.name)

    def _bound(self, given: Any, t: types.Type, name: str) -> Any:
        if isinstance(t, types.Pointer):
            return self._pointed(given, t, name)
        if isinstance(t, types.BufferType):
            if holds_pointers(t.element):
                return self._pointed(HostPointer(given), types.Pointer(t.element), name)
            storage, shape = buffers.to_storage(_plain(given), t.element, name)
            data = buffers.to_host(storage, t.element)
            return ReadArray(name, t, data, shape, self._classes, self._bounds)
        if isinstance(t, types.Struct) and (t.holds_buffers or holds_pointers(t)):
            fields = struct_fields(given) or {}
            parts = {n: self._bound(fields[n], f, f"{name}.{n}") for n, f in t.fields}
            return self._classes[t](**parts)
        storage, _ = buffers.to_storage(_plain(given), t, name)
        return from_numpy(buffers.to_host(storage, t), t, self._classes)

    def _pointed(self, given: Any, t: types.Pointer, name: str) -> Pointed:
        """What a pointer leads to: structs with pointers are read when they are asked for."""
        target = given.target
        if holds_pointers(t.element):
            elements: Any = list(target)
        else:
            storage, _ = buffers.to_storage(_plain(target), t.element, name)
            elements = buffers.to_host(storage, t.element)

        def read(one: Any) -> Any:
            if holds_pointers(t.element):
                return self._bound(one, t.element, name)
            return from_numpy(one, t.element, self._classes)

        # There is no struct whose pointers lead nowhere: to ask for one is always an error.
        bounds = "raise" if holds_pointers(t.element) else self._bounds
        return Pointed(name, t, elements, read, self._classes, bounds)


def _plain(value: Any) -> Any:
    """NumPy for arrays of a device."""
    return value.numpy() if isinstance(value, Array) else value
