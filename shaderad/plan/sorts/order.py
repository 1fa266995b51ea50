"""Conditions on keys in the order of sorts: NaN comes last."""

from __future__ import annotations

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import BOOL, is_float


def negated(condition: Expr) -> Expr:
    """True if a condition does not hold."""
    return c.apply(ops.NOT, condition)


def both(left: Expr, right: Expr) -> Expr:
    """True if two conditions hold; the second one is evaluated if the first one holds."""
    return nodes.Logical(type=BOOL, is_and=True, left=left, right=right)


def either(left: Expr, right: Expr) -> Expr:
    """True if one of two conditions holds; the second one is evaluated if the first one fails."""
    return nodes.Logical(type=BOOL, is_and=False, left=left, right=right)


def less(left: Expr, right: Expr) -> Expr:
    """True if `left` comes before `right`; NaN comes last, after infinity."""
    is_less = c.apply(ops.LT, left, right)
    if not is_float(left.type):
        return is_less
    is_number = negated(c.apply(ops.ISNAN, left))
    return either(is_less, both(is_number, c.apply(ops.ISNAN, right)))
