"""Derivatives as kernels and graphs take and make them <-> the form of arguments and results.

Invariant: a gradient has the shape and element type of its argument, trailing axis where it was
given so; a struct comes back as a struct, 0 in fields that hold no float.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import prod
from types import NoneType
from typing import Any

import numpy as np

from shaderad.arguments.array import as_element
from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, Shape, copied, is_host_array, uploaded, vector_of, zeros
from shaderad.arrays.containers import container_of, rebuilt, struct_class, struct_fields
from shaderad.arrays.tape import recorded_view, trace_of
from shaderad.arrays.textures import ByLevels
from shaderad.device.devices import Device, check_same
from shaderad.diagnostics import error, text_of
from shaderad.execute.convert import field_of, in_form, recorded_form, summed
from shaderad.ir import types
from shaderad.language.structs import class_of
from shaderad.runtime import buffers


def in_form_given(gradient: Array, given: Any, element: types.Type) -> Any:
    """A gradient of elements `element` as the array, number, tuple or struct that it belongs to."""
    if isinstance(given, Array):
        return recorded_form(gradient, given.element, given.shape)
    if isinstance(element, types.Struct) and not gradient.shape:
        fields = struct_fields(given)
        return gradient if fields is None else _by_fields(gradient, given, fields)
    base, axes = buffers.base_of(element), buffers.element_axes(element)
    whole = recorded_form(gradient, base, (*gradient.shape, *axes)).noted_as(vector_of(given))
    return whole if gradient.shape else _by_components(whole, given, element)


def _by_fields(gradient: Array, given: Any, fields: Mapping[str, Any]) -> Any:
    """One struct on the device -> a host struct of arrays without axes."""
    parts: dict[str, Any] = {}
    for name, value in fields.items():
        part = _recorded_field(gradient, name)
        is_float = types.is_differentiable(part.element)
        parts[name] = in_form_given(part, value, part.element) if is_float else 0
    return rebuilt(struct_class(given), parts)


def _recorded_field(struct: Array, name: str) -> Array:
    """Field `name` of one struct, which a tape follows."""

    def pull_back(bar: Array) -> Array:
        whole = zeros(struct.device, struct.element, ())
        copied(bar, field_of(whole, name))
        return whole

    return recorded_view(struct, field_of(struct, name), pull_back, lambda dot: field_of(dot, name))


def _by_components(components: Array, given: Any, element: types.Type) -> Any:
    """The components of a vector or matrix, in the form of the tuples that stood for it."""
    if not isinstance(element, types.Vector | types.Matrix):
        return components
    kind = container_of(given)
    if kind is None:
        return components
    detail, parts = kind.taken_apart(given)
    row = element.row if isinstance(element, types.Matrix) else element.element
    return kind.built(
        detail, [_by_components(components[k], part, row) for k, part in enumerate(parts)]
    )


def derivative_of(like: Array, given: Any, name: str, *, is_tangent: bool) -> Array | None:
    """The cotangent or tangent of `like` that the caller gave, on its device; `None` is zero.

    Raises:
        ShapeError: SR0352 to SR0356, SR0367 for its type, SR0382 for its shape.
    """
    if given is None or not types.is_differentiable(like.element):
        return None
    device = like.device
    if isinstance(given, ByLevels):
        # Imported here: a kernel alone needs no functions on arrays.
        from shaderad.functions.layout import texels_from_form

        def level_like(part: Any, element: types.Type, shape: Shape, name: str) -> Array:
            return derivative_like(part, element, shape, device, name)

        return texels_from_form(given, name, level_like, is_tangent=is_tangent)
    return derivative_like(given, like.element, like.shape, device, name)


def derivative_like(
    given: Any, element: types.Type, shape: Shape, device: Device, name: str
) -> Array:
    """A cotangent or tangent given by the caller, as `shape` elements on `device`."""
    if isinstance(given, Array):
        if given.element is element and given.shape == shape and given.device is device:
            return given
        check_same(given.device, device, name)
        like = as_element(given, element, name)
    else:
        if isinstance(given, int | float) and shape == (1,):
            given = [given]
        given = _with_zeros(given, element, shape)
        storage, given_shape = buffers.to_storage(given, element, name)
        like = uploaded(device, element, storage, given_shape)
    if like.shape != shape:
        raise error("SR0382", name=name, found=like.shape, shape=shape)
    return like


def _with_zeros(given: Any, element: types.Type, shape: Shape) -> Any:
    """Struct derivatives may leave out fields, or hold `None` there: zero."""
    while isinstance(element, types.LocalArray):
        element, shape = element.element, (*shape, element.count)
    if not isinstance(element, types.Struct):
        return given
    fields = struct_fields(given)
    if fields is None:
        return given
    if not set(fields) <= set(element.type_by_field):
        raise error("SR0355", name=element.name, type=element, found=", ".join(fields),
                    wanted=", ".join(element.type_by_field))  # fmt: skip
    known: dict[str, Any] = {}
    for name, field in element.fields:
        part = fields.get(name)
        if part is None or not types.is_differentiable(field):
            axes = buffers.element_axes(field)
            known[name] = np.zeros((*shape, *axes), buffers.host_dtype(field))
        else:
            known[name] = _with_zeros(part, field, shape)
    return known


def holds_floats(leaf: Any) -> bool:
    """True if a leaf is an array that derivatives belong to."""
    return isinstance(leaf, Array) and types.is_differentiable(leaf.element)


def is_data(leaf: Any) -> bool:
    """True if a leaf is a number, list or NumPy array that may hold floats."""
    return isinstance(leaf, float | np.floating | list) or is_host_array(leaf)


def check_has_derivative(leaf: Any, given: Any, name: str) -> None:
    """Raises SR0482 for the derivative `given` of a leaf that holds no floats.

    Whole numbers and texts beside floats may stand in it as they are.
    """
    is_array = isinstance(leaf, Array | list) or is_host_array(leaf)
    is_plain = isinstance(leaf, int | float | str | bytes | Enum | NoneType | np.generic)
    if not is_array and (not is_plain or (isinstance(given, float) and given)):
        raise error("SR0482", name=name, found=class_of(leaf).__name__)


def check_keywords(keywords: Mapping[str, Any]) -> None:
    """Raises SR0453 for an array of floats that is given by keyword."""
    for name, value in keywords.items():
        for leaf in trees.leaves(value):
            is_floats = is_host_array(leaf) and buffers.as_numpy(leaf, name).dtype.kind == "f"
            if is_floats or holds_floats(leaf):
                raise error("SR0453", name=name)


def check_sum(total: Any, element: types.Type, shape: Shape, device: Device) -> None:
    """Raises SR0469 for what cannot hold such a gradient, SR0650 where it is elsewhere."""
    wanted = buffers.byte_count(element, prod(shape))
    base = buffers.base_of(element)
    if not isinstance(total, Array):
        found = f"a `{type(total).__name__}`"
    elif buffers.base_of(total.element) != base or total.byte_count != wanted:
        found = text_of(total)
    else:
        check_same(total.device, device, "accumulate")
        return
    raise error("SR0469", found=found, wanted=f"an array of `{element}` with shape {shape}")


def added(gradient: Any, total: Any) -> Any:
    """`total`, to which `gradient` is added in place; what holds no floats is as it was.

    Raises:
        DerivativeError: SR0451 within a transform, which does not follow what changes in place.
    """
    if total is None or not isinstance(gradient, Array):
        return gradient
    if isinstance(total, Array) and trace_of([gradient, total]) is not None:
        raise error("SR0451")
    check_sum(total, gradient.element, gradient.shape, gradient.device)
    copied(summed(in_form(gradient, total.element, total.shape), total), total)
    return total
