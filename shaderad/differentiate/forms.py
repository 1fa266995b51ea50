"""Gradients and tangents as kernels take and make them <-> the form of arguments and results.

Invariant: both have the same shape and element type, trailing axis where it was given so; a struct
comes back as a struct, 0 in fields that hold no float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arguments import as_element
from shaderad.arrays.arrays import (
    Array,
    Shape,
    copied,
    is_host_array,
    uploaded,
    vector_of,
    zeros,
)
from shaderad.arrays.tape import trace_of
from shaderad.arrays.textures import ByLevels, Texture
from shaderad.arrays.trees import rebuilt, struct_fields
from shaderad.device.devices import Device, check_same
from shaderad.diagnostics import error, text_of
from shaderad.execute.convert import in_form, summed
from shaderad.ir import types
from shaderad.runtime import buffers

Like = Callable[[Any, types.Type, Shape, str], Array]


def in_form_given(gradient: Array, given: Any, element: types.Type) -> Any:
    """`gradient` of elements `element` in the form of the argument `given`."""
    if isinstance(given, Texture):
        return texels_in_form(gradient, given)
    if isinstance(given, Array):
        is_alike = gradient.element is given.element and gradient.shape == given.shape
        return gradient if is_alike else in_form(gradient, given.element, given.shape)
    gradient = in_form(gradient, element, gradient.shape)
    if isinstance(element, types.Struct) and not gradient.shape:
        fields = struct_fields(given)
        return gradient if fields is None else split(gradient, given, fields)
    axes = buffers.element_axes(element)
    whole = gradient.viewed(buffers.base_of(element), (*gradient.shape, *axes))
    return whole if gradient.shape else by_parts(whole.noted_as(vector_of(given)), given, element)


def by_parts(components: Array, given: Any, element: types.Type) -> Any:
    """The components of a vector or matrix, in the form of the tuples that stood for it."""
    if not isinstance(element, types.Vector | types.Matrix):
        return components
    parts = trees.children(given)
    if parts is None or isinstance(given, Array):
        return components
    row = element.row if isinstance(element, types.Matrix) else element.element
    found = {key: by_parts(components[k], parts[key], row) for k, key in enumerate(parts)}
    return trees.built_like(given, found)


def texels_in_form(gradient: Array, given: Texture) -> Any:
    """The gradient by all texels of a texture -> that by level 0, or by each of given levels."""
    levels: list[Array] = []
    start = 0
    for level in range(given.level_count):
        shape = given.shape_of(level)
        levels.append(gradient[start : start + prod(shape)].reshape(shape))
        start += prod(shape)
    if given.mips is not None:
        return given.mips.pulled(levels)
    return levels[0] if len(levels) == 1 else tuple(levels)


def by_levels(tree: Any) -> Any:
    """A tree of gradients, with those of textures by levels."""
    if isinstance(tree, Texture):
        texels = cast("Array | None", tree.texels)
        return None if texels is None else texels_in_form(texels, tree)
    parts = trees.children(tree)
    if parts is None:
        return tree
    return trees.built_like(tree, {key: by_levels(part) for key, part in parts.items()})


def texels_from_form(tangent: Any, given: Texture, name: str, like: Like) -> Array:
    """The tangent by level 0 of a texture, or by each of given levels -> that by all texels.

    `like` makes an array of an element type and shape of a derivative, which has a name.
    """
    element = given.texels.element
    is_one = given.mips is not None or given.level_count == 1
    parts: Sequence[Any] = [tangent] if is_one else tangent
    if not isinstance(parts, list | tuple) or (not is_one and len(parts) != given.level_count):
        raise error("SR0452", name=name, wanted=f"a tuple of {given.level_count} arrays",
                    found=trees.described(tangent))  # fmt: skip
    levels = [like(part, element, given.shape_of(k), name) for k, part in enumerate(parts)]
    if given.mips is not None:
        levels = given.mips.levels(levels[0])
    rows = [level.ravel() for level in levels]
    # Imported here: a kernel alone needs no functions on arrays.
    from shaderad.functions.layout import concatenate

    return rows[0] if len(rows) == 1 else concatenate(rows)


def split(gradient: Array, given: Any, fields: Mapping[str, Any]) -> Any:
    """One struct on the device -> a host struct of 0-d arrays."""
    parts = {
        name: in_form_given(field_of(gradient, name), value, field_of(gradient, name).element)
        if types.is_differentiable(field_of(gradient, name).element)
        else 0
        for name, value in fields.items()
    }
    return rebuilt(given, parts)


def field_of(whole: Array, name: str) -> Array:
    """Field `name` of one struct, sharing its bytes."""
    struct = whole.element
    assert isinstance(struct, types.Struct)
    offset = field_offset(struct, name)
    return whole.viewed(struct.type_by_field[name], (), offset)


def field_offset(struct: types.Struct, name: str) -> int:
    """Bytes before field `name` of one element."""
    offset_by_field = {leaf.path[0]: leaf.offset for leaf in reversed(types.leaves(struct))}
    return offset_by_field[name]


def cotangent_of(result: Array, given: Any, name: str) -> Array | None:
    """The given cotangent (or tangent) of `result`, on its device.

    Raises:
        ShapeError: SR0352 to SR0356, SR0367 for its type, SR0382 for its shape.
    """
    if given is None or not types.is_differentiable(result.element):
        return None
    if isinstance(given, ByLevels):
        return texels_from_form(given.content, given.texture, name, like_on(result.device))
    return derivative_like(given, result.element, result.shape, result.device, name)


def like_on(device: Device) -> Like:
    """`derivative_like` on a device."""
    return lambda given, element, shape, name: derivative_like(given, element, shape, device, name)


def derivative_like(
    given: Any, element: types.Type, shape: Shape, device: Device, name: str
) -> Array:
    """A cotangent or tangent given by the caller, as `shape` elements on `device`."""
    if isinstance(given, Array):
        if given.element is element and given.shape == shape and given.device is device:
            return given
        check_same(given.device, device, name)
        found = as_element(given, element, name)
    else:
        if isinstance(given, int | float) and shape == (1,):
            given = [given]
        given = _with_zeros(given, element, shape)
        storage, given_shape = buffers.to_storage(given, element, name)
        found = uploaded(device, element, storage, given_shape)
    if found.shape != shape:
        raise error("SR0382", name=name, found=found.shape, shape=shape)
    return found


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


def check_keywords(keywords: Mapping[str, Any]) -> None:
    """Raises SR0453 for an array of floats that is given by keyword."""
    for name, value in keywords.items():
        for leaf in trees.leaves(value):
            is_floats = is_host_array(leaf) and buffers.as_numpy(leaf, name).dtype.kind == "f"
            if is_floats or holds_floats(leaf):
                raise error("SR0453", name=name)


def cotangents_of(out: Any, out_bar: Any, name: str = "out_bar") -> list[Array | None]:
    """The cotangent of each leaf of `out`; `None` where nothing is given or nothing flows."""
    if isinstance(out, Array):
        return [cotangent_of(out, out_bar, name)]
    found: list[Array | None] = []

    def collect(leaf: Any, given: Any) -> None:
        is_array = isinstance(leaf, Array)
        found.append(cotangent_of(leaf, given, name) if is_array else None)

    trees.mapped(collect, out, out_bar, name=name)
    return found


def tangents_of(out: Any, found: Sequence[Array | None]) -> Any:
    """Tangents of the results in their structure: zeros where nothing flows, `None` for ints."""
    remaining = iter(found)

    def tangent(leaf: Any) -> Array | None:
        known = next(remaining)
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        if known is None:
            return zeros(leaf.device, leaf.element, leaf.shape)
        return in_form(known, leaf.element, leaf.shape)

    return trees.mapped(tangent, out)


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


def accumulated(gradients: list[Any], into: Sequence[Any]) -> list[Any]:
    """Adds `gradients` to the arrays of `into`, in place, and returns those.

    Raises:
        DerivativeError: SR0451 within a transform, which does not follow what changes in place.
    """

    def add(gradient: Any, total: Any) -> Any:
        if total is None or not isinstance(gradient, Array):
            return gradient
        check_sum(total, gradient.element, gradient.shape, gradient.device)
        if trace_of([gradient, total]) is not None:
            raise error("SR0451")
        copied(summed(in_form(gradient, total.element, total.shape), total), total)
        return total

    pairs = zip(gradients, into, strict=True)
    return [trees.mapped(add, gradient, total, name="accumulate") for gradient, total in pairs]
