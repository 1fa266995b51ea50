"""A sort -> the step that runs one of its plans."""

from __future__ import annotations

from functools import cache

from shaderad.ir import arrays
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph
from shaderad.plan.elements import base_of
from shaderad.plan.repeats import PlanOf
from shaderad.plan.sorts.digits import DigitSharing, sort_by_digits
from shaderad.plan.sorts.merges import sort_in_rounds
from shaderad.plan.steps import Plan, RunSort
from shaderad.rules.arrays.subgraphs import fresh


def run_sort(node: arrays.ArgSort, plan_of: PlanOf) -> RunSort:
    """The step of a sort; sizes choose its plan."""
    (keys,) = node.operands
    base = base_of(keys)

    def planned(sharing: DigitSharing | None) -> Plan:
        (x,) = fresh((base,))
        rows = b.reshape(x, keys.shape)
        order = sort_in_rounds(rows) if sharing is None else sort_by_digits(rows, sharing)
        return plan_of(Graph((x,), (order,)))

    return RunSort(node, (base,), cache(planned))
