"""The cost of one operation, in additions."""

from __future__ import annotations

from shaderad.ir import nodes, ops

RECOMPUTED_COST = 16
"""The cost of an element, in additions, up to which it is recomputed instead of stored."""
_CALL_COST = 50
_FUNCTION_COST = 8
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
