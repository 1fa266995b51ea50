"""Arrays made from shapes and numbers: `iota`, `arange`, `linspace`, `eye`, `full`, `zeros`, ..."""

from __future__ import annotations

import math
from typing import Any, cast

from shaderad.arrays.arrays import Array
from shaderad.arrays.dtypes import element_type
from shaderad.arrays.traced_sizes import TracedSize, shape_of, shown, size_of, size_or_none
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.functions.layout import broadcast_to, diagonal_test
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import FLOAT, Type, scalar_of
from shaderad.trace.elements import as_element, as_floats, binary, cast_to
from shaderad.trace.primitives import as_number, made, size_array, spread
from shaderad.trace.traced import TracedArray, tracing

__all__ = [
    "arange", "eye", "full", "full_like", "iota", "linspace", "ones", "ones_like", "zeros",
    "zeros_like",
]  # fmt: skip


@array_function
def iota(n: Any) -> Array:
    """0, 1, ..., n - 1.

    Args:
        n: A number or a size; of a shape, the position along the last axis.

    Returns:
        Ints, which carry no derivative.

    Raises:
        ShapeError: SR0370 for anything but a whole number, SR0371 for a negative one.
    """
    shape = shape_of(n, "n")
    return made(b.iota(shape, len(shape) - 1))


@array_function
def arange(start: Any, stop: Any = None, step: Any = 1) -> Array:
    """Numbers from `start` to before `stop`, as in NumPy.

    ``start + k * step`` for k = 0, 1, ..., ``ceil((stop - start) / step) - 1``

    Args:
        start: A number or a size. If `stop` is left out, this is `stop`, and `start` is 0.
        stop: A number or a size.
        step: A number but 0, which may be negative.

    Returns:
        Ints where all three are whole numbers, else floats, which carry no derivative.

    Raises:
        LanguageError: SR0312 for anything but a finite number, for a size together with floats, and
            for a step of 0; SR0320 for a step that is a size.
        ShapeError: SR0371 for too many.
    """
    first, last = (0, start) if stop is None else (start, stop)
    limits = [size_or_none(x) for x in (first, last, step)]
    if None in limits:
        named = {"start": first, "stop": last, "step": step}
        limits = [_finite(x, name) for name, x in named.items()]
    begin, end, by = cast("list[Size | float]", limits)
    if not isinstance(by, int | float):
        TracedSize(by).refuse("the step of `arange`")
    if by == 0:
        raise error("SR0312", user_span(), name="arange", found="a step of 0",
                    help="write the distance of neighbours")  # fmt: skip
    if isinstance(begin, float) or isinstance(end, float) or isinstance(by, float):
        count = max(math.ceil((cast("float", end) - cast("float", begin)) / by), 0)
        position = cast_to(iota(size_of(count, "arange")), FLOAT)
    else:
        length = sizes.subtract(end, begin) if by > 0 else sizes.subtract(begin, end)
        steps = sizes.divide_up(length, abs(by)) if tracing().is_positive(length) else 0
        position = made(b.iota((size_of(shown(steps), "arange"),), 0))
    offset = begin if isinstance(begin, int | float) else size_array(begin)
    return binary("add", offset, binary("mul", by, position))


def _finite(x: Any, name: str) -> float:
    """The argument `name` of `arange` as a float.

    Raises:
        LanguageError: SR0312 for anything else, infinities and NaN.
    """
    number = as_number(x)
    if number is None or not math.isfinite(number):
        raise error("SR0312", user_span(), name="arange", found=f"`{text_of(x)}` as `{name}`",
                    help="give it finite numbers; with sizes, whole numbers")  # fmt: skip
    return float(number)


@array_function
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True) -> Array:
    """Numbers at equal distances from `start` to `stop`, as in NumPy.

    ``(1 - t) * start + t * stop`` with ``t = k / (num - 1)`` for k = 0, 1, ..., num - 1; without
    the endpoint ``t = k / num``.

    Args:
        start: A number, or an array of numbers, vectors or matrices.
        stop: Likewise; both broadcast.
        num: How many: a number or a size.
        endpoint: True if the last one is `stop`.

    Returns:
        Floats along a new first axis; both ends are exact.

    Raises:
        ShapeError: SR0370 for a `num` that is no whole number, SR0371 for a negative one, SR0379,
            where the shapes do not broadcast.

    Differentiable in `start` and `stop`, by the factors above.
    """
    count = size_of(num, "num")
    ends = [x if as_number(x) is not None else as_floats(as_element(x)) for x in (start, stop)]
    end_arrays = [x for x in ends if isinstance(x, TracedArray)]
    scalar = next((scalar_of(x.element) for x in end_arrays), None) or FLOAT
    rank = max((len(x.extents) for x in end_arrays), default=0)
    intervals = sizes.maximum(sizes.subtract(count, 1) if endpoint else count, 1)
    position = cast_to(made(b.iota((count, *(1,) * rank), 0)), scalar)
    divisor = cast_to(size_array(intervals), scalar)
    t = binary("divide", position, divisor)
    return binary("add", binary("mul", binary("subtract", 1.0, t), ends[0]),
                  binary("mul", t, ends[1]))  # fmt: skip


@array_function
def eye(n: Any, m: Any = None, k: Any = 0) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    Args:
        n: How many rows: a number or a size.
        m: How many columns; as many as rows, if left out.
        k: The diagonal, a whole number or a size: 0 is the main one, those above it count upward.

    Returns:
        Floats, which carry no derivative.

    Raises:
        ShapeError: SR0370 for anything but a whole number, SR0371 for a negative `n` or `m`.
    """
    shape = (size_of(n, "n"), size_of(n if m is None else m, "m"))
    on_diagonal = diagonal_test(ops.EQ, shape, k)
    return cast_to(made(on_diagonal), FLOAT)


@array_function
def full(shape: Any, value: Any, dtype: Any = None) -> Array:
    """One value everywhere.

    Args:
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        value: A number, a vector like ``float3(0, 0, 1)``, a struct, or an array of one element. An
            array with axes is repeated: they follow those of `shape`.
        dtype: The element type, to which `value` is converted as by `cast`; by default its own.

    Raises:
        LanguageError: SR0303, where `value` does not convert.
        ShapeError: SR0358 for an invalid element type, SR0370 and SR0371 for an invalid extent.

    Differentiable in `value`: its cotangent is the sum of the result's.
    """
    element = as_element(value)
    return _filled(shape_of(shape), element, _element(dtype, element))


@array_function
def zeros(shape: Any, dtype: Any = float) -> Array:
    """Zeros of an element type.

    Args:
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        dtype: ``float``, ``int``, ``bool``, a type of `sad`, a NumPy dtype or a struct class.

    Returns:
        Elements that carry no derivative; zeros of structs are zeros in every field.

    Raises:
        ShapeError: SR0358 for an invalid element type, SR0370 and SR0371 for an invalid extent.
    """
    return made(b.zeros(ArrayType(element_type(dtype), shape_of(shape))))


@array_function
def ones(shape: Any, dtype: Any = float) -> Array:
    """Ones of an element type.

    Args:
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        dtype: ``float``, ``int``, ``bool``, a type of numbers of `sad`, or a NumPy dtype.

    Returns:
        Elements that carry no derivative; vectors and matrices are 1 in every component.

    Raises:
        LanguageError: SR0303 for structs.
        ShapeError: SR0358 for an invalid element type, SR0370 and SR0371 for an invalid extent.
    """
    return _filled(shape_of(shape), 1, element_type(dtype))


@array_function
def zeros_like(x: Any, dtype: Any = None) -> Array:
    """Zeros in the shape of an array.

    Args:
        x: An array, of which only the shape and element type are used.
        dtype: The element type, as for `zeros`; by default that of `x`.

    Returns:
        Elements that carry no derivative.

    Raises:
        ShapeError: SR0358 for an invalid element type.
    """
    like = as_element(x)
    return made(b.zeros(ArrayType(_element(dtype, like), like.extents)))


@array_function
def ones_like(x: Any, dtype: Any = None) -> Array:
    """Ones in the shape of an array.

    Args:
        x: An array, of which only the shape and element type are used.
        dtype: The element type, as for `ones`; by default that of `x`.

    Returns:
        Elements that carry no derivative.

    Raises:
        LanguageError: SR0303 for structs.
        ShapeError: SR0358 for an invalid element type.
    """
    like = as_element(x)
    return _filled(like.extents, 1, _element(dtype, like))


@array_function
def full_like(x: Any, value: Any, dtype: Any = None) -> Array:
    """One value everywhere, in the shape of an array.

    Args:
        x: An array, of which only the shape and element type are used.
        value: A number, a vector, or an array, which broadcasts. As in NumPy it is converted to the
            element type of the result, so 0.5 becomes 0 among ints.
        dtype: The element type; by default that of `x`.

    Raises:
        LanguageError: SR0303, where `value` does not convert.
        ShapeError: SR0358 for an invalid element type; SR0379, where the shape of `value` does not
            broadcast to that of `x`.

    Differentiable in `value`: its cotangent is the sum of the result's.
    """
    like = as_element(x)
    element = cast_to(as_element(value), _element(dtype, like))
    return broadcast_to(element, tuple(map(shown, like.extents)))


def _element(dtype: Any, like: TracedArray) -> Type:
    """The element type that `dtype` stands for; that of `like` if it is left out."""
    return like.element if dtype is None else element_type(dtype)


def _filled(shape: Shape, value: Any, element: Type) -> Array:
    filler = cast_to(as_element(value), element)
    return made(spread(filler, (*shape, *filler.extents)))
