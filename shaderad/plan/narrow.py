"""Graph -> the same graph whose fused nodes have few operands each.

A kernel binds what a node reads, and devices bind few buffers. Invariant: no elementwise node or
concatenation has more than `limit` operands; which of them share a kernel is decided later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node, Value, operand_name
from shaderad.ir.nodes import Expr
from shaderad.ir.types import Struct
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.expressions import substitute


def narrowed(graph: Graph, limit: int) -> Graph:
    """Operands beyond `limit` travel together, as fields of one array of structs."""
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        moved = arrays.with_operands(node, tuple(made[v] for v in node.operands))
        made.update(zip(node.results, _narrow(moved, limit).results, strict=True))
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _narrow(node: Node, limit: int) -> Node:
    if isinstance(node, arrays.Concatenate) and len(node.operands) > limit:
        joined = tuple(
            replace(node, operands=group).result for group in _groups(node.operands, limit)
        )
        return _narrow(replace(node, operands=joined), limit)
    if isinstance(node, arrays.Elementwise):
        distinct = tuple(dict.fromkeys(node.operands))
        if len(distinct) > limit:
            carriers, parts = _carried(distinct, limit)
            part_of = dict(zip(distinct, parts, strict=True))
            by_name = {operand_name(k): part_of[v] for k, v in enumerate(node.operands)}
            return replace(node, operands=carriers, expr=substitute(node.expr, by_name))
    return node


def _groups(values: Sequence[Value], limit: int) -> list[tuple[Value, ...]]:
    return [(*values[k : k + limit],) for k in range(0, len(values), limit)]


def _carried(values: tuple[Value, ...], limit: int) -> tuple[tuple[Value, ...], list[Expr]]:
    """At most `limit` values that hold `values`, and these as parts of what holds them."""
    if len(values) <= limit:
        return values, [c.variable(operand_name(k), v.element) for k, v in enumerate(values)]
    groups = _groups(values, limit)
    carriers, packs = _carried(tuple(map(_pack, groups)), limit)
    return carriers, [
        c.field(pack, _field_name(k))
        for pack, group in zip(packs, groups, strict=True)
        for k in range(len(group))
    ]


def _pack(values: tuple[Value, ...]) -> Value:
    fields = tuple((_field_name(k), v.element) for k, v in enumerate(values))
    return b.struct(Struct("Operands", fields), values)


def _field_name(position: int) -> str:
    return f"part{position}"
