"""``kernel.debug(...)``: runs one thread of a launch as Python.

In arrays hold the caller's data. Written arrays have the same initial values as on a device, and
hold only the writes of this thread. Invariant: an index out of range never reaches an element. It
is an error at its line or, with ``bounds="ignore"``, reads 0 and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from shaderad.arguments.kinds import resource_kind
from shaderad.arguments.struct import at_path
from shaderad.arrays.arrays import Array
from shaderad.arrays.containers import struct_fields
from shaderad.arrays.traced_sizes import normalised_shape
from shaderad.bodies.outputs import axes_of_launch
from shaderad.calls.call import CallArguments, asked_shapes, bound_call, checked_dim, inferred_dim
from shaderad.debug.bodies import Calls
from shaderad.debug.textures import Body, TextureValue, texels_of
from shaderad.debug.values import Classes, checked, copied, fitted, from_numpy, zero
from shaderad.diagnostics import BoundsError, error
from shaderad.interpret.machine import neutral
from shaderad.ir import types
from shaderad.ir.nodes import KernelParameter
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Access
from shaderad.language.annotations import NUMPY_BY_KIND
from shaderad.language.signatures import UserKernel, signature_of
from shaderad.runtime import buffers

Index = tuple[int, ...]


def debug_kernel(
    function: UserKernel,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    thread: int | tuple[int, ...],
) -> dict[str, dict[Any, Any]]:
    """Runs the Python body for one thread.

    Args:
        function: The decorated kernel.
        args: As in a call of the kernel.
        kwargs: As in a call of the kernel.
        thread: The index of the thread, or its row-major number.

    Returns:
        For each written array, the elements that the thread wrote, by index.

    Raises:
        ShapeError: As in a call of the kernel; SR0676 if the launch has no such thread.
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
    calls = Calls()
    binder = _ThreadBinder(signature_of(function).structs, call.options, dim, calls.body)
    position = [np.int32(i) for i in index]
    values = [
        binder.bind(p, call.argument_by_name.get(p.name)) for p in function.signature.parameters
    ]
    with np.errstate(all="ignore"):
        calls.body(function)(*position, *values)
    return {name: array.written() for name, array in binder.written.items()}


def _inferred_dim(function: UserKernel, call: CallArguments) -> tuple[int, ...]:
    """The extents of a launch without ``dim=``."""
    constants = {name: call.argument_by_name[name] for name in function.signature.constants}
    kernel = function.specialise(constants)
    axes = axes_of_launch(kernel)
    shapes = asked_shapes(kernel, call.options.get("shapes"))
    for b in map(kernel.buffer, {name for places in axes for name, _ in places}):
        if b.access is Access.IN:
            data = _as_numpy(at_path(call.argument_by_name, b.path))
            shapes[b.name] = buffers.to_storage(data, b.type.element, b.shown_name)[1]
    return inferred_dim(kernel, axes, shapes, function.def_span)


def _thread_index(
    function: UserKernel, thread: int | tuple[int, ...], dim: tuple[int, ...]
) -> Index:
    match thread:
        case int() if 0 <= thread < int(np.prod(dim, dtype=int)):
            return tuple(int(i) for i in np.unravel_index(thread, dim)) if dim else ()
        case tuple() if len(thread) == len(dim) and all(
            0 <= i < n for i, n in zip(thread, dim, strict=True)
        ):
            return thread
        case _:
            raise error("SR0676", function.def_span, thread=thread, name=function.name, dim=dim)


class _ReadArray:
    """An In array, or the target of a pointer, for one thread."""

    def __init__(
        self, name: str, t: types.BufferType, shape: Index, classes: Classes, bounds: str,
        read: Callable[[Index], Any],
    ) -> None:  # fmt: skip
        self._name = name
        self._type = t
        self._classes = classes
        self._is_silent = bounds != "raise"
        self._read = read
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{self._type} of shape {self.shape}"

    def __getitem__(self, key: Any) -> Any:
        position = self._position(key)
        return self._zero() if position is None else self._read(position)

    def _position(self, key: Any) -> Index | None:
        """The checked index; `None` if it is out of range with ``bounds="ignore"``."""
        index = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
        pairs = zip(index, self.shape, strict=True)
        try:
            return tuple(checked(i, length, f"`{self._name}`") for i, length in pairs)
        except BoundsError:
            if self._is_silent:
                return None
            raise

    def _zero(self, fill: Any = 0) -> Any:
        return zero(self._type.element, self._classes, fill)


class _WrittenArray(_ReadArray):
    """An Out, Add, Min or Max array, as the elements that this thread has read or written."""

    def __init__(
        self, name: str, t: types.BufferType, shape: Index, classes: Classes, bounds: str
    ) -> None:
        super().__init__(name, t, shape, classes, bounds, self._element)
        self._elements: dict[Index, Any] = {}

    def _element(self, position: Index) -> Any:
        return self._elements.setdefault(position, self._start())

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        if position is not None:
            self._elements[position] = fitted(value, self._type.element)

    def _start(self) -> Any:
        access, scalar = self._type.access, types.scalar_of(self._type.element)
        if access in (Access.MIN, Access.MAX) and scalar is not None:
            return self._zero(neutral(access, np.dtype(NUMPY_BY_KIND[scalar.kind])))
        return self._zero()

    def written(self) -> dict[Any, Any]:
        """Copies of the elements by index: an int for one axis, else a tuple."""
        return {
            index[0] if len(index) == 1 else index: copied(value)
            for index, value in self._elements.items()
        }


class _ThreadBinder:
    """Arguments of the call -> the values of the body's parameters."""

    def __init__(
        self, classes: Classes, options: Mapping[str, Any], dim: tuple[int, ...], body: Body
    ) -> None:
        self._classes = classes
        self._body = body
        self._shapes: Mapping[str, Any] = options.get("shapes") or {}
        self._bounds = options.get("bounds", "raise")
        self._dim = dim
        self.written: dict[str, _WrittenArray] = {}

    def bind(self, p: KernelParameter, argument: Any) -> Any:
        """The value of parameter `p`."""
        t = p.type
        if p.is_const:
            return argument
        if isinstance(t, types.BufferType) and t.access is not Access.IN:
            shape = normalised_shape(self._shapes.get(p.name, self._dim), p.name)
            self.written[p.name] = _WrittenArray(p.name, t, shape, self._classes, self._bounds)
            return self.written[p.name]
        return self._bound(argument, t, p.name)

    def _bound(self, value: Any, t: types.Type, name: str) -> Any:
        if isinstance(t, types.TextureType):
            return self._texture(value, t, name)
        if isinstance(t, types.SamplerType):
            kind = resource_kind(t)
            return np.uint32(kind.number(kind.checked(value, t, name)))
        if isinstance(t, types.Pointer):
            return self._array(value.target, types.BufferType(Access.IN, t.element), name)
        if isinstance(t, types.BufferType):
            return self._array(value, t, name)
        if isinstance(t, types.Struct) and (t.holds_buffers or holds_pointers(t)):
            fields = struct_fields(value) or {}
            parts = {n: self._bound(fields[n], f, f"{name}.{n}") for n, f in t.fields}
            return self._classes[t](**parts)
        storage, _ = buffers.to_storage(_as_numpy(value), t, name)
        return from_numpy(buffers.to_host(storage, t), t, self._classes)

    def _texture(self, value: Any, t: types.TextureType, name: str) -> TextureValue:
        texture = resource_kind(t).checked(value, t, name)
        array = types.BufferType(Access.IN, t.element)
        texels = self._array(texels_of(texture), array, name)
        size = from_numpy(
            np.array(texture.size, np.int32), types.Vector(types.INT, 4), self._classes
        )
        return TextureValue(texels, size, t, self._body)

    def _array(self, value: Any, t: types.BufferType, name: str) -> _ReadArray:
        """An array, or the elements behind a pointer; structs of pointers are bound on read."""
        if holds_pointers(t.element):
            structs = list(value)

            def struct_at(index: Index) -> Any:
                return self._bound(structs[index[0]], t.element, name)

            # A struct of pointers has no zero, so an index out of range is always an error.
            return _ReadArray(name, t, (len(structs),), self._classes, "raise", struct_at)
        storage, shape = buffers.to_storage(_as_numpy(value), t.element, name)
        data = buffers.to_host(storage, t.element)

        def element_at(index: Index) -> Any:
            return from_numpy(data[index], t.element, self._classes)

        return _ReadArray(name, t, shape, self._classes, self._bounds, element_at)


def _as_numpy(value: Any) -> Any:
    """The data of a device array as a NumPy array; other values unchanged."""
    return value.numpy() if isinstance(value, Array) else value
