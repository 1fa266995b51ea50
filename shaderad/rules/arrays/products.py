"""Long products of floats, carried in two: the value, and what its roundings have lost.

Products of numbers near 1 round to one side where they fall between two floats, so that errors of
a million factors add up to some thousandths, in trees as in a row. The lost part of each product
is a float again, by which the next ones can be corrected:

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
    """Whether products of `t` by `op` are to be carried in two; doubles need none of it."""
    is_plain = not isinstance(t, Struct)
    return op == ops.MUL and is_plain and all(s == FLOAT for s in scalars(t))


def in_two(t: Type) -> Struct:
    """What carries products of `t`."""
    return Struct(f"{b.type_name(t)}_product", (("value", t), ("low", t)))


def lost(a: Expr, a_low: Expr, b: Expr, b_low: Expr) -> Expr:
    """What ``a b`` lacks of the product of both numbers."""
    corrections = c.apply(ops.ADD, c.apply(ops.MUL, a, b_low), c.apply(ops.MUL, a_low, b))
    return c.apply(ops.ADD, c.apply(ops.PRODUCT_ERROR, a, b), corrections)


def whole(value: Expr, low: Expr) -> Expr:
    """The nearest float to a product that is carried in two."""
    return c.apply(ops.ADD, value, low)


def finished(value: Expr, low: Expr) -> Expr:
    """That of a result, which may be infinite: it stays so, whatever it has lost."""
    # What that is may be an infinity of the other sign, or NaN, which never wins.
    most = c.number(low.type, 3e38)
    finite = c.apply(ops.MIN, c.apply(ops.MAX, low, c.apply(ops.NEG, most)), most)
    return whole(value, finite)
