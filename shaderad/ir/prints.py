"""Removes ``print`` from kernels, functions, and the kernels of array graphs.

Derivatives replay the primal, in whole or in part, and a replay must be silent. A user-defined
derivative is not a replay: its prints stay, except in a build, which removes every print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from shaderad.ir import arrays
from shaderad.ir.arrays import CustomPullback, Graph, Node, Value, with_operands
from shaderad.ir.nodes import BackwardDiff, Call, Expr, ForwardDiff, Function, Kernel, Print, Stmt
from shaderad.ir.walk import Block, map_blocks, reachable, rewrite_statement, statements

_Kernel = TypeVar("_Kernel", bound=Kernel)
_Item = TypeVar("_Item", Node, CustomPullback)
_Key = TypeVar("_Key")
# `None` stands for a silent key: an entry that held its own key would never be freed.
_silent: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def prints(body: Iterable[Stmt]) -> list[Print]:
    """Every ``print`` that a body reaches: those of called functions first."""
    body = tuple(body)
    bodies = (*(f.body for f in reachable(body)), body)
    return [s for block in bodies for s in statements(block) if isinstance(s, Print)]


def printing_kernels(graph: Graph) -> Iterator[Kernel]:
    """The kernels with ``print`` that a graph calls, at any depth."""
    for node in graph.nodes:
        if isinstance(node, arrays.KernelCall) and silent(node.kernel) is not node.kernel:
            yield node.kernel
        for body in arrays.graphs_in(node).values():
            yield from printing_kernels(body)


def silent(kernel: _Kernel) -> _Kernel:
    """`kernel` as derivatives replay it; `kernel` itself if it does not print."""
    return _cached(kernel, _Silencer().kernel)


def silent_function(function: Function) -> Function:
    """`function` as ``fwd_diff`` and ``bwd_diff`` replay it."""
    return _cached(function, _Silencer().function)


def silent_graph(graph: Graph) -> Graph:
    """`graph` with silent kernels; `graph` itself if none of its kernels prints."""
    return _cached(graph, _GraphSilencer(silent).graph)


def _cached(key: _Key, silenced: Callable[[Any], Any]) -> _Key:
    if key not in _silent:
        result = silenced(key)
        _silent[key] = None if result is key else result
    return _silent[key] or key


def without_prints(kernel: Kernel) -> tuple[Kernel, list[Print]]:
    """`kernel` without any ``print``, and the removed statements."""
    silencer = _Silencer(with_derivatives=True)
    result = silencer.kernel(kernel)
    return (result if silencer.removed else kernel), silencer.removed


def graph_without_prints(graph: Graph) -> tuple[Graph, list[Print]]:
    """`graph` without any ``print``, and the removed statements."""
    removed: list[Print] = []

    def change(kernel: Kernel) -> Kernel:
        silent_kernel, prints = without_prints(kernel)
        removed.extend(prints)
        return silent_kernel

    return _GraphSilencer(change, with_pullbacks=True).graph(graph), removed


class _Silencer:
    """Removes ``print`` from bodies; a body or function without prints keeps its identity."""

    def __init__(self, *, with_derivatives: bool = False) -> None:
        self._with_derivatives = with_derivatives
        self._silent: dict[Function, Function] = {}
        self._with_own: list[Function] = []
        """Silent functions whose user-defined derivatives are not silenced yet: a derivative may
        call its own function, so the function comes first."""
        self.removed: list[Print] = []

    def kernel(self, kernel: Kernel) -> Kernel:
        body = self._body(kernel.body)
        while self._with_own:
            f = self._with_own.pop()
            for name, own in (("backward", f.backward), ("forward", f.forward)):
                if own is not None:
                    object.__setattr__(f, name, self.function(own))
        return kernel if body is kernel.body else replace(kernel, body=body)

    def function(self, f: Function) -> Function:
        if f not in self._silent:
            body = self._body(f.body)
            has_own = self._with_derivatives and (f.backward or f.forward) is not None
            self._silent[f] = f if body is f.body and not has_own else replace(f, body=body)
            if has_own:
                self._with_own.append(self._silent[f])
        return self._silent[f]

    def _body(self, body: Block) -> Block:
        new = tuple(t for s in body for t in self._statement(s))
        is_same = len(new) == len(body) and all(a is b for a, b in zip(new, body, strict=True))
        return body if is_same else new

    def _statement(self, s: Stmt) -> Block:
        if isinstance(s, Print):
            self.removed.append(s)
            return ()
        s = map_blocks(s, self._body)
        if isinstance(s, BackwardDiff):
            f = self.function(s.function)
            s = s if f is s.function else replace(s, function=f)
        return (rewrite_statement(s, self._call),)

    def _call(self, e: Expr) -> Expr:
        if isinstance(e, Call | ForwardDiff):
            f = self.function(e.function)
            return e if f is e.function else replace(e, function=f)
        return e


class _GraphSilencer:
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
        changes: dict[str, Any] = {n: self.graph(g) for n, g in arrays.graphs_in(node).items()}
        if isinstance(node, arrays.KernelCall):
            if node.kernel not in self._kernels:
                self._kernels[node.kernel] = self._change(node.kernel)
            changes["kernel"] = self._kernels[node.kernel]
        if isinstance(node, arrays.KernelPull | arrays.KernelPush):
            changes["call"] = self._node(node.call)
        if isinstance(node, arrays.Subgraph) and node.custom is not None:
            changes["custom"] = self._pullback(node.custom)
        return _replaced(node, changes)

    def _pullback(self, custom: CustomPullback) -> CustomPullback:
        """Rewrites `forward`; `backward` is not a replay, so its prints stay by default."""
        changes = {"forward": self.graph(custom.forward)}
        if self._with_pullbacks:
            changes["backward"] = self.graph(custom.backward)
        return _replaced(custom, changes)


def _replaced(item: _Item, changes: Mapping[str, Any]) -> _Item:
    is_same = all(getattr(item, name) is new for name, new in changes.items())
    return item if is_same else replace(item, **changes)
