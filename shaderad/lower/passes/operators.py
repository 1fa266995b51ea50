"""Operators of reductions and scans as IR functions of two elements; ops act by component."""

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


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative operator on values of one type."""

    name: str
    state: Type
    """The type of elements and results."""
    combine: Function
    neutral: Expr
    """The result of an empty row; zero for functions, whose rows may not be empty."""


def operator_of(op: Reducer, t: Type) -> Operator:
    """`op` on elements of type `t`."""
    if isinstance(op, Function):
        return Operator(op.name, t, op, c.zero(t))
    left, right = c.variable("left", t), c.variable("right", t)
    value = _sum(left, right) if op == ops.ADD else c.apply(op, left, right)
    return Operator(op.name, t, binary_function(op.name, t, value), c.neutral(op, t))


def _sum(a: Expr, b: Expr) -> Expr:
    """The sum by field, integers included; bools give false."""
    if isinstance(a.type, Struct):
        return c.construct(
            a.type, [_sum(c.field(a, name), c.field(b, name)) for name, _ in a.type.fields]
        )
    if is_bool(a.type):
        return c.zero(a.type)
    return c.apply(ops.ADD, a, b) if is_integer(a.type) else c.added(a, b)


def binary_function(name: str, t: Type, value: Expr) -> Function:
    """The function of ``left`` and ``right``, of type `t`, that returns `value`."""
    return Function(
        name=name,
        parameters=(Parameter(name="left", type=t), Parameter(name="right", type=t)),
        result=t,
        body=(Return(value=value),),
        local_types={},
    )
