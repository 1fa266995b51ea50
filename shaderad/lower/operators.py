"""Operators of reductions and scans -> what their passes combine.

An op by component becomes a function of two elements, so that every operator is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir import ops
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Expr, Function, Parameter, Return
from shaderad.ir.types import (
    Struct,
    Type,
    is_bool,
    is_integer,
)
from shaderad.rules import composing as c
from shaderad.rules.local_arrays import added


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative operator on values of one type."""

    name: str
    state: Type
    """What is combined."""
    combine: Function
    neutral: Expr
    """What a row without elements comes to; zero for functions, of which no row may be empty."""


def operator_of(op: Reducer, t: Type) -> Operator:
    """`op` on elements of type `t`."""
    if isinstance(op, Function):
        return Operator(op.name, t, op, c.zero(t))
    left, right = c.variable("left", t), c.variable("right", t)
    value = _sum(left, right) if op == ops.ADD else c.apply(op, left, right)
    return Operator(op.name, t, _function(op.name, t, value), c.neutral(op, t))


def _sum(a: Expr, b: Expr) -> Expr:
    """The sum by field; whole numbers take part, as in any sum."""
    if isinstance(a.type, Struct):
        return c.construct(
            a.type, [_sum(c.field(a, name), c.field(b, name)) for name, _ in a.type.fields]
        )
    if is_bool(a.type):
        return c.zero(a.type)
    return c.apply(ops.ADD, a, b) if is_integer(a.type) else added(a, b)


def _function(name: str, t: Type, value: Expr) -> Function:
    return Function(
        name=name,
        parameters=(Parameter(name="left", type=t), Parameter(name="right", type=t)),
        result=t,
        body=(Return(value=value),),
        local_types={},
    )
