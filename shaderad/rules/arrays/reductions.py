"""Derivatives of reductions and scans along the last axis.

Forward, every operator but addition is lifted to pairs of a value and its tangent,
    (a, a_dot) op' (b, b_dot) = (a op b, push(op)),
which is associative if op is; products are compensated. No rule divides by a value, so products
with zeros have exact derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.dags import substitute
from shaderad.ir.nodes import Expr, Function
from shaderad.ir.types import BOOL, Matrix, Struct, Type, Vector
from shaderad.rules import expressions
from shaderad.rules.arrays import layout, scan_operators
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.scan_operators import AffineMaps, operator

# -- forward ----------------------------------------------------------------------------------
# y = x[0] op x[1] op ...        ADD: y_dot = x_dot[0] + x_dot[1] + ...
# else (y, y_dot) = (x[0], x_dot[0]) op' (x[1], x_dot[1]) op' ...


def push_reduce(node: arrays.Reduce, dots: Derivatives) -> Derivatives:
    if node.op == ops.ADD:
        dot, init_dot = (*dots, None)[:2]
        return (init_dot if dot is None else b.reduce(ops.ADD, dot, init_dot),)
    t = _pair_type(node.op, node.operands[0].element)
    pairs = [_pairs(t, x, dot) for x, dot in zip(node.operands, dots, strict=True)]
    if len(pairs) == 1 and isinstance(node.op, ops.Op):
        neutral = c.neutral(node.op, node.result.element)
        neutral_pair = c.construct(t, [neutral, *(c.zero(part) for _, part in t.fields[1:])])
        pairs.append(b.full(node.result.shape, neutral_pair))
    return (b.field(b.reduce(_lifted(node.op, t), *pairs), "tangent"),)


def push_scan(node: arrays.Scan, dots: Derivatives) -> Derivatives:
    (x,), (dot,) = node.operands, dots
    if dot is None or node.op == ops.ADD:
        return (None if dot is None else b.scan(ops.ADD, dot),)
    t = _pair_type(node.op, x.element)
    return (b.field(b.scan(_lifted(node.op, t), _pairs(t, x, dot)), "tangent"),)


def _pair_type(op: Reducer, t: Type) -> Struct:
    low = (("low", t),) if scan_operators.needs_compensation(op, t) else ()
    return Struct(f"{b.type_name(t)}_with_tangent", (("value", t), *low, ("tangent", t)))


def _pairs(t: Struct, x: Value, dot: Value | None) -> Value:
    return b.struct(t, (x, *(b.zeros(x.type) for _ in t.fields[2:]), b.or_zeros(dot, x)))


def _lifted(op: Reducer, t: Struct) -> Function:
    """`op` on pairs of type `t`: values with their tangents."""
    left, right = c.variable("left", t), c.variable("right", t)
    element = t.type_by_field["value"]
    value = b.combined(op, c.variable("a", element), c.variable("b", element))
    names = {"a": c.variable("a_dot", element), "b": c.variable("b_dot", element)}
    tangent = expressions.push(value, cast("dict[str, Expr | None]", names))
    primals = {"a": c.field(left, "value"), "b": c.field(right, "value")}
    dots = {"a_dot": c.field(left, "tangent"), "b_dot": c.field(right, "tangent")}
    parts = [substitute(value, primals)]
    if "low" in t.type_by_field:
        a_low, b_low = c.field(left, "low"), c.field(right, "low")
        parts.append(scan_operators.product_error(primals["a"], a_low, primals["b"], b_low))
        rounded = scan_operators.rounded
        primals = {"a": rounded(primals["a"], a_low), "b": rounded(primals["b"], b_low)}
    parts.append(substitute(tangent or c.zero(element), primals | dots))
    return operator(f"{op.name}_with_tangents", left, right, c.construct(t, parts))


# -- reductions, backward ---------------------------------------------------------------------


def pull_reduce(node: arrays.Reduce, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    x, *init = node.operands
    if not init:
        return (_pull_row(node.op, x, bar),)
    if node.op == ops.ADD:
        return (_pull_row(node.op, x, bar), bar)
    if isinstance(node.op, Function):
        return _pull_with_first(node.op, x, init[0], bar)
    # y = init op r, r = x[0] op x[1] op ...
    r = b.reduce(node.op, x)
    combined = b.combined(node.op, *(c.variable(n, x.element) for n in ("init", "r")))
    bars_of = expressions.pull(combined, c.variable("bar", bar.element), ("init", "r"))
    value_by_name = {"init": init[0], "r": r, "bar": bar}
    init_bar, r_bar = (
        b.elementwise(bars_of[n], value_by_name, bar.shape) if n in bars_of else None
        for n in ("init", "r")
    )
    return (None if r_bar is None else _pull_row(node.op, x, r_bar), init_bar)


def without_unused(node: arrays.Reduce, pulled: Derivatives, bars: Derivatives) -> Derivatives:
    """`pulled`, the cotangents of operands, with 0 for NaN where the result's cotangent is 0."""
    x_bar, (bar,) = pulled[0], bars
    if x_bar is None or bar is None or node.op == ops.ADD:
        return pulled
    repeated = b.along_last(bar, x_bar.shape[-1])
    used = b.composed(lambda parts: layout.without_unused(*parts), (x_bar, repeated))
    return (used, *pulled[1:])


def _pull_with_first(op: Reducer, x: Value, init: Value, bar: Value) -> Derivatives:
    """Treats `init` as the first element of the row."""
    axis = len(x.shape) - 1
    joined = b.concatenate((b.reshape(init, (*init.shape, 1)), x), axis)
    joined_bar = _pull_row(op, joined, bar)
    init_bar = b.reshape(b.piece(joined_bar, axis, 0, 1), init.shape)
    return (b.piece(joined_bar, axis, 1, x.shape[-1]), init_bar)


def _pull_row(op: Reducer, x: Value, bar: Value) -> Value:
    repeated = b.along_last(bar, x.shape[-1])
    if op == ops.ADD:
        return repeated
    if op in (ops.MIN, ops.MAX):
        return _pull_extreme("min" if op == ops.MIN else "max", x, repeated)
    return _pull_by_neighbours(op, x, repeated)


# y = min(x[0], x[1], ...)       x_bar[i] = y_bar where i is the first that attains y, else 0
# Each component of a vector has its own i.


def _pull_extreme(kind: Literal["min", "max"], x: Value, bar: Value) -> Value:
    t = x.element
    if isinstance(t, Vector | Matrix):
        count = len(c.components(c.variable("x", t)))
        parts = [_pull_extreme(kind, _component(x, k), _component(bar, k)) for k in range(count)]
        return b.composed(lambda scalars: c.of_components(t, scalars), parts)
    index = arrays.ArgExtreme(operands=(x,), kind=kind).result
    axis = len(x.shape) - 1
    is_extreme = b.applied(ops.EQ, b.iota(x.shape, axis), b.along_last(index, x.shape[-1]))
    return b.where(is_extreme, bar, b.zeros(bar.type))


def _component(x: Value, position: int) -> Value:
    return b.composed(lambda x: c.components(x[0])[position], [x])


# y = l[i] op x[i] op r[i]      l[i] = x[0] op ... op x[i-1],  r[i] = x[i+1] op ... op x[n-1]
# x_bar[i] = pull((l op x) op r by x)(y_bar)
# At the ends of a row, an op takes its neutral element for the missing neighbour, and a function is
# not applied.


def _pull_by_neighbours(op: Reducer, x: Value, bar: Value) -> Value:
    t = x.element
    fill = c.neutral(op, t) if isinstance(op, ops.Op) else c.zero(t)
    value_by_name = {
        "left": b.shift_right(b.scan(op, x), fill),
        "x": x,
        "right": b.shift_left(b.reverse_scan(_flipped(op), x), fill),
        "bar": bar,
    }
    left, here, right = (c.variable(n, t) for n in ("left", "x", "right"))
    if isinstance(op, ops.Op):
        y = b.combined(op, b.combined(op, left, here), right)
    else:
        axis = len(x.shape) - 1
        value_by_name["is_first"] = at_end(x, axis, is_last=False)
        value_by_name["is_last"] = at_end(x, axis, is_last=True)
        prefix = _unless("is_first", b.combined(op, left, here), here)
        y = _unless("is_last", b.combined(op, prefix, right), prefix)
    x_bar = expressions.pull(y, c.variable("bar", t), ("x",)).get("x", c.zero(t))
    return b.elementwise(x_bar, value_by_name, x.shape)


def _unless(name: str, value: Expr, otherwise: Expr) -> Expr:
    return c.conditional(c.variable(name, BOOL), otherwise, value)


def at_end(x: Value, axis: int, *, is_last: bool) -> Value:
    """Mask of the first, or the last, position along `axis`."""
    position = b.iota(x.shape, axis)
    if not is_last:
        return b.applied(ops.EQ, position, b.full(x.shape, c.whole(0)))
    count = arrays.SizeOf(operands=(), size=x.shape[axis]).result
    return b.applied(ops.EQ, b.plus(position, 1), b.broadcast(count, x.shape, ()))


def _flipped(op: Reducer) -> Reducer:
    """The operator ``(a, b) -> b op a``, for scans from the end."""
    if isinstance(op, ops.Op):
        return op
    first, second = c.variable("a", op.result), c.variable("b", op.result)
    return operator(f"{op.name}_flipped", first, second, b.combined(op, second, first))


# -- scans, backward --------------------------------------------------------------------------
# ADD: x_bar[i] = y_bar[i] + y_bar[i+1] + ... + y_bar[n-1]
#
# else y[i] = y[i-1] op x[i]. With A[i] = d y[i] / d y[i-1] and the total cotangent r[i] of y[i],
#     r[n-1] = y_bar[n-1]      r[i] = y_bar[i] + A[i+1]^T r[i+1]
#     x_bar[i] = (d y[i] / d x[i])^T r[i]
# The steps are affine maps of r, whose composition is associative: a scan from the end gives r.


def pull_scan(node: arrays.Scan, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    (x,), (bar,) = node.operands, bars
    assert bar is not None
    if node.op == ops.ADD:
        return (b.reverse_scan(ops.ADD, bar),)
    t, axis = x.element, len(x.shape) - 1
    step = b.combined(node.op, c.variable("before", t), c.variable("x", t))
    is_product = node.op == ops.MUL
    # Only products have a neutral element for the value before the first: a function has none, and
    # min and max have none if all elements are infinite.
    fill = c.neutral(ops.MUL, t) if is_product else c.zero(t)
    value_by_name = {"before": b.shift_right(node.result, fill), "x": x}
    maps = AffineMaps.of(step, "before", t, is_by_component=isinstance(node.op, ops.Op))
    value_by_name["r"] = maps.flow(value_by_name, bar)
    x_bar = expressions.pull(step, c.variable("r", t), ("x",)).get("x", c.zero(t))
    if not is_product:
        value_by_name["is_first"] = at_end(x, axis, is_last=False)
        x_bar = _unless("is_first", x_bar, c.variable("r", t))
    return (b.elementwise(x_bar, value_by_name, x.shape),)
