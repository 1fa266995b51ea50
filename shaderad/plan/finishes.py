"""What reductions and scans make of their results before they store them.

A scan over pairs or affine maps is often asked for one number of each: where a single elementwise
node is all that reads a result, the pass stores what that node computes, and nothing else.
"""

from __future__ import annotations

from collections import Counter

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Value, operand_name
from shaderad.ir.nodes import Function, Parameter, Return
from shaderad.ir.types import byte_count
from shaderad.plan.reporting import may_report
from shaderad.plan.statements import write
from shaderad.rules import composing as c
from shaderad.rules.expressions import in_order, substitute


def finishes(graph: Graph) -> dict[Value, arrays.Elementwise]:
    """By the result of a pass, the node whose result is stored in its place."""
    kept = set(graph.outputs)
    counts = Counter(v for node in graph.nodes for v in set(node.operands))
    return {
        node.operands[0]: node
        for node in graph.nodes
        if isinstance(node, arrays.Elementwise)
        and _is_finish(node)
        and counts[node.operands[0]] == 1
        and node.operands[0] not in kept
    }


def finish_of(node: arrays.Elementwise) -> Function:
    """The node as a function of the element that it reads."""
    x = node.operands[0]
    names = [operand_name(k) for k in range(len(node.operands))]
    element = c.variable("total", x.element)
    written = write([substitute(node.expr, dict.fromkeys(names, element))])
    return Function(
        name="finished",
        parameters=(Parameter(name="total", type=x.element),),
        result=node.expr.type,
        body=(*written.body, Return(value=written.values[0])),
        local_types=dict(written.local_types),
    )


def _is_finish(node: arrays.Elementwise) -> bool:
    if len(set(node.operands)) != 1:
        return False
    x = node.operands[0]
    is_smaller = byte_count(node.expr.type) <= byte_count(x.element)
    is_of_pass = isinstance(x.producer, arrays.Reduce | arrays.Scan)
    return is_of_pass and is_smaller and not any(map(may_report, in_order(node.expr)))
