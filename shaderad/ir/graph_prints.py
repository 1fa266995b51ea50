"""Removes ``print`` from the kernels of array graphs, for passes that run a graph again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from shaderad.ir.arrays import (
    CustomPullback,
    Graph,
    KernelCall,
    KernelPull,
    KernelPush,
    Loop,
    Node,
    Subgraph,
    Value,
    WhileLoop,
    with_operands,
)
from shaderad.ir.nodes import Kernel, Print
from shaderad.ir.prints import silent, without_prints

_Item = TypeVar("_Item", Node, CustomPullback)
# `None` stands for a graph without prints: an entry that held its own key would never be freed.
_silent: WeakKeyDictionary[Graph, Graph | None] = WeakKeyDictionary()


def printing_kernels(graph: Graph) -> Iterator[Kernel]:
    """The kernels with ``print`` that a graph calls, at any depth."""
    for node in graph.nodes:
        if isinstance(node, KernelCall) and silent(node.kernel) is not node.kernel:
            yield node.kernel
        for body in _bodies(node).values():
            yield from printing_kernels(body)


def silent_graph(graph: Graph) -> Graph:
    """`graph` with silent kernels; `graph` itself if none of its kernels prints."""
    if graph not in _silent:
        result = _KernelRewrite(silent).graph(graph)
        _silent[graph] = None if result is graph else result
    return _silent[graph] or graph


def graph_without_prints(graph: Graph) -> tuple[Graph, list[Print]]:
    """`graph` without any ``print``, and the removed statements."""
    removed: list[Print] = []

    def change(kernel: Kernel) -> Kernel:
        silent_kernel, prints = without_prints(kernel)
        removed.extend(prints)
        return silent_kernel

    return _KernelRewrite(change, with_pullbacks=True).graph(graph), removed


class _KernelRewrite:
    """Replaces the kernels of a graph, and of the graphs inside its nodes."""

    def __init__(self, change: Callable[[Kernel], Kernel], *, with_pullbacks: bool = False) -> None:
        self._change = change
        self._with_pullbacks = with_pullbacks
        self._kernels: dict[Kernel, Kernel] = {}

    def graph(self, graph: Graph) -> Graph:
        new: dict[Value, Value] = {}
        for node in graph.nodes:
            operands = tuple(new.get(v, v) for v in node.operands)
            new_node = with_operands(self._node(node), operands)
            if new_node is not node:
                new |= zip(node.results, new_node.results, strict=True)
        return Graph(graph.inputs, tuple(new.get(v, v) for v in graph.outputs)) if new else graph

    def _node(self, node: Node) -> Node:
        changes: dict[str, Any] = {name: self.graph(body) for name, body in _bodies(node).items()}
        if isinstance(node, KernelCall):
            changes["kernel"] = self._kernel(node.kernel)
        if isinstance(node, KernelPull | KernelPush):
            changes["call"] = self._node(node.call)
        if isinstance(node, Subgraph) and node.custom is not None:
            changes["custom"] = self._pullback(node.custom)
        return _replaced(node, changes)

    def _kernel(self, kernel: Kernel) -> Kernel:
        if kernel not in self._kernels:
            self._kernels[kernel] = self._change(kernel)
        return self._kernels[kernel]

    def _pullback(self, custom: CustomPullback) -> CustomPullback:
        """Rewrites `forward`; `backward` is not a replay, so its prints stay by default."""
        changes = {"forward": self.graph(custom.forward)}
        if self._with_pullbacks:
            changes["backward"] = self.graph(custom.backward)
        return _replaced(custom, changes)


def _replaced(item: _Item, changes: Mapping[str, Any]) -> _Item:
    is_same = all(getattr(item, name) is new for name, new in changes.items())
    return item if is_same else replace(item, **changes)


def _bodies(node: Node) -> dict[str, Graph]:
    """The graphs inside a node, by field name."""
    if isinstance(node, Loop | Subgraph):
        return {"body": node.body}
    return {"condition": node.condition, "body": node.body} if isinstance(node, WhileLoop) else {}
