"""Functions that rearrange elements: `reshape`, `transpose`, `concatenate`, `stack`,
`broadcast_to`, `reverse`, `roll`; `tril`, `triu`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.textures import ByLevels
from shaderad.arrays.traced_sizes import items_of, no_whole_number, shape_of, size_or_none
from shaderad.calls.array_function import array_function, warn_deprecated
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Type, Vector
from shaderad.runtime.buffers import element_axes
from shaderad.trace.elements import as_array, as_element, conform
from shaderad.trace.primitives import (
    axis_of,
    known_shape,
    made,
    only_axis,
    repeats_to,
    size_array,
    spread,
    traced,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = [
    "broadcast_to",
    "concatenate",
    "reshape",
    "reverse",
    "roll",
    "rotate",
    "stack",
    "tril",
    "triu",
]


@array_function
def reshape(x: Any, shape: Any) -> Array:
    """The same elements in row-major order, as in NumPy.

    Args:
        x: Elements of any type.
        shape: Extents; one may be -1, and is computed from the others.

    Raises:
        ShapeError: SR0324, where the shape holds another number of elements, SR0370 and SR0371 for
            an invalid extent.

    Differentiable: the cotangent is reshaped back.
    """
    operand = traced(x, "x")
    total = sizes.product(operand.extents)
    items = items_of(shape)
    open_at = [k for k, item in enumerate(items) if isinstance(item, int) and item == -1]
    rest = shape_of([item for k, item in enumerate(items) if k not in open_at])
    if len(open_at) == 1:
        rest_count = sizes.product(rest)
        whole = 0 if rest_count == 0 else sizes.floor_divide(total, rest_count)
        wanted = (*rest[: open_at[0]], whole, *rest[open_at[0] :])
    else:
        wanted = shape_of(shape)
    if not tracing().are_equal(sizes.product(wanted), total):
        help_ = "the number of elements must stay the same; one extent may be -1"
        if isinstance(operand.element, Vector):
            help_ += (
                "; the components of vectors are not elements: `sad.stack([x.x, x.y], axis=-1)` "
                "makes them an axis"
            )
        raise error("SR0324", user_span(), found=known_shape(operand.extents),
                    wanted=known_shape(wanted), help=help_)  # fmt: skip
    return made(b.reshape(operand.value, wanted))


def transpose(x: Any, axes: Sequence[int] | None = None) -> TracedArray:
    """The axes in another order; without `axes`, in reverse."""
    operand = traced(x, "x")
    rank = len(operand.extents)
    listed = axes if isinstance(axes, Sequence) else items_of(axes)
    order = [axis_of(k, rank) for k in (reversed(range(rank)) if axes is None else listed)]
    if sorted(order) != list(range(rank)):
        raise error("SR0323", user_span(), axis=axes, rank=rank)
    return made(b.transpose(operand.value, order))


def moved_axis(x: TracedArray, source: int, target: int) -> TracedArray:
    """`x` with axis `source` moved to position `target`, both counted from the front."""
    order = [k for k in range(len(x.extents)) if k != source]
    order.insert(target, source)
    return transpose(x, order)


@array_function
def broadcast_to(x: Any, shape: Any) -> Array:
    """`x` repeated to a shape, as in NumPy.

    Args:
        x: Elements of any type; ``float3(0, 0, 1)`` is one element.
        shape: Extents. Aligned at the last axis, each extent of `x` is 1 or the one here.

    Raises:
        ShapeError: SR0379, where an extent is neither 1 nor what is wanted.

    Differentiable: the cotangent is summed over what was repeated.
    """
    operand, wanted = as_element(x), shape_of(shape)
    if not repeats_to(operand.extents, wanted):
        raise error("SR0379", user_span(), left=known_shape(operand.extents),
                    right=known_shape(wanted))  # fmt: skip
    return made(spread(operand, wanted))


@array_function
def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
    """The arrays one after the other along an axis.

    Args:
        arrays: A tuple or list of them, of one shape but for `axis`; ints become the floats of the
            first one.
        axis: Where they are joined.

    Raises:
        ShapeError: SR0323 for an axis, SR0328 for no arrays, SR0329 where other axes disagree,
            SR0330 for other elements.

    Differentiable: each array gets its part of the cotangent.
    """
    return _joined(_alike(arrays, "concatenate"), axis)


def _joined(arrays: Sequence[TracedArray], axis: int) -> TracedArray:
    position = axis_of(axis, len(arrays[0].extents))
    for array in arrays[1:]:
        _check_alike(arrays[0], array, position)
    values = [spread(array, _along(arrays[0], array, position)) for array in arrays]
    return made(b.concatenate(values, position))


def _along(first: TracedArray, x: TracedArray, axis: int) -> Shape:
    """The shape of `x`, written in the sizes of `first` except along `axis`."""
    return (*first.extents[:axis], x.extents[axis], *first.extents[axis + 1 :])


@array_function
def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape side by side along a new axis.

    Args:
        arrays: A tuple or list of them; ints become the floats of the first one.
        axis: Where the new axis stands in the result.

    Raises:
        ShapeError: SR0323 for an axis, SR0328 for no arrays, SR0329 where shapes disagree, SR0330
            for other elements.

    Differentiable: each array gets its part of the cotangent.
    """
    alike = _alike(arrays, "stack")
    position = axis_of(axis, len(alike[0].extents) + 1)
    for array in alike[1:]:
        _check_alike(alike[0], array, None)
    return _joined([with_axis(array, position) for array in alike], position)


def with_axis(x: TracedArray, position: int) -> TracedArray:
    """`x` with a new axis of 1."""
    shape = (*x.extents[:position], 1, *x.extents[position:])
    return made(b.reshape(x.value, shape))


def _alike(parts: Sequence[Any], name: str) -> list[TracedArray]:
    if not isinstance(parts, tuple | list) or not parts:
        raise error("SR0328", user_span(), name=name)
    lifted = [as_array(part) for part in parts]
    return [conform(array, lifted[0].element, f"{name}[{k}]") for k, array in enumerate(lifted)]


def _check_alike(first: TracedArray, other: TracedArray, free: int | None) -> None:
    """Raises SR0329 if the shapes differ along an axis other than `free`."""
    pairs = list(zip(first.extents, other.extents, strict=False))
    agree = len(first.extents) == len(other.extents) and all(
        k == free or tracing().are_equal(p, q) for k, (p, q) in enumerate(pairs)
    )
    if not agree:
        raise error("SR0329", user_span(), left=known_shape(first.extents),
                    right=known_shape(other.extents))  # fmt: skip


@array_function
def reverse(x: Any, axis: int = -1) -> Array:
    """The elements of an axis in the other order, as `flip` in NumPy.

    ``result[i] = x[n - 1 - i]``

    Args:
        x: Elements of any type.
        axis: The axis that is reversed.

    Raises:
        ShapeError: SR0323 for an axis.

    Differentiable: the cotangent is reversed.
    """
    operand = traced(x, "x")
    position = axis_of(axis, len(operand.extents))
    return made(reversed_value(operand.value, position))


def reversed_value(value: Value, axis: int) -> Value:
    count = value.shape[axis]
    return b.piece(value, axis, sizes.subtract(count, 1), count, -1)


@array_function
def roll(x: Any, shift: Any, axis: int | None = None) -> Array:
    """The elements moved along an axis, the last ones to the front, as in NumPy.

    ``result[(i + shift) mod n] = x[i]``

    Args:
        x: Elements of any type.
        shift: A whole number, or a size; it may be negative, and larger than the axis.
        axis: The axis along which elements move; an array with one axis needs none.

    Raises:
        ShapeError: SR0323 for an axis, SR0370 for a shift that is no whole number, SR0833 for
            several axes and no `axis`.

    Differentiable: the cotangent is rolled back.
    """
    operand = traced(x, "x")
    position = only_axis(axis, operand, "roll")
    count = operand.value.shape[position]
    if not tracing().is_positive(count):
        return operand
    start = _modulo(sizes.subtract(0, whole_number(shift, "shift")), count)
    return made(b.roll(operand.value, position, start))


@api_boundary
def rotate(x: Any, by: Any, axis: int = -1) -> Array:
    """Deprecated: write ``sad.roll(x, -by, axis)``."""
    warn_deprecated("rotate(x, by, axis)", "roll(x, -by, axis)")
    return roll(x, -by, axis)


@array_function
def tril(x: Any, k: Any = 0) -> Array:
    """The lower triangle over the last two axes, and zeros above it.

    ``result[..., i, j] = x[..., i, j]`` where ``j <= i + k``, else 0.

    Args:
        x: Elements of any type, with at least two axes.
        k: The diagonal up to which elements are kept, a whole number or a size: 0 is the main one,
            those above it count upward.

    Raises:
        ShapeError: SR0323 where there are fewer axes, SR0370 for another `k`.

    Differentiable: the cotangent's lower triangle.
    """
    return _triangle(x, k, ops.LE)


@array_function
def triu(x: Any, k: Any = 0) -> Array:
    """The upper triangle over the last two axes, and zeros below it.

    ``result[..., i, j] = x[..., i, j]`` where ``j >= i + k``, else 0.

    Args:
        x: Elements of any type, with at least two axes.
        k: The diagonal from which on elements are kept, a whole number or a size: 0 is the main
            one, those above it count upward.

    Raises:
        ShapeError: SR0323 where there are fewer axes, SR0370 for another `k`.

    Differentiable: the cotangent's upper triangle.
    """
    return _triangle(x, k, ops.GE)


def _triangle(x: Any, k: Any, comparison: ops.Op) -> TracedArray:
    operand = traced(x, "x")
    axis_of(-2, len(operand.extents))
    value = operand.value
    holds = diagonal_test(comparison, value.shape, k)
    return made(b.where(holds, value, b.zeros(value.type)))


def diagonal_test(comparison: ops.Op, shape: Shape, k: Any) -> Value:
    """The comparison of ``j`` with ``i + k`` at each position ``..., i, j`` of a shape."""
    rows, columns = (b.iota(shape, len(shape) - back) for back in (2, 1))
    offset = b.broadcast(size_array(whole_number(k, "k")).value, shape, ())
    diagonal = b.applied(ops.ADD, rows, offset)
    return b.applied(comparison, columns, diagonal)


def whole_number(value: Any, name: str) -> Size:
    """A whole number, or a size, that may be negative.

    Raises:
        ShapeError: SR0370 for anything else.
    """
    size = size_or_none(value)
    if size is None:
        raise no_whole_number(user_span(), name, value)
    return size


def _modulo(a: Size, n: Size) -> Size:
    return sizes.subtract(a, sizes.multiply(sizes.floor_divide(a, n), n))


Like = Callable[[Any, Type, tuple[int, ...], str], Array]


def texels_from_form(derivative: ByLevels, name: str, like: Like, *, is_tangent: bool) -> Array:
    """A derivative by level 0 of a texture, or by each of given levels, as one by all texels.

    Levels that were made move with level 0. They get no cotangent of their own, because that of
    level 0 includes theirs. `like` makes an array of an element type and shape of a derivative,
    which has a name.
    """
    outline, content = derivative.outline, derivative.content
    layout, mips = outline.layout, outline.mips
    is_one = mips is not None or layout.level_count == 1
    parts: Sequence[Any] = [content] if is_one else content
    if not isinstance(parts, list | tuple) or (not is_one and len(parts) != layout.level_count):
        raise error("SR0452", name=name, wanted=f"a tuple of {layout.level_count} arrays",
                    found=trees.described(content))  # fmt: skip
    if mips is not None and not is_tangent:
        axes = element_axes(outline.texel)
        coarser = [layout.level_shape(k) for k in range(1, layout.level_count)]
        parts = [*parts, *(np.zeros((*shape, *axes), np.float32) for shape in coarser)]
    levels = [
        like(part, outline.texel, layout.level_shape(k), name) for k, part in enumerate(parts)
    ]
    if mips is not None and is_tangent:
        levels = mips.levels(levels[0])
    rows = [level.ravel() for level in levels]
    return rows[0] if len(rows) == 1 else concatenate(rows)
