"""Arrays as arguments.

Invariant: a bound array has exactly the element type and the rank that the kernel reads; arrays on
a device are never converted implicitly.
"""

from __future__ import annotations

from typing import Any

from shaderad.arguments.kinds import ArgumentKind, ArgumentPart, ArgumentParts, register
from shaderad.arrays.arrays import Array, Shape, uploaded
from shaderad.arrays.containers import items_of
from shaderad.arrays.pointers import StructArrays
from shaderad.arrays.tape import recorded_view
from shaderad.device.devices import Device, check_same
from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.ir.pointers import holds_pointers
from shaderad.runtime import buffers


class ArrayKind(ArgumentKind):
    """Arrays. Those of structs that hold pointers are containers of these structs."""

    def parts(self, value: Any, t: types.Type) -> ArgumentParts | None:
        assert isinstance(t, types.BufferType)
        if not holds_pointers(t.element):
            return None
        parts = [ArgumentPart((), item, t.element) for item in items_of(value) or ()]
        return ArgumentParts(StructArrays, None, parts)

    def bound(self, value: Any, t: types.Type, name: str, device: Device) -> Array:
        assert isinstance(t, types.BufferType)
        if isinstance(value, Array):
            bound = as_element(value, t.element, name)
            check_same(bound.device, device, name)
        else:
            storage, shape = buffers.to_storage(value, t.element, name)
            bound = uploaded(device, t.element, storage, shape)
        if len(bound.shape) != t.rank:
            raise error("SR0368", name=name, type=t, rank=t.rank, shape=bound.shape)
        return bound


register(ArrayKind(), types.BufferType)


def as_element(array: Array, element: types.Type, name: str) -> Array:
    """`array` with elements of another type: ``(n, 3)`` floats as float3; a tape follows it.

    Raises:
        ShapeError: SR0367 if the bytes of the two types differ in meaning.
    """
    if array.element is element or array.element == element:
        return array
    axes = buffers.element_axes(element)
    split = len(array.shape) - len(axes)
    is_trailing_axis = (
        split >= 0 and array.element == buffers.base_of(element) and array.shape[split:] == axes
    )
    is_same = isinstance(element, types.Struct) and is_same_struct(array.element, element)
    if is_trailing_axis or is_same:
        return seen_as(array, element, array.shape if is_same else array.shape[:split])
    raise error("SR0367", name=name, found=array.element, shape=array.shape, type=element)


def seen_as(array: Array, element: types.Type, shape: Shape) -> Array:
    """The bytes of `array` as `shape` elements of another type, which a tape follows."""
    return recorded_view(
        array,
        array.viewed(element, shape),
        lambda bar: bar.viewed(array.element, array.shape),
        lambda dot: dot.viewed(element, shape),
    )


def is_same_struct(held: types.Type, wanted: types.Type) -> bool:
    """True if two structs have the same fields, even if their classes differ."""
    return (
        isinstance(held, types.Struct)
        and isinstance(wanted, types.Struct)
        and buffers.host_dtype(held) == buffers.host_dtype(wanted)
    )
