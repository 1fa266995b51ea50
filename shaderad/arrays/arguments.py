"""Python values given for kernel parameters -> device arrays and uniform words.

Invariant: what is bound has exactly the element type and the rank that the kernel reads; nothing
on a device is converted without being asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from shaderad.arrays.arrays import Array, Shape, uploaded
from shaderad.arrays.traced_sizes import items_of, outside_limits
from shaderad.arrays.trees import struct_fields
from shaderad.device.devices import Device, check_same
from shaderad.device.words import uniform_words
from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.language.structs import check_fields
from shaderad.runtime import buffers


def bind_array(given: Any, t: types.BufferType, name: str, device: Device) -> Array:
    """The device array that a kernel reads for `given`.

    Raises:
        ShapeError: SR0352 to SR0356 and SR0367 for the element type, SR0368 for the rank.
        DeviceError: SR0650, where it lives on another device.
    """
    if isinstance(given, Array):
        bound = as_element(given, t.element, name)
        check_same(bound.device, device, name)
    else:
        storage, shape = buffers.to_storage(given, t.element, name)
        bound = uploaded(device, t.element, storage, shape)
    if len(bound.shape) != t.rank:
        raise error("SR0368", name=name, type=t, rank=t.rank, shape=bound.shape)
    return bound


def as_element(given: Array, element: types.Type, name: str) -> Array:
    """`given` seen as elements of another type with the same bytes: ``(n, 3)`` floats as float3.

    Raises:
        ShapeError: SR0367, where the bytes mean something else.
    """
    if given.element == element:
        return given
    axes = buffers.element_axes(element)
    split = len(given.shape) - len(axes)
    is_trailing_axis = (
        split >= 0 and given.element == buffers.base_of(element) and given.shape[split:] == axes
    )
    if is_trailing_axis:
        return given.viewed(element, given.shape[:split])
    if isinstance(element, types.Struct) and is_same_struct(given.element, element):
        return given.viewed(element, given.shape)
    raise error("SR0367", name=name, found=given.element, shape=given.shape, type=element)


def is_same_struct(found: types.Type, wanted: types.Type) -> bool:
    """True if two structs differ in their class only, not in their fields."""
    return (
        isinstance(found, types.Struct)
        and isinstance(wanted, types.Struct)
        and buffers.host_dtype(found) == buffers.host_dtype(wanted)
    )


def bind_uniform(given: Any, t: types.Type, name: str, device: Device) -> bytes | Array:
    """The words of a uniform, or the 0-d device array that holds it.

    Raises:
        ShapeError: SR0352 to SR0357, SR0367.
        DeviceError: SR0650.
    """
    if not isinstance(given, Array):
        return uniform_words(given, t, name)
    bound = as_element(given, t, name)
    if bound.shape:
        raise error("SR0357", name=name, type=t, shape=bound.shape)
    check_same(bound.device, device, name)
    return bound


def at_path(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value of a parameter, or of a field of a struct parameter.

    Raises:
        ShapeError: SR0369, where a field is missing.
    """
    value = values[path[0]]
    for depth, field in enumerate(path[1:], start=1):
        fields = struct_fields(value) or {}
        if field not in fields:
            what = f"a `{type(value).__name__}`"
            raise error("SR0369", name=".".join(path[:depth]), field=field, found=what)
        value = fields[field]
    return value


def check_struct(given: Any, t: types.Struct, name: str) -> None:
    """Raises SR0355 where `given`, or a struct in it, is of a class with other fields than `t`."""
    check_fields(given, t, name)
    fields = struct_fields(given) or {}
    for field, part in t.fields:
        if isinstance(part, types.Struct) and field in fields:
            check_struct(fields[field], part, f"{name}.{field}")


def normalised_shape(given: Any, name: str) -> Shape:
    """A tuple of extents from an int or a sequence of ints.

    Raises:
        ShapeError: SR0370 for what is no whole number, SR0371 for negative or too large ones.
    """
    shape: list[int] = []
    for item in items_of(given):
        try:
            extent = operator.index(item)
        except TypeError:
            extent = None
        if extent is None or isinstance(item, bool):
            raise error("SR0370", name=name, found=repr(item))
        shape.append(extent)
    total = 1
    for extent in shape:
        total *= max(extent, 0)
        if extent < 0 or max(extent, total) > buffers.ELEMENT_COUNT_LIMIT:
            raise outside_limits(None, name, given, is_negative=extent < 0)
    return tuple(shape)
