"""Which expressions of a kernel can go wrong at run time, and say so."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import nodes, ops, walk
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import is_integer
from shaderad.plan.positions import is_size_name


def may_report(e: Expr) -> bool:
    """Whether the value of this node, apart from its operands, can go wrong at run time."""
    if isinstance(e, nodes.Element):
        return not isinstance(e.index, nodes.Const)
    if isinstance(e, nodes.Apply) and e.op in (ops.FLOOR_DIV, ops.MOD):
        return is_integer(e.type) and not _is_positive(e.args[1])
    if isinstance(e, nodes.Call):
        return not _is_quiet(e.function)
    return isinstance(e, nodes.ForwardDiff | nodes.PointerIndex)


def _is_quiet(function: nodes.Function) -> bool:
    """Whether it is one of ours, such as a composition of affine maps, and only computes."""
    bodies = [function.body, *(f.body for f in walk.reachable(function.body))]
    is_ours = function.span == nodes.NO_SPAN
    return is_ours and not any(map(_does_more, bodies))


_ARITHMETIC = (nodes.Assign, nodes.BackwardDiff, nodes.Return)


def _does_more(body: Sequence[Stmt]) -> bool:
    is_plain = all(isinstance(s, _ARITHMETIC) for s in walk.statements(body))
    parts = walk.all_expressions(body)
    return not is_plain or any(
        isinstance(e, nodes.Load) or (not isinstance(e, nodes.Call) and may_report(e))
        for e in parts
    )


def _is_positive(divisor: Expr) -> bool:
    """Whether it is a constant, or an extent, which is not 0 where there is a thread."""
    if isinstance(divisor, nodes.Cast):
        return isinstance(divisor.value, nodes.Var) and is_size_name(divisor.value.name)
    return isinstance(divisor, nodes.Const) and divisor.value > 0
