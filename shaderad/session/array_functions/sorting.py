"""`argsort`, `sort`, and `segment_reduce`."""

from __future__ import annotations

from typing import Any

from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import arrays, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.types import INT, Scalar, is_bool
from shaderad.rules.arrays import bins
from shaderad.rules.arrays import building as b
from shaderad.session.array_functions.array_function import array_function, warn_deprecated
from shaderad.session.array_functions.elements import as_array, conform, start_of
from shaderad.session.array_functions.layout import moved_axis
from shaderad.session.array_functions.operators import Operator, reducer_of
from shaderad.session.array_functions.primitives import (
    axis_of,
    common_batch,
    known_shape,
    made,
    spread,
    traced,
)
from shaderad.session.arrays import Array
from shaderad.session.lines import user_span
from shaderad.session.traced import TracedArray, tracing
from shaderad.session.traced_sizes import size_of

__all__ = ["argsort", "histogram", "segment_reduce", "sort"]


@array_function
def argsort(keys: Any, *, axis: int = -1) -> Array:
    """The stable order of ascending keys, NaN last: ``x[argsort(x)]`` is sorted."""
    operand, position = _keys(keys, axis)
    found = made(_order(operand.value), operand.batch)
    return moved_axis(found, len(operand.extents) - 1, position)


@array_function
def sort(keys: Any, *, axis: int = -1) -> Array:
    """The keys in ascending order, NaN last."""
    operand, position = _keys(keys, axis)
    found = made(_taken(operand.value, _order(operand.value)), operand.batch)
    return moved_axis(found, len(operand.extents) - 1, position)


def _keys(keys: Any, axis: int) -> tuple[TracedArray, int]:
    operand = traced(keys, "keys")
    if not isinstance(operand.element, Scalar) or is_bool(operand.element):
        raise error("SR0326", user_span(), name="sort", takes="numbers", element=operand.element)
    position = axis_of(axis, len(operand.extents))
    return moved_axis(operand, position, len(operand.extents) - 1), position


def _order(keys: Value) -> Value:
    return arrays.ArgSort(operands=(keys,), span=user_span()).result


def _taken(x: Value, order: Value) -> Value:
    """``x[.., order[.., i]]``."""
    leading = [b.iota(order.shape, k) for k in range(len(order.shape) - 1)]
    return arrays.Gather(operands=(x, *leading, order), is_reported=False).result


# -- segments ---------------------------------------------------------------------------------


@array_function
def segment_reduce(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """``result[s] = init op values[j] op ..`` over all j with ``index[j] == s``, in their order.

    Args:
        op: Associative.
        init: Comes before the first value of each segment; one element, or one a segment.
        size: How many segments; an index out of their range is ignored.
        index: The segment of each value, in any order.
        values: Elements, or rows.
    """
    numbers, count = as_array(index), size_of(size, "size")
    given = as_array(values)
    start = conform(init, given.element, "init")
    if common_batch([numbers, given, start]):
        raise error("SR0343", user_span(), name="segment_reduce", instead="")
    if numbers.element != INT:
        raise error("SR0340", user_span(), found=numbers.element)
    rank = len(numbers.extents)
    agree = len(given.extents) >= rank and all(
        tracing().are_equal(p, q) for p, q in zip(numbers.extents, given.extents, strict=False)
    )
    if not agree:
        raise error("SR0341", user_span(), found=known_shape(given.extents),
                    wanted=known_shape(numbers.extents))  # fmt: skip
    total, rest = sizes.product(numbers.extents), given.extents[rank:]
    rows = b.reshape(given.value, (total, *rest))
    at = b.reshape(numbers.value, (total,))
    first = spread(start_of(start, given.element, (count, *rest)), (), (count, *rest))
    reducer = reducer_of(op, given.element)
    if reducer == ops.ADD:
        node = arrays.ScatterAdd(operands=(first, rows, at), span=user_span())
        return made(node.result, ())
    return made(bins.folded(reducer, first, rows, at, user_span()), ())


@api_boundary
def histogram(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """Deprecated: write ``sad.segment_reduce(op, init, size, index, values)``."""
    warn_deprecated("histogram(..)", "segment_reduce(..)")
    return segment_reduce(op, init, size, index, values)
