"""`scan`: running totals along an axis by any associative operator; `diff`, the way back."""

from __future__ import annotations

import inspect
from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import TracedSize, size_of
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.layout import moved_axis
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.types import INT, is_bool
from shaderad.language.intrinsics import Intrinsic
from shaderad.trace.elements import binary, cast_to, start_of
from shaderad.trace.operators import Operator, reducer_of
from shaderad.trace.primitives import (
    axis_of,
    known_shape,
    made,
    only_axis,
    spread,
    traced,
)
from shaderad.trace.traced import tracing

__all__ = ["associative_scan", "cumprod", "cumsum", "diff", "scan"]


@array_function
def scan(
    op: Operator,
    x: Any,
    init: Any = None,
    *,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    """Running totals along an axis.

    ``result[i] = init op x[0] op ... op x[i]``, without ``x[i]`` where exclusive; in reverse
    ``init op x[n - 1] op ... op x[i]``.

    Args:
        op: An associative operator, as of `reduce`.
        x: Elements of any type that `op` takes.
        init: Comes first: one element, or one per row.
        axis: The axis along which totals run; an array with one axis needs none.
        exclusive: Leaves the element itself out; without `init` it starts with the neutral element.
        reverse: Runs from the end.

    Returns:
        Elements of the type and shape of `x`.

    Raises:
        LanguageError: SR0325 for an invalid operator, SR0834 for a Python function as JAX takes it.
        ShapeError: SR0323 for an axis, SR0326 for elements of another type, SR0327 for an exclusive
            scan by a function without `init`, SR0330 and SR0349 for `init`, SR0833 for several axes
            and no `axis`.

    Differentiable in `x` and `init`. By `add` the cotangents are scanned from the other end; by any
    other operator ``r[i] = out_bar[i] + A[i + 1]^T r[i + 1]``, with A[i] the partial derivative of
    a total by the one before it, which is a scan of affine maps. It is correct at zeros of
    `mul`; at a tie of `min` or `max`, the first takes the derivative.

    Source: Blelloch, *Prefix sums and their applications*, CMU-CS-90-190 (1990); Martin, Cundy,
    *Parallelizing linear recurrent neural nets over sequence length*, ICLR 2018, for the affine
    maps.
    """
    if inspect.isroutine(op) and init is not None:
        raise error("SR0834", user_span(), name="scan", found=f"by the function `{op.__name__}`")
    operand = traced(x, "x")
    position = only_axis(axis, operand, "scan")
    last = len(operand.extents) - 1
    rows = moved_axis(operand, position, last)
    start = None if init is None else start_of(init, rows.element, rows.extents[:-1])
    reducer = reducer_of(op, rows.element)
    value = b.reverse(rows.value) if reverse else rows.value
    if start is None:
        prefixes = b.scan(reducer, value)
        if exclusive:
            if isinstance(reducer, nodes.Function):
                raise error("SR0327", user_span(), what="exclusive scan",
                            shape=known_shape(operand.extents))  # fmt: skip
            prefixes = b.shift_right(prefixes, c.neutral(reducer, rows.element))
    else:
        prefixes = _from_start(reducer, value, spread(start, rows.extents[:-1]), exclusive)
    if reverse:
        prefixes = b.reverse(prefixes)
    return moved_axis(made(prefixes), last, position)


associative_scan = scan
"""The name that JAX and PyTorch have for `scan`."""


@array_function
def cumsum(x: Any, axis: int | None = None, *, reverse: bool = False) -> Array:
    """The running sum along an axis.

    ``result[i] = x[0] + ... + x[i]``; in reverse ``x[i] + ... + x[n - 1]``.

    Args:
        x: Numbers, or vectors or matrices of them by component; counts bools that are true.
        axis: The axis along which sums run; an array with one axis needs none.
        reverse: Runs from the end.

    Returns:
        Elements of the type (int for bools) and shape of `x`. Ints wrap.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs, SR0833 for several axes and no `axis`.

    Differentiable: the cotangent is the running sum of the result's, from the other end.

    Source: Blelloch, *Prefix sums and their applications*, CMU-CS-90-190 (1990).
    """
    return _running("cumsum", ops.ADD, x, axis, reverse)


@array_function
def cumprod(x: Any, axis: int | None = None, *, reverse: bool = False) -> Array:
    """The running product along an axis.

    ``result[i] = x[0] * ... * x[i]``; in reverse ``x[i] * ... * x[n - 1]``.

    Args:
        x: Numbers, or vectors or matrices of them by component; bools count as 0 and 1.
        axis: The axis along which products run; an array with one axis needs none.
        reverse: Runs from the end.

    Returns:
        Elements of the type (int for bools) and shape of `x`. Ints wrap.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for structs, SR0833 for several axes and no `axis`.

    Differentiable: ``x_bar[j] = sum over i >= j of out_bar[i] * (product of the others up to i)``,
    without a division, so it is correct where one or more elements are 0.

    Source: Blelloch, *Prefix sums and their applications*, CMU-CS-90-190 (1990).
    """
    return _running("cumprod", ops.MUL, x, axis, reverse)


def _running(name: str, op: ops.Op, x: Any, axis: int | None, reverse: bool) -> Array:
    operand = traced(x, "x")
    position = only_axis(axis, operand, name)
    if is_bool(operand.element):
        operand = cast_to(operand, INT)
    return scan(Intrinsic(op), operand, axis=position, reverse=reverse)


@array_function
def diff(x: Any, n: int = 1, axis: int = -1) -> Array:
    """The differences of neighbours along an axis.

    ``result[i] = x[i + 1] - x[i]``, `n` times.

    Args:
        x: Numbers, or vectors or matrices of them by component; for bools, tests if they differ.
        n: How often differences are taken, a number.
        axis: The axis along which neighbours stand.

    Returns:
        Elements of the type of `x`; the axis is shorter by `n`, and empty where it had fewer. Ints
        wrap.

    Raises:
        LanguageError: SR0304 for structs, SR0320 for an `n` that is not known while tracing.
        ShapeError: SR0323 for an axis, SR0370 and SR0371 for an invalid `n`.

    Differentiable: for ``n = 1``, ``x_bar[i] = out_bar[i - 1] - out_bar[i]``, without what is
    outside.
    """
    differences = traced(x, "x")
    position = axis_of(axis, len(differences.extents))
    times = size_of(n, "n")
    if not isinstance(times, int):
        TracedSize(times).refuse("`n` of `diff`")
    name = "not_equal" if is_bool(differences.element) else "subtract"
    while times > 0 and tracing().is_positive(differences.value.shape[position]):
        rest = sizes.subtract(differences.value.shape[position], 1)
        after, before = (
            made(b.piece(differences.value, position, start, rest)) for start in (1, 0)
        )
        differences = binary(name, after, before)
        times -= 1
    return differences


def _from_start(op: Any, rows: Value, start: Value, exclusive: bool) -> Value:
    """The scan of each row after a first element, without its last total or its first one."""
    axis = len(rows.shape) - 1
    first = b.reshape(start, (*start.shape, 1))
    totals = b.scan(op, b.concatenate((first, rows), axis))
    return b.piece(totals, axis, 0 if exclusive else 1, rows.shape[-1])
