"""Array graphs whose kernels print -> the same without it, for whatever runs a graph again."""

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

_Thing = TypeVar("_Thing", Node, CustomPullback)
# `None` for a graph that prints nothing: an entry that held its own key would live for ever.
_silent: WeakKeyDictionary[Graph, Graph | None] = WeakKeyDictionary()


def printing_kernels(graph: Graph) -> Iterator[Kernel]:
    """The kernels that a graph calls, at any depth, and that print."""
    for node in graph.nodes:
        if isinstance(node, KernelCall) and silent(node.kernel) is not node.kernel:
            yield node.kernel
        for body in _bodies(node).values():
            yield from printing_kernels(body)


def silent_graph(graph: Graph) -> Graph:
    """`graph` with kernels that do not print; one that has no others is itself."""
    if graph not in _silent:
        made = _Changed(silent).graph(graph)
        _silent[graph] = None if made is graph else made
    return _silent[graph] or graph


def graph_without_prints(graph: Graph) -> tuple[Graph, list[Print]]:
    """`graph` without a ``print`` anywhere, and those that were left out."""
    left_out: list[Print] = []

    def change(kernel: Kernel) -> Kernel:
        made, found = without_prints(kernel)
        left_out.extend(found)
        return made

    return _Changed(change, with_pullbacks=True).graph(graph), left_out


class _Changed:
    """Exchanges the kernels of a graph, and of the graphs that its nodes run."""

    def __init__(self, change: Callable[[Kernel], Kernel], *, with_pullbacks: bool = False) -> None:
        self._change = change
        self._with_pullbacks = with_pullbacks
        self._kernels: dict[Kernel, Kernel] = {}

    def graph(self, graph: Graph) -> Graph:
        made: dict[Value, Value] = {}
        for node in graph.nodes:
            given = tuple(made.get(v, v) for v in node.operands)
            new = with_operands(self._node(node), given)
            if new is not node:
                made |= zip(node.results, new.results, strict=True)
        return Graph(graph.inputs, tuple(made.get(v, v) for v in graph.outputs)) if made else graph

    def _node(self, node: Node) -> Node:
        changes: dict[str, Any] = {name: self.graph(one) for name, one in _bodies(node).items()}
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
        """With the forward function alone: the backward one prints for itself."""
        changes = {"forward": self.graph(custom.forward)}
        if self._with_pullbacks:
            changes["backward"] = self.graph(custom.backward)
        return _replaced(custom, changes)


def _replaced(thing: _Thing, changes: Mapping[str, Any]) -> _Thing:
    is_same = all(getattr(thing, name) is new for name, new in changes.items())
    return thing if is_same else replace(thing, **changes)


def _bodies(node: Node) -> dict[str, Graph]:
    """The graphs that a node runs, by the names of its fields."""
    if isinstance(node, Loop | Subgraph):
        return {"body": node.body}
    return {"condition": node.condition, "body": node.body} if isinstance(node, WhileLoop) else {}
