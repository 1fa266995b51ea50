"""Sums by index array of types that no device adds atomically -> nodes that every device runs.

Half is summed in float and rounded once. Double is sorted by place and summed there in the order
of the values. Of structs, such as cotangents of elements, only the floats are summed.
"""

from __future__ import annotations

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    INTEGER_KINDS,
    Kind,
    LocalArray,
    Struct,
    Type,
    is_differentiable,
    scalars,
    with_scalar,
)
from shaderad.plan.storage import is_zero
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.scan_operators import fold_by_bin


def is_atomic(t: Type) -> bool:
    """Whether devices add to elements of this type in place."""
    kinds = {s.kind for s in scalars(t)}
    return kinds <= {Kind.FLOAT} or kinds <= INTEGER_KINDS


def summed(node: arrays.ScatterAdd) -> Value:
    """The result of `node`, whose elements are not atomic."""
    t = node.result.element
    if any(s.kind is Kind.DOUBLE for s in scalars(t)):
        return _in_order(node)
    base, values, *index = node.operands
    wide = _floats_of(t)
    start = b.zeros(arrays.ArrayType(wide, base.shape)) if is_zero(base) else _as(wide, base)
    total = arrays.ScatterAdd(operands=(start, _as(wide, values), *index), span=node.span)
    return _as(t, total.result)


def _floats_of(t: Type) -> Type:
    """The floats of `t` in its form, with float in place of half."""
    if isinstance(t, Struct):
        kept = tuple((name, _floats_of(part)) for name, part in t.fields if is_differentiable(part))
        return Struct(f"{b.type_name(t)}_floats", kept)
    if isinstance(t, LocalArray):
        return LocalArray(_floats_of(t.element), t.count)
    return with_scalar(t, FLOAT)


def _as(t: Type, x: Value) -> Value:
    """`x` with its floats converted to those of `t`."""
    floats = c.float_scalars(c.variable("x", x.element))
    return b.elementwise(c.from_float_scalars(t, floats), {"x": x}, x.shape)


def _in_order(node: arrays.ScatterAdd) -> Value:
    base, values, *index = node.operands
    count, rest = len(index), base.shape[len(index) :]
    extents = base.shape[:count]
    rows = b.reshape(values, (sizes.product(index[0].shape), *rest))
    init = b.reshape(base, (sizes.product(extents), *rest))
    at = b.reshape(_places(index, extents), rows.shape[:1])
    return b.reshape(fold_by_bin(ops.ADD, init, rows, at, node.span), base.shape)


def _places(index: list[Value], extents: Shape) -> Value:
    """The row-major number of each place, and -1 for those out of range."""
    place, is_inside = c.whole(0), nodes.Const(type=BOOL, value=True)
    known: dict[str, Value] = {}
    for k, (one, extent) in enumerate(zip(index, extents, strict=True)):
        i, n = c.variable(f"i{k}", INT), c.variable(f"n{k}", INT)
        size = arrays.SizeOf(operands=(), size=extent).result
        known |= {f"i{k}": one, f"n{k}": b.broadcast(size, one.shape, [])}
        place = c.apply(ops.ADD, c.apply(ops.MUL, place, n), i)
        for test in (c.apply(ops.GE, i, c.whole(0)), c.apply(ops.LT, i, n)):
            is_inside = c.apply(ops.BIT_AND, is_inside, test)
    return b.elementwise(c.select(is_inside, place, c.whole(-1)), known, index[0].shape)
