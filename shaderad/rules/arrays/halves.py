"""Sums and products of halves -> those of floats, rounded once.

Halves have 11 significant bits, so a sum of ones in halves stops at 2048.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import Reduce, Scan, Value
from shaderad.ir.nodes import Expr
from shaderad.ir.types import FLOAT, HALF, Struct, Type, scalar_of, scalars, with_scalar


def combines_halves(node: Reduce | Scan) -> bool:
    """True for a sum or product of elements that hold halves."""
    return node.op in (ops.ADD, ops.MUL) and HALF in scalars(node.result.element)


def in_float(node: Reduce | Scan) -> Value:
    """The sum or product, with floats in place of halves until it is complete."""
    t = node.result.element
    wide = widened(t)
    operands = tuple(converted(x, wide) for x in node.operands)
    return converted(replace(node, operands=operands).result, t)


def widened(t: Type) -> Type:
    """`t` with float in place of half."""
    if isinstance(t, Struct):
        fields = tuple((name, widened(part)) for name, part in t.fields)
        return Struct(f"{b.type_name(t)}_in_float", fields)
    return with_scalar(t, FLOAT) if scalar_of(t) == HALF else t


def converted(x: Value, t: Type) -> Value:
    """`x` with the parts of its elements converted to those of `t`."""
    return x if x.element == t else b.composed(lambda parts: _part(parts[0], t), [x])


def _part(e: Expr, t: Type) -> Expr:
    if e.type == t:
        return e
    if isinstance(t, Struct):
        return c.construct(t, [_part(c.field(e, name), part) for name, part in t.fields])
    return c.convert(t, e)
