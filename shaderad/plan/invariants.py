"""Loops -> loops whose iterations do not store again what is the same in all of them.

Invariants move that need memory, such as a number that a kernel of the user takes: all others are
computed where they are used. They are computed from constants of the loop alone, by nodes that
cannot report, so that a loop without iterations reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.plan.elements import base_of
from shaderad.plan.simplify import rewritten, simplified
from shaderad.plan.storage import in_memory, is_fused_node, is_reported_gather
from shaderad.rules.arrays.subgraphs import fresh, instantiate


def hoisted(graph: Graph) -> Graph:
    """`graph`, with what its loops store in each iteration stored before them if it is the same."""
    return rewritten(graph, _hoist)


def _hoist(node: Node) -> Sequence[Value]:
    if not isinstance(node, arrays.Loop | arrays.WhileLoop):
        return node.results
    body = hoisted(simplified(node.body))
    start = node.carry_count
    constants = node.operands[start:]
    if isinstance(node, arrays.Loop):
        constants = constants[: node.constant_count]
    end = start + len(constants)
    first = len(body.inputs) - len(node.operands)
    inputs = body.inputs[first + start : first + end]
    found = tuple(dict.fromkeys(_invariants(body, inputs)))
    if not found:
        return node.results
    moved = instantiate(Graph(inputs, found), constants)
    operands = (*node.operands[:end], *moved, *node.operands[end:])
    body = _with_inputs(body, dict(zip(found, fresh(found), strict=True)), first + end)
    if isinstance(node, arrays.Loop):
        count = node.constant_count + len(found)
        return replace(node, operands=operands, body=body, constant_count=count).results
    condition = replace(node.condition, inputs=(*node.condition.inputs, *fresh(found)))
    return replace(node, operands=operands, body=body, condition=condition).results


def _invariants(body: Graph, constants: Sequence[Value]) -> Iterator[Value]:
    """The values that kernels of a body need in memory, computed from `constants` alone."""
    fixed = set(constants)
    for node in body.nodes:
        if is_fused_node(node):
            if not is_reported_gather(node) and fixed.issuperset(node.operands):
                fixed.add(node.result)
            continue
        bases = map(base_of, in_memory(node))
        yield from (v for v in bases if v.producer is not None and v in fixed)


def _with_inputs(body: Graph, given: dict[Value, Value], at: int) -> Graph:
    """`body` with inputs in place of values that it computes."""
    value_of = {v: v for v in body.inputs} | given
    for node in body.nodes:
        if node.results[0] not in given:
            rebuilt = arrays.with_operands(node, tuple(value_of[v] for v in node.operands))
            value_of.update(zip(node.results, rebuilt.results, strict=True))
    inputs = (*body.inputs[:at], *given.values(), *body.inputs[at:])
    return Graph(inputs, tuple(value_of[v] for v in body.outputs))
