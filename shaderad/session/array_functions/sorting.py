"""`argsort`, `sort`, and `histogram`, which sorts by bin and scans each bin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shaderad.diagnostics import error
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.types import BOOL, INT, Scalar, Struct, Type, is_bool
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.session.array_functions.elements import as_array, conform
from shaderad.session.array_functions.indexing import last_writer
from shaderad.session.array_functions.layout import moved_axis
from shaderad.session.array_functions.operators import reducer_of
from shaderad.session.array_functions.primitives import (
    axis_of,
    common_batch,
    known_shape,
    made,
    spread,
    traced,
)
from shaderad.session.lines import user_span
from shaderad.session.traced import TracedArray, tracing
from shaderad.session.traced_sizes import size_of


def argsort(keys: Any, axis: int = -1) -> TracedArray:
    """The stable order of ascending keys along an axis; NaN comes last."""
    operand, position = _keys(keys, axis)
    found = made(_order(operand.value), operand.batch)
    return moved_axis(found, len(operand.extents) - 1, position)


def sort(keys: Any, axis: int = -1) -> TracedArray:
    """The keys in ascending order along an axis; NaN comes last."""
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


# -- histograms -------------------------------------------------------------------------------


def histogram(op: Any, init: Any, size: Any, index: Any, values: Any) -> TracedArray:
    """``result[b] = init op values[j] op ..`` over all j with ``index[j] == b``, in their order.

    `init` is the operator's neutral element. An index out of range is ignored.
    """
    bins, count = as_array(index), size_of(size, "size")
    given = as_array(values)
    start = conform(init, given.element, "init")
    if common_batch([bins, given, start]):
        raise error("SR0343", user_span(), name="histogram", instead="")
    if bins.element != INT:
        raise error("SR0340", user_span(), found=bins.element)
    rank = len(bins.extents)
    agree = len(given.extents) >= rank and all(
        tracing().are_equal(p, q) for p, q in zip(bins.extents, given.extents, strict=False)
    )
    if not agree:
        raise error("SR0341", user_span(), found=known_shape(given.extents),
                    wanted=known_shape(bins.extents))  # fmt: skip
    total, rest = sizes.product(bins.extents), given.extents[rank:]
    rows = b.reshape(given.value, (total, *rest))
    at = b.reshape(bins.value, (total,))
    empty = spread(start, (), (count, *rest))
    reducer = reducer_of(op, given.element)
    if reducer == ops.ADD:
        return made(arrays.ScatterAdd(operands=(empty, rows, at)).result, ())
    return made(_by_segments(reducer, empty, rows, at), ())


def _by_segments(op: Reducer, empty: Value, rows: Value, at: Value) -> Value:
    """Sorted by bin, a bin is a stretch; its total stands where the stretch ends."""
    count = empty.shape[0]
    order = _order(_or_beyond(at, count))
    bins = arrays.Gather(operands=(at, order), is_reported=False).result
    sorted_rows = arrays.Gather(operands=(rows, order), is_reported=False).result
    starts = b.applied(ops.NE, bins, b.shift_right(bins, c.whole(-1)))
    rank = len(sorted_rows.shape)
    columns = b.transpose(sorted_rows, [*range(1, rank), 0])
    lifted, segment = _segmented(op, rows.element)
    flags = b.broadcast(starts, columns.shape, [rank - 1])
    found = b.field(b.scan(lifted, b.struct(segment, [flags, columns])), "value")
    totals = b.transpose(found, [rank - 1, *range(rank - 1)])
    ends = last_writer(bins, count)
    picked = arrays.Gather(operands=(totals, ends), is_reported=False).result
    is_filled = b.applied(ops.GE, ends, b.full((count,), c.whole(0)))
    return b.where(b.broadcast(is_filled, empty.shape, [0]), picked, empty)


def _or_beyond(at: Value, count: sizes.Size) -> Value:
    """The bins, with one behind the last in place of those that do not exist."""
    bound = b.broadcast(arrays.SizeOf(operands=(), size=count).result, at.shape, [])
    is_inside = b.applied(
        ops.BIT_AND,
        b.applied(ops.GE, at, b.full(at.shape, c.whole(0))),
        b.applied(ops.LT, at, bound),
    )
    return b.where(is_inside, at, bound)


@lru_cache(maxsize=64)
def _segmented(op: Reducer, element: Type) -> tuple[nodes.Function, Struct]:
    """The operator lifted to (starts, value): what stands before a start does not count.

    ``(f, a) op' (g, b) = (f or g, b if g else a op b)``, which is associative where op is.
    """
    t = Struct(f"{b.type_name(element)}_in_segment", (("starts", BOOL), ("value", element)))
    left, right = (nodes.Var(type=t, name=name) for name in ("a", "b"))
    starts = c.apply(ops.BIT_OR, c.field(left, "starts"), c.field(right, "starts"))
    total = b.combined(op, c.field(left, "value"), c.field(right, "value"))
    value = nodes.Conditional(
        type=element,
        condition=c.field(right, "starts"),
        if_true=c.field(right, "value"),
        if_false=total,
    )
    result = nodes.Return(value=c.construct(t, [starts, value]))
    parameters = tuple(nodes.Parameter(name=name, type=t) for name in ("a", "b"))
    made = nodes.Function(name=f"{t.name}_total", parameters=parameters, result=t,
                          body=(result,), local_types={})  # fmt: skip
    return made, t
