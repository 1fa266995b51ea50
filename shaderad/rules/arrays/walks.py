"""Derivatives of whole graphs: the rules of their nodes, applied in order or in reverse.

`jvp` and `vjp` map a graph to a graph, which has derivatives itself. Invariant: a node without an
active operand stays as it is, and no derivative is computed for an inactive operand.
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
"""Cotangents of the results of a node -> cotangents of its operands."""


def jvp(graph: Graph, active: Sequence[bool]) -> Graph:
    """The jvp graph. In: the inputs, then a tangent of each active input. Out: the outputs, then
    the tangents of differentiable outputs.
    """
    dots = loops.flagged_inputs(graph.inputs, active)
    floats = [b.has_derivative(v) for v in graph.outputs]
    outputs_dot = loops.wanted_or_zeros(push(graph, dots), graph.outputs, floats)
    return Graph((*graph.inputs, *loops.kept(dots)), (*graph.outputs, *outputs_dot))


def vjp(graph: Graph, active: Sequence[bool]) -> Graph:
    """The vjp graph. In: the inputs, then a cotangent of each differentiable output. Out: the
    outputs, then a gradient for each active input.
    """
    linear = linearise(graph, active)
    bars = loops.flagged_inputs(graph.outputs, [b.has_derivative(v) for v in graph.outputs])
    gradients = loops.wanted_or_zeros(linear.pull(bars), graph.inputs, active)
    return Graph((*graph.inputs, *loops.kept(bars)), (*linear.outputs, *gradients))


# -- forward ----------------------------------------------------------------------------------


def push(graph: Graph, dots: Derivatives) -> Derivatives:
    """Tangents of the outputs, for the tangents `dots` of the inputs."""
    dot_of = {v: dot for v, dot in zip(graph.inputs, dots, strict=True) if dot is not None}
    for node in graph.nodes:
        operands_dot = [dot_of.get(v) for v in node.operands]
        if all(dot is None for dot in operands_dot):
            continue
        pairs = zip(node.results, _PUSH[type(node)](node, operands_dot), strict=True)
        dot_of |= {v: dot for v, dot in pairs if dot is not None and b.has_derivative(v)}
    return [dot_of.get(v) for v in graph.outputs]


# -- backward ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Linearised:
    """A graph whose nodes with bodies keep the values that their pullbacks read."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    active: frozenset[Value]
    """The differentiable values that depend on the active inputs."""
    pullbacks: Mapping[Node, Pullback]

    def pull(self, bars: Derivatives) -> Derivatives:
        """Cotangents of the active inputs, for the cotangents `bars` of the outputs."""
        bar_of: dict[Value, Value] = {}
        nodes = needed_by(self.outputs)
        discardable = _discardable(nodes)
        for v, bar in zip(self.outputs, bars, strict=True):
            self._accumulate(bar_of, v, bar)
        for node in reversed(nodes):
            results_bar = [bar_of.pop(v, None) for v in node.results]
            if any(bar is not None for bar in results_bar):
                operands_bar = self._pulled(node, results_bar, may_be_discarded=node in discardable)
                for v, bar in zip(node.operands, operands_bar, strict=False):
                    self._accumulate(bar_of, v, bar)
        return [bar_of.get(v) for v in self.inputs]

    def _pulled(self, node: Node, bars: Derivatives, *, may_be_discarded: bool) -> Derivatives:
        pullback = self.pullbacks.get(node)
        if pullback is not None:
            return pullback(bars)
        wanted = [v in self.active for v in node.operands]
        if isinstance(node, arrays.Elementwise):
            return layout.pull_elementwise(node, bars, wanted, may_be_discarded=may_be_discarded)
        return _PULL[type(node)](node, bars, wanted)

    def _accumulate(self, bar_of: dict[Value, Value], v: Value, bar: Value | None) -> None:
        if bar is not None and v in self.active:
            bar_of[v] = b.add(bar_of[v], bar) if v in bar_of else bar


def _discardable(nodes: Sequence[Node]) -> set[Node]:
    """Nodes whose value a `where` may discard; their pullbacks must tolerate NaN.

    `nodes` are in order, operands first.
    """
    discardable: set[Node] = set()
    for node in reversed(nodes):
        is_choice = isinstance(node, arrays.Elementwise) and has_choice(node.expr)
        if is_choice or node in discardable:
            discardable |= {v.producer for v in node.operands if v.producer is not None}
        if isinstance(node, arrays.Elementwise) and is_choice and not _is_plain(node.expr):
            discardable.add(node)
    return discardable


def _is_plain(choice: Expr) -> bool:
    """True if all operands of `choice` are variables."""
    return all(isinstance(a, Var) for a in operands(choice))


def linearise(graph: Graph, wanted: Sequence[bool]) -> Linearised:
    """Prepares the graph for pulling cotangents back to the inputs `wanted`."""
    walk = _Linearisation({}, {}, _active_inputs(graph, wanted))
    walk.add(graph.nodes)
    outputs = tuple(walk.replaced.get(v, v) for v in graph.outputs)
    return Linearised(graph.inputs, outputs, frozenset(walk.active), walk.pullbacks)


def _active_inputs(graph: Graph, wanted: Sequence[bool]) -> set[Value]:
    return {v for v in loops.selected(graph.inputs, wanted) if b.has_derivative(v)}


@dataclass(slots=True)
class _Linearisation:
    """The state of `linearise`."""

    replaced: dict[Value, Value]
    """Values of the graph -> the values that replace them."""
    pullbacks: dict[Node, Pullback]
    active: set[Value]

    def add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            new = arrays.with_operands(node, tuple(self.replaced.get(v, v) for v in node.operands))
            results = new.results
            if any(v in self.active for v in new.operands):
                if isinstance(new, Loop | WhileLoop | Subgraph):
                    results = self._with_body(new)
                self.active |= {v for v in results if b.has_derivative(v)}
            self.replaced |= {
                v: r for v, r in zip(node.results, results, strict=True) if v is not r
            }

    def _with_body(self, node: Loop | WhileLoop | Subgraph) -> tuple[Value, ...]:
        """The results of the node that replaces `node` and keeps what its pullback reads."""
        wanted = [v in self.active for v in node.operands]
        if isinstance(node, WhileLoop):
            results, pullback = while_loops.linearise_while(node, wanted, WALKS)
            self.pullbacks[pullback.node] = pullback
            return results
        if isinstance(node, Subgraph):
            keeping, pullback = subgraphs.linearise(node, wanted, WALKS)
        elif node.checkpoint == "all":
            keeping, pullback = loops.linearise_loop(node, wanted, WALKS)
        else:
            return self._segments(node)
        self.pullbacks[keeping] = pullback
        return keeping.results[: len(node.results)]

    def _segments(self, node: Loop) -> tuple[Value, ...]:
        results = in_segments(node)
        outer = set(needed_by(node.operands))
        self.add([n for n in needed_by(results) if n not in outer])
        return tuple(self.replaced.get(v, v) for v in results)


def _pull(graph: Graph, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    return linearise(graph, wanted).pull(bars)


def _depends(graph: Graph, wanted: Sequence[bool]) -> Sequence[bool]:
    """Flags of the outputs that depend on an input in `wanted`."""
    active = _active_inputs(graph, wanted)
    for node in graph.nodes:
        if any(v in active for v in node.operands):
            active |= {v for v in node.results if b.has_derivative(v)}
    return [v in active for v in graph.outputs]


WALKS = loops.Walks(push, _pull, _depends)


# -- the rules --------------------------------------------------------------------------------


_PUSH: dict[type[Node], Push] = {
    arrays.Elementwise: layout.push_elementwise,
    arrays.Broadcast: layout.push_broadcast,
    arrays.Reshape: layout.push_reshape,
    arrays.Transpose: layout.push_transpose,
    arrays.Slice: layout.push_slice,
    arrays.Place: layout.push_place,
    arrays.Roll: layout.push_roll,
    arrays.Concatenate: layout.push_concatenate,
    arrays.Gather: indexing.push_gather,
    arrays.ScatterAdd: indexing.push_scatter_add,
    arrays.Reduce: reductions.push_reduce,
    arrays.Scan: reductions.push_scan,
    arrays.Loop: lambda node, dots: loops.push_loop(node, dots, WALKS),
    arrays.WhileLoop: lambda node, dots: while_loops.push_while(node, dots, WALKS),
    arrays.Subgraph: lambda node, dots: subgraphs.push(node, dots, WALKS),
    arrays.KernelCall: kernels.push_call,
    arrays.KernelPull: kernels.push_pull,
    arrays.KernelPush: kernels.push_push,
    # Positions carry no derivative.
    arrays.ArgExtreme: lambda node, dots: (None,),
    arrays.ArgSort: lambda node, dots: (None,),
}
_PULL: dict[type[Node], Pull] = {
    arrays.Broadcast: layout.pull_broadcast,
    arrays.Reshape: layout.pull_reshape,
    arrays.Transpose: layout.pull_transpose,
    arrays.Slice: layout.pull_slice,
    arrays.Place: layout.pull_place,
    arrays.Roll: layout.pull_roll,
    arrays.Concatenate: layout.pull_concatenate,
    arrays.Gather: indexing.pull_gather,
    arrays.ScatterAdd: indexing.pull_scatter_add,
    arrays.Reduce: reductions.pull_reduce,
    arrays.Scan: reductions.pull_scan,
    arrays.KernelCall: kernels.pull_call,
    arrays.KernelPull: kernels.pull_pull,
    arrays.KernelPush: kernels.pull_push,
}
