"""Equal expressions -> one object or number; equal graphs -> one graph, whose plan is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import fields
from functools import cache
from typing import Any, cast

from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr
from shaderad.ir.walk import children, map_children


class Expressions:
    """Interns expressions. Keeps every expression alive, so that no `id` is reused."""

    def __init__(self) -> None:
        self._number_by_key: dict[Hashable, int] = {}
        self._first: list[Expr] = []
        self._number_by_id: dict[int, int] = {}
        self._kept: list[Expr] = []

    def number(self, e: Expr) -> int:
        """A number for `e`, which all structurally equal expressions share."""
        self._kept.append(e)
        for part in in_order(e):
            if id(part) not in self._number_by_id:
                self._number_by_id[id(part)] = self._number(part)
        return self._number_by_id[id(e)]

    def shared(self, e: Expr) -> Expr:
        """`e` with one object for all structurally equal parts, those of earlier calls included."""
        return self._first[self.number(e)]

    def _number(self, part: Expr) -> int:
        key = self._key(part)
        if key not in self._number_by_key:
            self._number_by_key[key] = len(self._first)
            numbers = self._number_by_id
            self._first.append(map_children(part, lambda child: self._first[numbers[id(child)]]))
        return self._number_by_key[key]

    def _key(self, part: Expr) -> Hashable:
        key: list[Hashable] = [type(part)]
        key += [self._number_by_id[id(child)] for child in children(part)]
        for name in _compared(type(part)):
            value: Any = getattr(part, name)
            if isinstance(value, Expr) or _is_exprs(value):
                continue
            # 0, 0.0, -0.0 and False are equal to Python.
            key.append((name, repr(value) if name == "value" else value))
        return tuple(key)


@cache
def _compared(kind: type[Expr]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.compare)


def _is_exprs(value: Any) -> bool:
    return isinstance(value, tuple) and any(
        isinstance(item, Expr) for item in cast("tuple[Any, ...]", value)
    )


class EqualGraphs:
    """The latest graphs, of which no two are equal.

    Each keeps its plan and its programs alive, whose memory grows with the nodes of the graph.

    Args:
        limit: The most graphs.
        node_limit: The most nodes of all graphs, unless these are `FEWEST` graphs.
    """

    FEWEST = 8

    def __init__(self, limit: int, node_limit: int = 1024) -> None:
        self._limit, self._node_limit = limit, node_limit
        self._node_count = 0
        self._graph_by_key: OrderedDict[Hashable, Graph] = OrderedDict()

    def shared(self, graph: Graph) -> Graph:
        """The kept graph that equals `graph`, source lines included; else `graph` itself."""
        key = _Keys().graph(graph)
        shared = self._graph_by_key.setdefault(key, graph)
        self._graph_by_key.move_to_end(key)
        self._node_count += len(graph.nodes) if shared is graph else 0
        while self._holds_too_much():
            _, oldest = self._graph_by_key.popitem(last=False)
            self._node_count -= len(oldest.nodes)
        return shared

    def _holds_too_much(self) -> bool:
        count = len(self._graph_by_key)
        return count > self._limit or (count > self.FEWEST and self._node_count > self._node_limit)


_kept = EqualGraphs(256)


def shared_graph(graph: Graph) -> Graph:
    """`graph`, or the equal graph that is kept; for functions that are traced for one call."""
    return _kept.shared(graph)


class _Keys:
    """Equal keys for equal parts of one graph."""

    def __init__(self) -> None:
        self._number_by_value: dict[Value, int] = {}
        self._key_by_id: dict[int, Hashable] = {}

    def graph(self, graph: Graph) -> Hashable:
        inputs = tuple(self._numbered(v) for v in graph.inputs)
        nodes: list[Hashable] = []
        for node in graph.nodes:
            nodes.append((self._part(node.operands), self._part(node)))
            for v in node.results:
                self._numbered(v)
        return inputs, tuple(nodes), self._part(graph.outputs)

    def _numbered(self, value: Value) -> Hashable:
        self._number_by_value[value] = len(self._number_by_value)
        return value.type

    def _part(self, part: Any) -> Hashable:
        if isinstance(part, Value):
            return self._number_by_value[part]
        if isinstance(part, tuple):
            return tuple(map(self._part, cast("tuple[Any, ...]", part)))
        if isinstance(part, Graph):
            return self.graph(part)
        if isinstance(part, Expr | Node):
            # Expressions share parts, which `graph` keeps alive.
            key = self._key_by_id.get(id(part))
            if key is None:
                # The call that a derivative belongs to keeps operands of another graph.
                own = (getattr(part, f.name) for f in fields(part) if f.name != "operands")
                key = self._key_by_id[id(part)] = (type(part), *map(self._part, own))
            return key
        # 0, 0.0, -0.0 and False are equal to Python.
        return (type(part), repr(part)) if isinstance(part, int | float) else part
