"""The costs of operations and of calls, in additions."""

from __future__ import annotations

from shaderad.ir import nodes, ops, walk
from shaderad.ir.arrays import Reducer
from shaderad.ir.types import Type, leaves

RECOMPUTED_COST = 16
"""The cost of an element, in additions, up to which it is recomputed instead of stored."""
_CALL_COST = 50
_FUNCTION_COST = 8
LOOP_COST = 100
CHOICE_COST = 20
"""SwiftShader needs exponential time for unrolled code with choices."""
_CHEAP = frozenset({
    ops.ADD, ops.SUB, ops.MUL, ops.NEG, ops.MIN, ops.MAX, ops.ABS, ops.SELECT, ops.NOT,
    ops.EQ, ops.NE, ops.LT, ops.LE, ops.GT, ops.GE, ops.BIT_AND, ops.BIT_OR, ops.BIT_XOR, ops.MAD,
})  # fmt: skip


def cost_of(part: nodes.Expr) -> int:
    """The cost of one operation, its operands left out, in additions."""
    if isinstance(part, nodes.Call | nodes.ForwardDiff):
        return _CALL_COST
    if isinstance(part, nodes.Apply):
        return 1 if part.op in _CHEAP else _FUNCTION_COST
    return 0


def is_costly(f: nodes.Function) -> bool:
    """True if a call of `f` costs more than to keep its result, or to test if it is needed."""
    return walk.has_loops(f) or _cost_of_call(f) > RECOMPUTED_COST


def _cost_of_call(f: nodes.Function) -> int:
    """The cost of a call of a function without loops, in additions of numbers."""
    parts = (e for s in walk.all_statements(f) for e in walk.expressions(s))
    return sum(cost_of(e) * len(leaves(e.type)) for e in parts if isinstance(e, nodes.Apply))


def cost_of_operator(op: Reducer, element: Type) -> int:
    """The cost of an associative operator on elements of a type, in additions."""
    if not isinstance(op, nodes.Function):
        return len(leaves(element))
    loops = sum(isinstance(s, nodes.For | nodes.While) for s in walk.statements(op.body))
    return sum(map(cost_of, walk.all_expressions(op.body))) + LOOP_COST * loops


def cost_of_choices(op: Reducer) -> int:
    """The cost of choices in an operator, which take time in drivers."""
    if not isinstance(op, nodes.Function):
        return 0
    parts = (*walk.all_expressions(op.body), *walk.statements(op.body))
    return CHOICE_COST * sum(isinstance(part, nodes.Conditional | nodes.If) for part in parts)
