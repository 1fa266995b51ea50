"""Operators of reductions and scans -> what their passes combine.

An op by component becomes a function of two elements, so that every operator is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir import ops
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Const, Expr, Function, Parameter, Return
from shaderad.ir.types import (
    INT,
    UINT,
    Scalar,
    Struct,
    Type,
    is_bool,
    is_float,
    is_integer,
    scalar_of,
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
    return Operator(op.name, t, _function(op.name, t, value), _neutral(op, t))


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


_RANGE = {INT: (-(2**31), 2**31 - 1), UINT: (0, 2**32 - 1)}


def _neutral(op: ops.Op, t: Type) -> Expr:
    """`e` with ``e op x == x``."""
    scalar = scalar_of(t)
    if scalar is None or op in (ops.ADD, ops.BIT_OR):
        return c.zero(t)
    if op == ops.MUL:
        return c.number(t, 1)
    if op in (ops.MIN, ops.MAX):
        low, high = (float("-inf"), float("inf")) if is_float(scalar) else _RANGE[scalar]
        return c.number(t, high if op == ops.MIN else low)
    assert op == ops.BIT_AND, op
    return c.splat(t, _all_ones(scalar))


def _all_ones(scalar: Scalar) -> Expr:
    by_scalar = {INT: -1, UINT: 2**32 - 1}
    return Const(type=scalar, value=by_scalar.get(scalar, True))
