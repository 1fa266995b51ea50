"""Arguments of kernels -> device arrays and uniform words.

Invariant: a bound array has exactly the element type and the rank that the kernel reads; arrays on
a device are never converted implicitly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, Shape, uploaded
from shaderad.arrays.containers import struct_fields
from shaderad.arrays.numbers import host_number
from shaderad.arrays.open_textures import OpenSampler
from shaderad.arrays.syntax import SYNTAX
from shaderad.arrays.tape import recorded_view, trace_of
from shaderad.arrays.textures import Texture
from shaderad.device.devices import Device, check_same
from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.language.structs import check_fields
from shaderad.runtime import buffers
from shaderad.runtime.textures import SamplerSettings


def bind_array(value: Any, t: types.BufferType, name: str, device: Device) -> Array:
    """The device array to bind to parameter `name` for the argument `value`.

    Raises:
        ShapeError: SR0352 to SR0356 and SR0367 for the element type, SR0368 for the rank.
        DeviceError: SR0650 for an array on another device.
    """
    if isinstance(t, types.TextureType):
        check_same(bound_texture(value, t, name).device, device, name)
        return value.texels
    if isinstance(t, types.SamplerType):
        settings = bound_sampler(value, name)
        return (
            settings.sampler
            if isinstance(settings, OpenSampler)
            else sampler_array(settings, device)
        )
    if isinstance(value, Array):
        bound = as_element(value, t.element, name)
        check_same(bound.device, device, name)
    else:
        storage, shape = buffers.to_storage(value, t.element, name)
        bound = uploaded(device, t.element, storage, shape)
    if len(bound.shape) != t.rank:
        raise error("SR0368", name=name, type=t, rank=t.rank, shape=bound.shape)
    return bound


def sampler_array(settings: SamplerSettings, device: Device) -> Array:
    """A sampler as kernels bind it: an array without axes."""
    sampler = device.runtime.sampler(settings)
    return Array(device, types.UINT, (), cast("Any", sampler))


def bound_texture(value: Any, t: types.TextureType, name: str) -> Texture:
    """The argument for a texture.

    Raises:
        ShapeError: SR0819 if it is no texture, or has another dimension or number of channels.
    """
    description = _described(value)
    if isinstance(value, Texture):
        description = f"a {value.dimension} texture of `{value.texels.element}`"
        if value.dimension == t.dimension.value.lower() and value.texels.element == t.element:
            return value
    raise error("SR0819", name=name, type=t, found=description, make="sad.texture(image)")


def bound_sampler(value: Any, name: str) -> SamplerSettings | OpenSampler:
    """The argument for a sampler; raises SR0819 for anything else."""
    if isinstance(value, SamplerSettings | OpenSampler):
        return value
    raise error("SR0819", name=name, type=types.SAMPLER, found=_described(value),
                make='sad.sampler("linear")')  # fmt: skip


def _described(value: Any) -> str:
    return f"a `{type(value).__name__}`"


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


def bind_uniform(value: Any, t: types.Type, name: str, device: Device) -> Array:
    """A uniform as an array without axes: a number of the host, or one on the device.

    Raises:
        ShapeError: SR0352 to SR0357, SR0367.
        DeviceError: SR0650.
    """
    if not isinstance(value, Array):
        return host_number(value, t, name, device)
    bound = as_element(value, t, name)
    if bound.shape:
        raise error("SR0357", name=name, type=t, shape=bound.shape)
    check_same(bound.device, device, name)
    return bound


def composed(value: Any, t: types.Type, name: str) -> Any:
    """`value`, composed into one array if it is a vector, matrix or struct of traced arrays.

    Raises:
        ShapeError: SR0330 if its parts do not form a `t`.
    """
    if isinstance(value, Array) or trees.children(value) is None:
        return value
    arrays = [leaf for leaf in trees.leaves(value) if isinstance(leaf, Array)]
    return value if trace_of(arrays) is None else SYNTAX.functions.composed(value, t, name)


def at_path(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value of a parameter, or of a field of a struct parameter.

    Raises:
        ShapeError: SR0369, where a field is missing.
    """
    value = values[path[0]]
    for depth, field in enumerate(path[1:], start=1):
        if field == types.SIZE and isinstance(value, Texture):
            return value.size
        if field == types.SETTINGS and isinstance(value, SamplerSettings | OpenSampler):
            return value.word
        fields = struct_fields(value) or {}
        if field not in fields:
            what = f"a `{type(value).__name__}`"
            raise error("SR0369", name=".".join(path[:depth]), field=field, found=what)
        value = fields[field]
    return value


def check_struct(value: Any, t: types.Struct, name: str) -> None:
    """Raises SR0355 if the class of `value`, or of a struct in it, has other fields than `t`."""
    check_fields(value, t, name)
    fields = struct_fields(value) or {}
    for field, part in t.fields:
        if isinstance(part, types.Struct) and field in fields:
            check_struct(fields[field], part, f"{name}.{field}")
