"""Compensated products: a long product of floats as a pair of the value and its rounding error.

Rounding errors of factors near 1 have the same sign, so those of a million factors add up to some
thousandths, in any order. The rounding error of a product is itself a float, which corrects the
following products:

    (a, a_low) (b, b_low)  =  (a b, error(a b) + a b_low + a_low b)
"""

from __future__ import annotations

from shaderad.ir import ops
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Expr
from shaderad.ir.types import FLOAT, Struct, Type, scalars
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b


def loses(op: Reducer, t: Type) -> bool:
    """True if reductions of `t` by `op` need compensation: products of 32-bit floats."""
    is_plain = not isinstance(t, Struct)
    return op == ops.MUL and is_plain and all(s == FLOAT for s in scalars(t))


def in_two(t: Type) -> Struct:
    """The pair of value and rounding error of a product of type `t`."""
    return Struct(f"{b.type_name(t)}_product", (("value", t), ("low", t)))


def lost(a: Expr, a_low: Expr, b: Expr, b_low: Expr) -> Expr:
    """The rounding error of the product of two pairs."""
    corrections = c.apply(ops.ADD, c.apply(ops.MUL, a, b_low), c.apply(ops.MUL, a_low, b))
    return c.apply(ops.ADD, c.apply(ops.PRODUCT_ERROR, a, b), corrections)


def whole(value: Expr, low: Expr) -> Expr:
    """The pair, rounded to one float."""
    return c.apply(ops.ADD, value, low)


def finished(value: Expr, low: Expr) -> Expr:
    """The pair, rounded to one float; an infinite value stays infinite."""
    # The error of an infinite value may be the opposite infinity or NaN, so it is clamped.
    most = c.number(low.type, 3e38)
    finite = c.apply(ops.MIN, c.apply(ops.MAX, low, c.apply(ops.NEG, most)), most)
    return whole(value, finite)
