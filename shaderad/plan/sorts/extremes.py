"""Searches for the first extreme of rows, as reductions of pairs of value and position."""

from __future__ import annotations

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Function, Parameter, Return
from shaderad.ir.types import INT, Struct, is_float
from shaderad.plan.sorts.order import both, either, negated


def extreme_by_reduction(x: Value, kind: str) -> Value:
    """The position of the first smallest or largest element of each row."""
    t = Struct(f"{b.type_name(x.element)}_place", (("value", x.element), ("position", INT)))
    pairs = b.struct(t, (x, b.iota(x.shape, len(x.shape) - 1)))
    return b.field(b.reduce(_first_extreme(t, kind), pairs), "position")


def _first_extreme(t: Struct, kind: str) -> Function:
    first, second = c.variable("first", t), c.variable("second", t)
    a, then = c.field(first, "value"), c.field(second, "value")
    wins = c.apply(ops.LT if kind == "min" else ops.GT, then, a)
    is_tie = c.apply(ops.EQ, then, a)
    if is_float(a.type):
        is_nan, then_is_nan = c.apply(ops.ISNAN, a), c.apply(ops.ISNAN, then)
        wins = both(negated(then_is_nan), either(is_nan, wins))
        is_tie = either(is_tie, both(is_nan, then_is_nan))
    is_before = c.apply(ops.LT, c.field(second, "position"), c.field(first, "position"))
    wins = either(wins, both(is_tie, is_before))
    extreme = nodes.Conditional(type=t, condition=wins, if_true=second, if_false=first)
    return Function(
        name=f"first_{kind}",
        parameters=(Parameter(name="first", type=t), Parameter(name="second", type=t)),
        result=t,
        body=(Return(value=extreme),),
        local_types={},
        commutes=True,
    )
