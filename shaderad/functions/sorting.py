"""`argsort`, `sort`, and `segment_reduce`."""

from __future__ import annotations

from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import size_of
from shaderad.calls.array_function import array_function, warn_deprecated
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.functions.layout import moved_axis
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Value
from shaderad.ir.types import INT, Scalar, is_bool
from shaderad.rules.arrays.scan_operators import fold_by_bin
from shaderad.trace.elements import as_array, conform, start_of
from shaderad.trace.operators import Operator, reducer_of
from shaderad.trace.primitives import (
    known_shape,
    made,
    only_axis,
    spread,
    traced,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["argsort", "histogram", "segment_reduce", "sort"]


@array_function
def argsort(keys: Any, axis: int | None = None) -> Array:
    """The stable order of ascending keys: ``x[argsort(x)]`` is sorted.

    Args:
        keys: Numbers; NaN comes last.
        axis: The axis that is sorted; an array with one axis needs none.

    Returns:
        Positions along `axis`, ints of the shape of `keys`; they carry no derivative.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for vectors, bools and structs, SR0833 for
            several axes and no `axis`.
    """
    operand, position = _keys("argsort", keys, axis)
    order = made(_order(operand.value))
    return moved_axis(order, len(operand.extents) - 1, position)


@array_function
def sort(keys: Any, axis: int | None = None) -> Array:
    """The keys in ascending order.

    Args:
        keys: Numbers; NaN comes last.
        axis: The axis that is sorted; an array with one axis needs none.

    Raises:
        ShapeError: SR0323 for an axis, SR0326 for vectors, bools and structs, SR0833 for
            several axes and no `axis`.

    Differentiable: a cotangent goes back to where its key came from; equal keys keep their order.

    Sources: Satish, Harris, Garland, *Designing Efficient Sorting Algorithms for Manycore GPUs*,
    IPDPS 2009; Green, McColl, Bader, *GPU Merge Path*, ICS 2012.
    """
    operand, position = _keys("sort", keys, axis)
    ordered = made(_taken(operand.value, _order(operand.value)))
    return moved_axis(ordered, len(operand.extents) - 1, position)


def _keys(name: str, keys: Any, axis: int | None) -> tuple[TracedArray, int]:
    operand = traced(keys, "keys")
    if not isinstance(operand.element, Scalar) or is_bool(operand.element):
        raise error("SR0326", user_span(), name=name, takes="numbers", element=operand.element)
    position = only_axis(axis, operand, name)
    return moved_axis(operand, position, len(operand.extents) - 1), position


def _order(keys: Value) -> Value:
    return arrays.ArgSort(operands=(keys,), span=user_span()).result


def _taken(x: Value, order: Value) -> Value:
    """``x[..., order[..., i]]``."""
    leading = [b.iota(order.shape, k) for k in range(len(order.shape) - 1)]
    return arrays.Gather(operands=(x, *leading, order), is_reported=False).result


# -- segments ---------------------------------------------------------------------------------


@array_function
def segment_reduce(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """The values of each segment, combined by an operator; `index` holds the segment of each value.

    JAX's ``segment_sum`` works the same way; PyTorch's ``segment_reduce`` takes segment lengths.

    ``result[s] = init op values[j] op ...`` over all j with ``index[j] == s``, in their order.

    Args:
        op: An associative operator, as of `reduce`.
        init: Comes once, before the first value of each segment; one element, or one per segment.
        size: How many segments; an index out of their range is ignored.
        index: The segment of each value, ints in any order.
        values: Elements, or rows; its first axes are those of `index`.

    Returns:
        ``size`` elements, or rows; an empty segment holds `init`.

    Raises:
        LanguageError: SR0325 for an invalid operator.
        ShapeError: SR0326 for elements of another type, SR0330 and SR0349 for `init`, SR0340 for an
            index that holds no ints, SR0341 where index and values do not fit, SR0370 and SR0371
            for the size.

    Differentiable in `init` and `values`, as `reduce` is.
    """
    numbers, count = as_array(index), size_of(size, "size")
    elements = as_array(values)
    start = conform(init, elements.element, "init")
    if numbers.element != INT:
        raise error("SR0340", user_span(), found=numbers.element)
    rank = len(numbers.extents)
    agree = len(elements.extents) >= rank and all(
        tracing().are_equal(p, q) for p, q in zip(numbers.extents, elements.extents, strict=False)
    )
    if not agree:
        raise error("SR0341", user_span(), found=known_shape(elements.extents),
                    wanted=known_shape(numbers.extents))  # fmt: skip
    total, rest = sizes.product(numbers.extents), elements.extents[rank:]
    rows = b.reshape(elements.value, (total, *rest))
    row_segments = b.reshape(numbers.value, (total,))
    first = spread(start_of(start, elements.element, (count, *rest)), (count, *rest))
    reducer = reducer_of(op, elements.element)
    if reducer == ops.ADD:
        node = arrays.ScatterAdd(operands=(first, rows, row_segments), span=user_span())
        return made(node.result)
    return made(fold_by_bin(reducer, first, rows, row_segments, user_span()))


@api_boundary
def histogram(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """Deprecated: write ``sad.segment_reduce(op, init, size, index, values)``."""
    warn_deprecated("histogram(...)", "segment_reduce(...)")
    return segment_reduce(op, init, size, index, values)
