"""`reduce`, `sum`, `prod`, `min`, `max`, `mean`, `any`, `all`, `argmin`, `argmax` over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import FLOAT, INT, Scalar, is_bool, scalar_of
from shaderad.language.intrinsics import Intrinsic
from shaderad.trace.elements import binary, cast_to, detach, in_floats, primitive, start_of
from shaderad.trace.operators import Operator, reducer_of
from shaderad.trace.primitives import (
    axis_of,
    known_shape,
    made,
    size_array,
    spread,
    traced,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["argmax", "argmin", "logsumexp", "mean", "prod", "reduce", "sum"]

Axes = int | Sequence[int] | None


@array_function
def reduce(op: Operator, x: Any, init: Any = None, *, axis: Axes = None) -> Array:
    """The elements along axes, combined by an operator.

    ``init op x[0] op x[1] op ...`` in row-major order of the axes.

    Args:
        op: `sad.add`, `mul`, `min`, `max` of numbers, `any`, `all` of bools, `matmul` of square
            matrices, or a ``@sad.function`` of two elements that gives one. It must be associative:
            the order is kept, the brackets are not.
        x: Elements of any type that `op` takes; vectors and matrices by component.
        init: Comes first: one element, or one for each element of the result.
        axis: One axis, several, or `None` for all.

    Returns:
        Elements of the type of `x`, without `axis`. For no elements, `init`, or else the operator's
        neutral element: 0, 1, the largest value for `min`, the smallest for `max`.

    Raises:
        LanguageError: SR0325 for an invalid operator.
        ShapeError: SR0323 for an axis, SR0326 for elements of another type, SR0327 for no elements
            and a function without `init`, SR0330 and SR0349 for `init`.

    Differentiable in `x` and `init`. The derivative of `mul` is correct at zeros; at a tie of `min`
    or `max`, the first takes it. For a function, ``x_bar[i]`` is the pullback of
    ``(l op x[i]) op r``, where l and r, the totals left and right of x[i], come from two scans.

    Source: Schenck, Rønning, Henriksen, Oancea, *AD for an array language with nested
    parallelism*, SC 2022.
    """
    operand = traced(x, "x")
    return _reduced(reducer_of(op, operand.element), operand, init, axis)


@array_function
def sum(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:  # noqa: A001
    """The sum over axes.

    Args:
        x: Numbers, vectors or matrices by component, structs by field; counts bools that are true.
        axis: One axis, several, or `None` for all.
        keepdims: Keeps each summed axis, with an extent of 1.

    Returns:
        Elements of the type of `x` (int for bools); 0 for no elements. Ints wrap. Floats are added
        in blocks, whose sums are added in trees or in order: rounding is far below that of a serial
        loop. Halves are added in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for other elements.

    Differentiable: ``x_bar[i] = out_bar``.

    Source: Higham, *The accuracy of floating point summation*, SIAM J. Sci. Comput. 14 (1993).
    """
    return sum_of(x, axis, keepdims)


@partial(array_function, zero_wins=False)
def prod(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The product over axes.

    Args:
        x: Numbers, or vectors or matrices of them by component.
        axis: One axis, several, or `None` for all.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Elements of the type of `x`; 1 for no elements. Ints wrap.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for bools and structs.

    Differentiable: ``x_bar[i] = out_bar * (product of all others)``, from the products left and
    right of i, without a division, so it is correct where one or more elements are 0.
    """
    return reduced_by(ops.MUL, x, axis, keepdims)


@array_function
def mean(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The mean over axes.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Floats. Halves are computed in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0327 for no elements.
        LanguageError: SR0304 for structs.

    Differentiable: ``x_bar[i] = out_bar / n``.
    """

    def compute(x: TracedArray) -> TracedArray:
        count = count_over(x, axis, "mean")
        return binary("divide", sum_of(x, axis, keepdims), as_divisor(count, x))

    return in_floats(compute, traced(x, "x"))


@array_function
def logsumexp(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exponentials over axes, which neither overflows nor underflows.

    ``log(sum(exp(x)))``, computed as ``m + log(sum(exp(x - m)))`` with the largest element m.

    Args:
        x: Numbers, or vectors or matrices of them by component; ints and bools give floats.
        axis: One axis, several, or `None` for all.
        keepdims: Keeps each axis, with an extent of 1.

    Returns:
        Floats; -inf for no elements or only -inf, +inf where an element is, NaN where one is.
        Halves are computed in float, and rounded once.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs.

    Differentiable: ``x_bar[i] = out_bar * exp(x[i] - out)``, the softmax; 0 where the result is
    infinite.

    Source: Blanchard, Higham, Higham, *Accurately computing the log-sum-exp and softmax functions*,
    IMA Journal of Numerical Analysis 41 (2021).
    """

    def compute(x: TracedArray) -> TracedArray:
        total = sum_of(primitive(ops.EXP, below_maximum(x, axis)), axis, keepdims)
        is_zero = binary("equal", total, 0.0)
        logarithm = primitive(ops.SELECT, is_zero, -math.inf, primitive(ops.LOG, total))
        return binary("add", logarithm, finite_maximum(x, axis, keepdims=keepdims))

    return in_floats(compute, traced(x, "x"))


def below_maximum(x: TracedArray, axis: Axes) -> TracedArray:
    """`x` minus its largest element over axes, which derivatives treat as constant."""
    return binary("subtract", x, finite_maximum(x, axis, keepdims=True))


def finite_maximum(x: TracedArray, axis: Axes, *, keepdims: bool) -> TracedArray:
    """The maximum over axes, or 0 if it is infinite or NaN; derivatives treat it as constant."""
    maximum = reduced_by(ops.MAX, x, axis, keepdims)
    is_finite = primitive(ops.ISFINITE, maximum)
    return detach(primitive(ops.SELECT, is_finite, maximum, 0.0))


@array_function
def argmin(x: Any, axis: int | None = None) -> Array:
    """The position of the smallest element, the first of several.

    Args:
        x: Numbers; NaN never wins, and if all are NaN the position is 0.
        axis: One axis, or `None` for the row-major position in the whole array.

    Returns:
        Ints, without `axis`. They carry no derivative; `sad.min` has one.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for vectors, bools and structs, SR0327 for no
            elements.
    """
    return _arg_extreme("min", x, axis)


@array_function
def argmax(x: Any, axis: int | None = None) -> Array:
    """The position of the largest element, the first of several.

    Args:
        x: Numbers; NaN never wins, and if all are NaN the position is 0.
        axis: One axis, or `None` for the row-major position in the whole array.

    Returns:
        Ints, without `axis`. They carry no derivative; `sad.max` has one.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for vectors, bools and structs, SR0327 for no
            elements.
    """
    return _arg_extreme("max", x, axis)


def _arg_extreme(kind: Literal["min", "max"], x: Any, axis: int | None) -> TracedArray:
    """The position of the first smallest or largest element."""
    operand = traced(x, "x")
    if not isinstance(operand.element, Scalar) or is_bool(operand.element):
        raise error("SR0326", user_span(), name=f"arg{kind}", takes="numbers",
                    element=operand.element)  # fmt: skip
    rows, _ = _as_rows(operand, axes_of(axis, len(operand.extents)))
    if not tracing().is_positive(rows.shape[-1]):
        raise error("SR0327", user_span(), what=f"arg{kind}", shape=known_shape(operand.extents))
    node = arrays.ArgExtreme(operands=(rows,), kind=kind, span=user_span())
    return made(node.result)


def count_over(x: TracedArray, axis: Axes, name: str) -> Size:
    """The number of elements that each result of a reduction combines.

    Raises:
        ShapeError: SR0323 for an axis, SR0327 if there are none.
    """
    count = sizes.product(tuple(x.extents[k] for k in axes_of(axis, len(x.extents))))
    if not tracing().is_positive(count):
        raise error("SR0327", user_span(), what=name, shape=known_shape(x.extents))
    return count


def as_divisor(count: Size, x: TracedArray) -> int | TracedArray:
    """A size as a divisor of `x`: an int, or an array in its scalar type."""
    if isinstance(count, int):
        return count
    return cast_to(size_array(count), scalar_of(x.element) or FLOAT)


# -- over axes ----------------------------------------------------------------------------------


def _reduced(op: Reducer, x: TracedArray, init: Any, axis: Axes) -> TracedArray:
    axes = axes_of(axis, len(x.extents))
    rows, shape = _as_rows(x, axes)
    needs_one = init is None and isinstance(op, nodes.Function)
    if needs_one and not tracing().is_positive(rows.shape[-1]):
        raise error("SR0327", user_span(), what="reduction", shape=known_shape(x.extents))
    if init is None:
        return made(b.reduce(op, rows, None))
    first = spread(start_of(init, x.element, shape), shape)
    return made(b.reduce(op, rows, first))


def axes_of(axis: Axes, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    items: Sequence[int] = axis if isinstance(axis, tuple | list) else (axis,)  # pyright: ignore[reportAssignmentType]
    axes = sorted({axis_of(item, rank) for item in items})
    if len(axes) != len(items):
        raise error("SR0323", user_span(), axis=axis, rank=rank)
    return axes


def _as_rows(x: TracedArray, axes: Sequence[int]) -> tuple[Value, Shape]:
    """`x` with `axes` merged into one last axis, and its other extents."""
    kept = [k for k in range(len(x.extents)) if k not in axes]
    shape = tuple(x.extents[k] for k in kept)
    extent = sizes.product(tuple(x.extents[k] for k in axes))
    rows = b.reshape(b.transpose(x.value, [*kept, *axes]), (*shape, extent))
    return rows, shape


def _with_kept(x: TracedArray, reduced: TracedArray, axis: Axes, keepdims: bool) -> TracedArray:
    """`reduced`, with each reduced axis kept as an axis of 1 if `keepdims`."""
    if not keepdims:
        return reduced
    axes = axes_of(axis, len(x.extents))
    shape = tuple(1 if k in axes else extent for k, extent in enumerate(x.extents))
    return made(b.reshape(reduced.value, shape))


def sum_of(x: Any, axis: Axes = None, keepdims: bool = False) -> TracedArray:
    """The sum over axes; for bools the number that are true, for structs by field."""
    operand = traced(x, "x")
    if is_bool(operand.element):
        operand = cast_to(operand, INT)
    reduced = _reduced(ops.ADD, operand, None, axis)
    return _with_kept(operand, reduced, axis, keepdims)


def reduced_by(op: ops.Op, x: Any, axis: Axes = None, keepdims: bool = False) -> TracedArray:
    """The reduction by a primitive of kernels."""
    operand = traced(x, "x")
    reduced = _reduced(reducer_of(Intrinsic(op), operand.element), operand, None, axis)
    return _with_kept(operand, reduced, axis, keepdims)
