"""Graphs that are traced again and again -> one object, so that plans and programs are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import fields
from typing import Any, cast

from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.nodes import Expr

_KEPT_GRAPHS = 256
_kept: OrderedDict[Hashable, Graph] = OrderedDict()


def shared_graph(graph: Graph) -> Graph:
    """The kept graph that equals `graph`, source lines included; else `graph` itself."""
    key = _Keys().graph(graph)
    known = _kept.setdefault(key, graph)
    _kept.move_to_end(key)
    if len(_kept) > _KEPT_GRAPHS:
        _kept.popitem(last=False)
    return known


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
