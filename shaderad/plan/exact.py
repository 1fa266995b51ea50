"""Graph -> the same graph whose long products are exact to a float, by `scan_operators`.

After differentiation: to the rules a product is a product.
"""

from __future__ import annotations

from shaderad.ir import arrays, ops
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.nodes import Function
from shaderad.ir.types import Struct
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays import scan_operators


def exact_products(graph: Graph) -> Graph:
    """Products along an axis as scans and reductions of values with what they have lost."""
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        given = tuple(made[v] for v in node.operands)
        moved = arrays.with_operands(node, given)
        made.update(zip(node.results, _results(moved), strict=True))
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _results(node: Node) -> tuple[Value, ...]:
    if not isinstance(node, arrays.Scan | arrays.Reduce):
        return node.results
    x, *init = node.operands
    if not scan_operators.needs_compensation(node.op, x.element):
        return node.results
    t = scan_operators.compensated(x.element)
    if isinstance(node, arrays.Scan):
        found = b.scan(_multiply(t), _in_two(t, x))
    else:
        one = b.full(node.result.shape, c.number(x.element, 1.0))
        found = b.reduce(_multiply(t), _in_two(t, x), _in_two(t, init[0] if init else one))
    pair = c.variable("x", t)
    finished = scan_operators.rounded_to_finite(c.field(pair, "value"), c.field(pair, "low"))
    return (b.elementwise(finished, {"x": found}, found.shape),)


def _in_two(t: Struct, x: Value) -> Value:
    return b.struct(t, (x, b.zeros(x.type)))


def _multiply(t: Struct) -> Function:
    left, right = c.variable("left", t), c.variable("right", t)
    a, a_low = c.field(left, "value"), c.field(left, "low")
    then, then_low = c.field(right, "value"), c.field(right, "low")
    parts = (c.apply(ops.MUL, a, then), scan_operators.product_error(a, a_low, then, then_low))
    return scan_operators.operator("multiply", left, right, c.construct(t, parts))
