"""`norm`, `var`, `std` over axes; the derivative of a root is 0 where the root is 0."""

from __future__ import annotations

from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.layout import whole_number
from shaderad.functions.reductions import (
    Axes,
    as_divisor,
    axes_of,
    count_over,
    finite_maximum,
    sum_of,
)
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.sizes import Size
from shaderad.ir.types import Matrix, Vector
from shaderad.trace.elements import binary, detach, in_floats, primitive
from shaderad.trace.primitives import known_shape, made
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["norm", "std", "var"]

_LENGTHS = {
    Vector: "write `sad.length(x)` for the length of each vector, `sad.norm(sad.length(x))` for "
    "the norm of all components",
    Matrix: "the columns of a matrix are vectors: `sad.length(x @ float3(1.0, 0.0, 0.0))`",
}
"""The remedy for elements that have a norm per component."""


@array_function
def norm(x: Any, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The Euclidean norm over axes.

    ``sqrt(sum(x * x))``, computed as ``m * sqrt(sum((x / m) ** 2))`` with the largest absolute
    value m, so that squares neither overflow nor vanish.

    Args:
        x: Numbers; ints and bools give floats. Vectors and matrices have one norm per component,
            and need an `axis`: ``sad.length(x)`` is the length of each vector, and
            ``sad.norm(sad.length(x))`` the norm of all components.
        axis: One axis, several, or `None` for all.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Floats; 0 for no elements. Halves are computed in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs, SR0832 for vectors without `axis`.

    Differentiable: ``x_bar = out_bar * x / out``, and 0 where the norm is 0; m carries no
    derivative.

    Source: Blue, *A portable Fortran program to find the Euclidean norm of a vector*, ACM TOMS 4
    (1978).
    """

    def compute(x: TracedArray) -> TracedArray:
        if axis is None and isinstance(x.element, Vector | Matrix):
            raise error("SR0832", user_span(), element=x.element, shape=known_shape(x.extents),
                        help=_LENGTHS[type(x.element)])  # fmt: skip
        size = primitive(ops.ABS, detach(x))
        scaled = binary("divide", x, _or_one(finite_maximum(size, axis, keepdims=True)))
        root = _root(sum_of(binary("mul", scaled, scaled), axis, keepdims))
        return binary("mul", _or_one(finite_maximum(size, axis, keepdims=keepdims)), root)

    return in_floats(compute, x)


@array_function
def var(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False) -> Array:
    """The variance over axes.

    ``sum((x - mean(x)) ** 2) / (n - ddof)``; the first element is subtracted before all else, so
    that the mean of large numbers is not rounded much, and equal elements give 0.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.
        ddof: Subtracted from the number n of elements: 0 as in NumPy, 1 for the estimate without
            bias from a sample.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Floats. Halves are computed in float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs, SR0312 where `ddof` leaves nothing to divide by.
        ShapeError: SR0323 for an axis, SR0327 for no elements, SR0370 for a `ddof` that is no whole
            number.

    Differentiable: ``x_bar = out_bar * 2 * (x - mean(x)) / (n - ddof)``.

    Source: Chan, Golub, LeVeque, *Algorithms for computing the sample variance*, The American
    Statistician 37 (1983).
    """
    return in_floats(lambda x: _variance(x, "var", axis, ddof, keepdims), x)


@array_function
def std(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False) -> Array:
    """The standard deviation over axes.

    ``sqrt(sum((x - mean(x)) ** 2) / (n - ddof))``, as of `var`.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.
        ddof: Subtracted from the number n of elements: 0 as in NumPy, 1 for a sample.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Floats. Halves are computed in float, and rounded once.

    Raises:
        LanguageError: SR0304 for structs, SR0312 where `ddof` leaves nothing to divide by.
        ShapeError: SR0323 for an axis, SR0327 for no elements, SR0370 for a `ddof` that is no whole
            number.

    Differentiable: ``x_bar = out_bar * (x - mean(x)) / ((n - ddof) * out)``, and 0 where all
    elements are equal.
    """
    return in_floats(lambda x: _root(_variance(x, "std", axis, ddof, keepdims)), x)


def _variance(x: TracedArray, name: str, axis: Axes, ddof: Any, keepdims: bool) -> TracedArray:
    count = count_over(x, axis, name)
    left = _after(count, ddof, name, x)
    near = binary("subtract", x, detach(_first(x, axis)))
    mean = binary("divide", sum_of(near, axis, keepdims=True), as_divisor(count, x))
    centred = binary("subtract", near, mean)
    total = sum_of(binary("mul", centred, centred), axis, keepdims)
    return binary("divide", total, as_divisor(left, x))


def _first(x: TracedArray, axis: Axes) -> TracedArray:
    """The first element along axes, which stay as axes of 1."""
    value = x.value
    for k in axes_of(axis, len(x.extents)):
        value = b.piece(value, k, 0, 1)
    return made(value)


def _after(count: Size, ddof: Any, name: str, x: TracedArray) -> Size:
    """``count - ddof``, which must be positive.

    Raises:
        LanguageError: SR0312 if it is not.
        ShapeError: SR0370 for a `ddof` that is no whole number.
    """
    left = sizes.subtract(count, whole_number(ddof, "ddof"))
    if not tracing().is_positive(left):
        setting = f"`ddof={ddof}` for an array of shape {known_shape(x.extents)}"
        raise error("SR0312", user_span(), name=name, found=setting,
                    help="give it fewer than there are elements in each sum")  # fmt: skip
    return left


def _root(x: TracedArray) -> TracedArray:
    """The square root, with a derivative of 0 at 0."""
    return primitive(ops.SELECT, _is_zero(x), 0.0, primitive(ops.SQRT, _or_one(x)))


def _or_one(x: TracedArray) -> TracedArray:
    """`x`, and 1 where it is 0."""
    return primitive(ops.SELECT, _is_zero(x), 1.0, x)


def _is_zero(x: TracedArray) -> TracedArray:
    return binary("equal", x, 0.0)
