"""Derivatives of whole graphs: the rules of their nodes, in order or in reverse.

`jvp` and `vjp` make a graph out of a graph; their results have derivatives themselves.
Invariant: a node through which no derivative flows is left as it is, and nothing is computed for
an operand whose derivative nobody wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Loop, Node, Subgraph, Value, WhileLoop, needed_by
from shaderad.ir.nodes import Expr, Var
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays import (
    indexing,
    kernels,
    layout,
    loops,
    reductions,
    subgraphs,
    while_loops,
)
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.segments import in_segments
from shaderad.rules.expressions import has_choice, operands

Push = Callable[[Any, Derivatives], Derivatives]
Pull = Callable[[Any, Derivatives, Sequence[bool]], Derivatives]
Pullback = Callable[[Derivatives], Derivatives]
"""Of one loop through which derivatives flow: cotangents of results to those of operands."""


def jvp(graph: Graph, active: Sequence[bool]) -> Graph:
    """Takes the inputs, then a tangent for each active one; gives the outputs, then the tangents
    of those that hold floats.
    """
    dots = [Value(v.type) if one else None for v, one in zip(graph.inputs, active, strict=True)]
    found = push(graph, dots)
    moved = [loops.or_zeros(dot, v) for dot, v in zip(found, graph.outputs, strict=True)
             if b.has_derivative(v)]  # fmt: skip
    return Graph((*graph.inputs, *loops.kept(dots)), (*graph.outputs, *moved))


def vjp(graph: Graph, active: Sequence[bool]) -> Graph:
    """Takes the inputs, then a cotangent for each output that holds floats; gives the outputs,
    then a gradient for each active input.
    """
    linear = linearise(graph, active)
    bars = [Value(v.type) if b.has_derivative(v) else None for v in graph.outputs]
    found = linear.pull(bars)
    gradients = [loops.or_zeros(bar, v) for bar, v, one in
                 zip(found, graph.inputs, active, strict=True) if one]  # fmt: skip
    return Graph((*graph.inputs, *loops.kept(bars)), (*linear.outputs, *gradients))


# -- forward ----------------------------------------------------------------------------------


def push(graph: Graph, dots: Derivatives) -> Derivatives:
    """Tangents of the outputs, given those of the inputs."""
    known = {v: dot for v, dot in zip(graph.inputs, dots, strict=True) if dot is not None}
    for node in graph.nodes:
        given = [known.get(v) for v in node.operands]
        if all(dot is None for dot in given):
            continue
        found = zip(node.results, _PUSH[type(node)](node, given), strict=True)
        known |= {v: dot for v, dot in found if dot is not None and b.has_derivative(v)}
    return [known.get(v) for v in graph.outputs]


# -- backward ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linearised:
    """A graph whose loops keep what their pullbacks need."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    active: frozenset[Value]
    """The values that depend on the inputs by which derivatives are taken."""
    pullbacks: Mapping[Node, Pullback]

    def pull(self, bars: Derivatives) -> Derivatives:
        """Cotangents of the active inputs, given those of the outputs."""
        known: dict[Value, Value] = {}
        nodes = needed_by(self.outputs)
        optional = _optional(nodes)
        for v, bar in zip(self.outputs, bars, strict=True):
            self._accumulate(known, v, bar)
        for node in reversed(nodes):
            given = [known.pop(v, None) for v in node.results]
            if any(bar is not None for bar in given):
                found = self._pulled(node, given, is_optional=node in optional)
                for v, bar in zip(node.operands, found, strict=False):
                    self._accumulate(known, v, bar)
        return [known.get(v) for v in self.inputs]

    def _pulled(self, node: Node, bars: Derivatives, *, is_optional: bool) -> Derivatives:
        pullback = self.pullbacks.get(node)
        if pullback is not None:
            return pullback(bars)
        wanted = [v in self.active for v in node.operands]
        if is_optional and isinstance(node, arrays.Elementwise):
            return layout.pull_unused(node, bars, wanted)
        return _PULL[type(node)](node, bars, wanted)

    def _accumulate(self, known: dict[Value, Value], v: Value, bar: Value | None) -> None:
        if bar is not None and v in self.active:
            before = known.get(v)
            known[v] = bar if before is None else b.add(before, bar)


def _optional(nodes: Sequence[Node]) -> set[Node]:
    """Of `nodes`, operands first: those that make what a choice by element may not use."""
    found: set[Node] = set()
    for node in reversed(nodes):
        is_choice = isinstance(node, arrays.Elementwise) and has_choice(node.expr)
        if is_choice or node in found:
            found |= {v.producer for v in node.operands if v.producer is not None}
        if isinstance(node, arrays.Elementwise) and is_choice and not _is_plain(node.expr):
            found.add(node)
    return found


def _is_plain(choice: Expr) -> bool:
    """Whether nothing but the choice itself is computed."""
    return all(isinstance(a, Var) for a in operands(choice))


def linearise(graph: Graph, wanted: Sequence[bool]) -> Linearised:
    """The graph made ready for cotangents to flow to the inputs `wanted`."""
    active = {v for v, one in zip(graph.inputs, wanted, strict=True) if one and b.has_derivative(v)}
    prepared = _Prepared({}, {}, active)
    prepared.walk(graph.nodes)
    outputs = tuple(prepared.changed.get(v, v) for v in graph.outputs)
    return Linearised(graph.inputs, outputs, frozenset(prepared.active), prepared.pullbacks)


@dataclass(slots=True)
class _Prepared:
    """The walk of `linearise`."""

    changed: dict[Value, Value]
    """What stands for a value of the graph, where that is another."""
    pullbacks: dict[Node, Pullback]
    active: set[Value]

    def walk(self, given: Sequence[Node]) -> None:
        for node in given:
            operands = tuple(self.changed.get(v, v) for v in node.operands)
            made = arrays.with_operands(node, operands)
            is_active = any(v in self.active for v in operands)
            if is_active and isinstance(made, Loop | WhileLoop | Subgraph):
                results = self._with_body(made)
            else:
                results = made.results
                if is_active:
                    self._mark(results)
            self.changed |= {v: r for v, r in zip(node.results, results, strict=True) if v is not r}

    def _with_body(self, node: Loop | WhileLoop | Subgraph) -> tuple[Value, ...]:
        """The results of a node with a body, by one that keeps what its pullback reads."""
        wanted = [v in self.active for v in node.operands]
        if isinstance(node, WhileLoop):
            results, pullback = while_loops.linearise_while(node, wanted, WALKS)
            self.pullbacks[pullback.node] = pullback
        elif isinstance(node, Subgraph):
            keeping, found = subgraphs.linearise(node, wanted, WALKS)
            results = keeping.results[: len(node.results)]
            self.pullbacks[keeping] = found
        elif node.checkpoint == "all":
            saving, found = loops.linearise_loop(node, wanted, WALKS)
            results = saving.results[: len(node.results)]
            self.pullbacks[saving] = found
        else:
            return self._segments(node)
        self._mark(results)
        return results

    def _segments(self, node: Loop) -> tuple[Value, ...]:
        results = in_segments(node)
        known = set(needed_by(node.operands))
        self.walk([n for n in needed_by(results) if n not in known])
        return tuple(self.changed.get(v, v) for v in results)

    def _mark(self, results: Sequence[Value]) -> None:
        self.active |= {v for v in results if b.has_derivative(v)}


def depends(graph: Graph, wanted: Sequence[bool]) -> Sequence[bool]:
    """Which outputs a derivative by the inputs `wanted` can flow to."""
    active = {v for v, one in zip(graph.inputs, wanted, strict=True) if one and b.has_derivative(v)}
    for node in graph.nodes:
        if any(v in active for v in node.operands):
            active |= {v for v in node.results if b.has_derivative(v)}
    return [v in active for v in graph.outputs]


class _Walks:
    """What the rules of loops need to differentiate bodies."""

    def push(self, graph: Graph, dots: Derivatives) -> Derivatives:
        return push(graph, dots)

    def pull(self, graph: Graph, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        return linearise(graph, wanted).pull(bars)

    def depends(self, graph: Graph, wanted: Sequence[bool]) -> Sequence[bool]:
        return depends(graph, wanted)


WALKS = _Walks()


# -- the table --------------------------------------------------------------------------------


def _no_push(node: Node, _: Derivatives) -> Derivatives:
    return [None] * len(node.results)


def _push_loop(node: Loop, dots: Derivatives) -> Derivatives:
    return loops.push_loop(node, dots, WALKS)


def _push_while(node: WhileLoop, dots: Derivatives) -> Derivatives:
    return while_loops.push_while(node, dots, WALKS)


def _push_subgraph(node: Subgraph, dots: Derivatives) -> Derivatives:
    return subgraphs.push(node, dots, WALKS)


_PUSH: dict[type[Node], Push] = {
    arrays.Elementwise: layout.push_elementwise,
    arrays.Broadcast: layout.push_broadcast,
    arrays.Reshape: layout.push_reshape,
    arrays.Transpose: layout.push_transpose,
    arrays.Slice: layout.push_slice,
    arrays.Place: layout.push_place,
    arrays.Concatenate: layout.push_concatenate,
    arrays.Gather: indexing.push_gather,
    arrays.ScatterAdd: indexing.push_scatter_add,
    arrays.Reduce: reductions.push_reduce,
    arrays.Scan: reductions.push_scan,
    arrays.Loop: _push_loop,
    arrays.WhileLoop: _push_while,
    arrays.Subgraph: _push_subgraph,
    arrays.KernelCall: kernels.push_call,
    arrays.KernelPull: kernels.push_pull,
    arrays.KernelPush: kernels.push_push,
    # Positions carry no derivative.
    arrays.ArgExtreme: _no_push,
    arrays.ArgSort: _no_push,
}
_PULL: dict[type[Node], Pull] = {
    arrays.Elementwise: layout.pull_elementwise,
    arrays.Broadcast: layout.pull_broadcast,
    arrays.Reshape: layout.pull_reshape,
    arrays.Transpose: layout.pull_transpose,
    arrays.Slice: layout.pull_slice,
    arrays.Place: layout.pull_place,
    arrays.Concatenate: layout.pull_concatenate,
    arrays.Gather: indexing.pull_gather,
    arrays.ScatterAdd: indexing.pull_scatter_add,
    arrays.Reduce: reductions.pull_reduce,
    arrays.Scan: reductions.pull_scan,
    arrays.KernelCall: kernels.pull_call,
    arrays.KernelPull: kernels.pull_pull,
    arrays.KernelPush: kernels.pull_push,
}
