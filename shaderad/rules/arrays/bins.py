"""Reduction by bin: a stable sort by bin, then a segmented scan.

Rows keep their order within a bin, so the operator need not be commutative.
"""

from __future__ import annotations

from functools import lru_cache

from shaderad.diagnostics import Span
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.types import BOOL, Struct, Type, scalar_of
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b


def folded(op: Reducer, init: Value, rows: Value, at: Value, span: Span = nodes.NO_SPAN) -> Value:
    """``result[k] = init[k] op rows[j] op ..`` over all j with ``at[j] == k``, in row order.

    Args:
        op: Associative.
        init: The result of a bin without rows.
        rows: Elements, or rows with the shape of a row of `init`.
        at: The bin of each row; rows whose bin is out of range are ignored.
        span: The Python line.
    """
    count = init.shape[0]
    order = arrays.ArgSort(operands=(_sort_keys(at, count),), span=span).result
    bins = arrays.Gather(operands=(at, order), is_reported=False).result
    sorted_rows = arrays.Gather(operands=(rows, order), is_reported=False).result
    starts = b.applied(ops.NE, bins, b.shift_right(bins, c.whole(-1)))
    rank = len(sorted_rows.shape)
    columns = b.transpose(sorted_rows, [*range(1, rank), 0])
    lifted, segment = _segmented(op, rows.element)
    flags = b.broadcast(starts, columns.shape, [rank - 1])
    scanned = b.field(b.scan(lifted, b.struct(segment, [flags, columns])), "value")
    totals = b.transpose(scanned, [rank - 1, *range(rank - 1)])
    ends = arrays.LastWriter(operands=(bins,), count=count).result
    picked = arrays.Gather(operands=(totals, ends), is_reported=False).result
    is_filled = b.applied(ops.GE, ends, b.full((count,), c.whole(0)))
    return _after(op, init, b.broadcast(is_filled, init.shape, [0]), picked)


def _sort_keys(at: Value, count: sizes.Size) -> Value:
    """The bins, with `count` in place of those out of range."""
    bound = b.broadcast(arrays.SizeOf(operands=(), size=count).result, at.shape, [])
    is_inside = b.applied(
        ops.BIT_AND,
        b.applied(ops.GE, at, b.full(at.shape, c.whole(0))),
        b.applied(ops.LT, at, bound),
    )
    return b.where(is_inside, at, bound)


def _after(op: Reducer, init: Value, is_filled: Value, totals: Value) -> Value:
    """``init op total`` for each bin with rows, else `init`."""
    first, total = c.variable("init", init.element), c.variable("total", init.element)
    result = nodes.Conditional(
        type=init.element,
        condition=c.variable("is_filled", BOOL),
        if_true=_combined(op, first, total),
        if_false=first,
    )
    return b.elementwise(
        result, {"init": init, "total": totals, "is_filled": is_filled}, init.shape
    )


def _combined(op: Reducer, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    is_sum_of_parts = op == ops.ADD and scalar_of(left.type) is None
    return c.added(left, right) if is_sum_of_parts else b.combined(op, left, right)


@lru_cache(maxsize=64)
def _segmented(op: Reducer, element: Type) -> tuple[nodes.Function, Struct]:
    """`op` lifted to pairs (starts, value), so that a scan restarts at each start.

    ``(f, a) op' (g, b) = (f or g, b if g else a op b)``, which is associative if op is.
    """
    t = Struct(f"{b.type_name(element)}_in_segment", (("starts", BOOL), ("value", element)))
    left, right = (nodes.Var(type=t, name=name) for name in ("a", "b"))
    starts = c.apply(ops.BIT_OR, c.field(left, "starts"), c.field(right, "starts"))
    total = _combined(op, c.field(left, "value"), c.field(right, "value"))
    value = nodes.Conditional(
        type=element,
        condition=c.field(right, "starts"),
        if_true=c.field(right, "value"),
        if_false=total,
    )
    result = nodes.Return(value=c.construct(t, [starts, value]))
    parameters = tuple(nodes.Parameter(name=name, type=t) for name in ("a", "b"))
    lifted = nodes.Function(name=f"{t.name}_total", parameters=parameters, result=t,
                            body=(result,), local_types={})  # fmt: skip
    return lifted, t
