"""Graph -> the same graph with less in it: no subgraphs, nothing twice, no layout that is none.

Common subexpressions are found before subgraphs are inlined: a checkpoint computes again what
stands outside of it, and must not be merged with that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, cast

from shaderad.ir import arrays, ops
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.nodes import Expr
from shaderad.plan.equality import Expressions
from shaderad.plan.sorting import extreme_by_reduction, sort_in_rounds
from shaderad.plan.sums import is_atomic, summed
from shaderad.rules import composing as c
from shaderad.rules.arrays.building import elementwise


def simplified(graph: Graph) -> Graph:
    """`graph` without repetitions, then without subgraphs and what no kernel does at once."""
    return _spelled_out(_inlined(_merged(graph)))


# -- common subexpressions --------------------------------------------------------------------


def _merged(graph: Graph) -> Graph:
    """One node for all that compute the same; layout nodes that change nothing are left out."""
    exprs = Expressions()
    known: dict[Hashable, Node] = {}
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        given = tuple(made[v] for v in node.operands)
        same = _unchanged(node, given)
        if same is not None:
            made[node.result] = same
            continue
        moved = _with_operands(node, given)
        kept = known.setdefault(_key(moved, exprs), moved)
        made.update(zip(node.results, kept.results, strict=True))
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _with_operands(node: Node, given: tuple[Value, ...]) -> Node:
    """`node` on what was made of its operands; of reshapes in a row the last one is enough."""
    if isinstance(node, arrays.Reshape):
        (x,) = given
        while isinstance(x.producer, arrays.Reshape):
            x = x.producer.operands[0]
        given = (x,)
    return arrays.with_operands(node, given)


def _unchanged(node: Node, given: tuple[Value, ...]) -> Value | None:
    """The operand that a layout node returns as it is."""
    if isinstance(node, arrays.Broadcast | arrays.Slice | arrays.Place):
        (x,) = given
        is_whole = x.shape == node.shape and all(s == 1 for s in getattr(node, "steps", ()))
        return x if is_whole else None
    if isinstance(node, arrays.Reshape):
        (x,) = given
        while isinstance(x.producer, arrays.Reshape) and x.shape != node.shape:
            x = x.producer.operands[0]
        return x if x.shape == node.shape else None
    if isinstance(node, arrays.Transpose):
        is_ordered = node.permutation == tuple(range(len(node.permutation)))
        return given[0] if is_ordered else None
    if isinstance(node, arrays.Concatenate):
        return given[0] if len(given) == 1 else None
    return None


def _key(node: Node, exprs: Expressions) -> Hashable:
    parts: list[Hashable] = [type(node)]
    for f in fields(node):
        value: Any = getattr(node, f.name)
        if f.name == "span":
            continue
        if f.name == "operands":
            parts.append(tuple(map(id, cast("tuple[Value, ...]", value))))
        elif isinstance(value, Expr):
            parts.append(exprs.number(value))
        else:
            parts.append(value)
    return tuple(parts)


# -- subgraphs --------------------------------------------------------------------------------


def _inlined(graph: Graph) -> Graph:
    """The nodes of subgraphs in place of them, and sums that devices can run."""
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    _copy(graph, made)
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _copy(graph: Graph, made: dict[Value, Value]) -> None:
    """Nodes of `graph` over the values that `made` has for its inputs."""
    for node in graph.nodes:
        given = tuple(made[v] for v in node.operands)
        if isinstance(node, arrays.Subgraph):
            body = _merged(node.body)
            inner = dict(zip(body.inputs, given, strict=True))
            _copy(body, inner)
            results: Sequence[Value] = [inner[v] for v in body.outputs]
        else:
            moved = _with_operands(node, given)
            results = moved.results
            if isinstance(moved, arrays.ScatterAdd) and not is_atomic(moved.result.element):
                results = (summed(moved),)
        made.update(zip(node.results, results, strict=True))


def _spelled_out(graph: Graph) -> Graph:
    """Sorts and searches as nodes that plans have steps for, and the bound of last writers."""
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        moved = _with_operands(node, tuple(made[v] for v in node.operands))
        results: Sequence[Value] = moved.results
        if isinstance(moved, arrays.LastWriter):
            results = (_at_least(moved.result, -1),)
        elif isinstance(moved, arrays.ArgSort):
            results = (sort_in_rounds(moved.operands[0]),)
        elif isinstance(moved, arrays.ArgExtreme):
            results = (extreme_by_reduction(moved.operands[0], moved.kind),)
        made.update(zip(node.results, results, strict=True))
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _at_least(value: Value, least: int) -> Value:
    """A Max array holds the smallest int where nobody wrote."""
    bounded = c.apply(ops.MAX, c.variable("x", value.element), c.whole(least))
    return elementwise(bounded, {"x": value}, value.shape)
