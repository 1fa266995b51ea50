"""Prints array graphs for people and tests: one line per node, in the order of evaluation.

in  %0: float[n]
%1 = scan mul (%0): float[n]
out %1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from shaderad.ir import arrays, nodes, ops
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.printer import expression_text
from shaderad.ir.sizes import Polynomial

_SHOWN_ELSEWHERE = frozenset({"operands", "span", "shape"})
"""Fields that the operands and result types of the line already show."""


def graph_text(graph: Graph) -> str:
    """Inputs, nodes and outputs of `graph`, one per line."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    names: dict[Value, str] = {}
    for value in graph.inputs:
        names[value] = f"%{len(names)}"
        yield f"in  {names[value]}: {value.type}"
    for node in graph.nodes:
        for value in node.results:
            names[value] = f"%{len(names)}"
        results = ", ".join(names[v] for v in node.results)
        operands = ", ".join(names[v] for v in node.operands)
        types = ", ".join(str(v.type) for v in node.results)
        yield f"{results} = {_label(node)} ({operands}): {types}"
        for name, body in _bodies(node):
            yield f"  {name}:"
            yield from (f"    {line}" for line in _lines(body))
    yield f"out {', '.join(names[v] for v in graph.outputs)}"


def _label(node: Node) -> str:
    """The kind of the node, and its attributes."""
    words = [type(node).__name__.lower()]
    for attribute in fields(node):
        name, value = attribute.name, getattr(node, attribute.name)
        if name in _SHOWN_ELSEWHERE or isinstance(value, Graph):
            continue
        text = _value(value)
        if text:
            words.append(text if name in ("expr", "op", "kind") else f"{name}={text}")
    return " ".join(words)


def _value(value: object) -> str:
    if isinstance(value, nodes.Expr):
        return expression_text(value)
    if isinstance(value, ops.Op | nodes.Function | nodes.Kernel | arrays.CustomPullback):
        return value.name
    if isinstance(value, arrays.KernelCall):
        return value.kernel.name
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, arrays.ArrayType | Polynomial | Enum):
        return str(value)
    return "" if value is None else str(value)


def _bodies(node: Node) -> Iterator[tuple[str, Graph]]:
    for attribute in fields(node):
        value = getattr(node, attribute.name)
        if isinstance(value, Graph):
            yield attribute.name, value
