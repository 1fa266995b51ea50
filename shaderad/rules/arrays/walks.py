"""Derivatives of whole graphs: the rules of their nodes, applied in order or in reverse.

`jvp` and `vjp` map a graph to a graph, which has derivatives itself. Invariant: a node without an
active operand stays as it is, and no derivative is computed for an inactive operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Loop, Node, Subgraph, Value, WhileLoop, needed_by
from shaderad.ir.dags import has_choice
from shaderad.ir.nodes import Var
from shaderad.ir.sizes import Size
from shaderad.ir.walk import children
from shaderad.rules.arrays import (
    convolutions,
    kernels,
    layout,
    loops,
    reductions,
    subgraphs,
    while_loops,
)
from shaderad.rules.arrays.layout import Derivatives, NodeRule
from shaderad.rules.arrays.subgraphs import (
    Pullback,
    flagged_inputs,
    kept,
    selected,
    wanted_or_zeros,
)


def jvp(graph: Graph, active: Sequence[bool]) -> Graph:
    """The jvp graph. In: the inputs, then a tangent of each active input. Out: the outputs, then
    the tangents of differentiable outputs.
    """
    dots = flagged_inputs(graph.inputs, active)
    floats = [b.has_derivative(v) for v in graph.outputs]
    outputs_dot = wanted_or_zeros(push(graph, dots), graph.outputs, floats)
    return Graph((*graph.inputs, *kept(dots)), (*graph.outputs, *outputs_dot))


def vjp(graph: Graph, active: Sequence[bool]) -> Graph:
    """The vjp graph. In: the inputs, then a cotangent of each differentiable output. Out: the
    outputs, then a gradient for each active input.
    """
    linear = LinearisedGraph(graph, active)
    bars = flagged_inputs(graph.outputs, [b.has_derivative(v) for v in graph.outputs])
    gradients = wanted_or_zeros(linear.pull(bars), graph.inputs, active)
    return Graph((*graph.inputs, *kept(bars)), (*linear.outputs, *gradients))


def push(graph: Graph, dots: Derivatives) -> Derivatives:
    """Tangents of the outputs, for the tangents `dots` of the inputs."""
    dot_of = {v: dot for v, dot in zip(graph.inputs, dots, strict=True) if dot is not None}
    for node in graph.nodes:
        operands_dot = [dot_of.get(v) for v in node.operands]
        if any(dot is not None for dot in operands_dot):
            pairs = zip(node.results, _push_node(node, operands_dot), strict=True)
            dot_of |= {v: dot for v, dot in pairs if dot is not None and b.has_derivative(v)}
    return [dot_of.get(v) for v in graph.outputs]


def _push_node(node: Node, dots: Derivatives) -> Derivatives:
    match node:
        case Loop():
            return loops.push_loop(node, dots, WALKS)
        case WhileLoop():
            return while_loops.push_while(node, dots, WALKS)
        case Subgraph():
            return subgraphs.push(node, dots, WALKS)
        case arrays.ArgExtreme() | arrays.ArgSort():  # Positions carry no derivative.
            return (None,)
        case _:
            return _RULES[type(node)].push(node, dots)


class LinearisedGraph:
    """A graph whose nodes with bodies keep the values that their pullbacks read."""

    def __init__(self, graph: Graph, wanted: Sequence[bool]) -> None:
        """`wanted` flags the inputs whose cotangents are pulled."""
        self._inputs = graph.inputs
        self._active = _active_inputs(graph, wanted)
        """The differentiable values that depend on the active inputs."""
        self._pullbacks: dict[Node, Pullback] = {}
        self._replaced: dict[Value, Value] = {}
        """Values of the graph -> the values that replace them."""
        self._add(graph.nodes)
        self.outputs = tuple(self._replaced.get(v, v) for v in graph.outputs)

    def _add(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            new = arrays.with_operands(node, tuple(self._replaced.get(v, v) for v in node.operands))
            results = new.results
            if any(v in self._active for v in new.operands):
                if isinstance(new, Loop | WhileLoop | Subgraph):
                    results = self._with_body(new)
                self._active |= {v for v in results if b.has_derivative(v)}
            pairs = zip(node.results, results, strict=True)
            self._replaced |= {v: r for v, r in pairs if v is not r}

    def _with_body(self, node: Loop | WhileLoop | Subgraph) -> tuple[Value, ...]:
        """The results of the node that replaces `node` and keeps what its pullback reads."""
        wanted = [v in self._active for v in node.operands]
        if isinstance(node, WhileLoop):
            keeping, pullback = while_loops.linearise_while(node, wanted, WALKS)
            self._pullbacks[keeping] = pullback
            return (*keeping.results[: node.carry_count], keeping.results[-1])
        if isinstance(node, Subgraph):
            keeping, pullback = subgraphs.linearise(node, wanted, WALKS)
        elif node.checkpoint == "none":
            raise error("SR0471", node.span)
        else:
            keeping, pullback = loops.linearise_loop(node, wanted, WALKS)
            share = loops.segmented_share(keeping.results[len(node.results) :])
            if node.checkpoint == "sqrt" and share != 0:
                return self._in_segments(node, share)
        self._pullbacks[keeping] = pullback
        return keeping.results[: len(node.results)]

    def _in_segments(self, node: Loop, share: Size) -> tuple[Value, ...]:
        """The results of a loop that keeps the carries between segments."""
        results, outer = loops.in_segments(node, share), set(needed_by(node.operands))
        self._add(n for n in needed_by(results) if n not in outer)
        return tuple(self._replaced.get(v, v) for v in results)

    def pull(self, bars: Derivatives, unused: Sequence[Value] = ()) -> Derivatives:
        """Cotangents of the active inputs, for the cotangents `bars` of the outputs.

        A cotangent of an output in `unused` may be 0 because nothing uses the output.
        """
        bar_of: dict[Value, Value] = {}
        nodes = needed_by(self.outputs)
        unused = [self._replaced.get(v, v) for v in unused]
        discardable = _discardable(nodes, unused)
        self._accumulate(bar_of, self.outputs, bars)
        for node in reversed(nodes):
            results_bar = [bar_of.pop(v, None) for v in node.results]
            if any(bar is not None for bar in results_bar):
                operands_bar = self._pulled(node, results_bar, may_be_discarded=node in discardable)
                self._accumulate(bar_of, node.operands, operands_bar)
        return [bar_of.get(v) for v in self._inputs]

    def _pulled(self, node: Node, bars: Derivatives, *, may_be_discarded: bool) -> Derivatives:
        pullback = self._pullbacks.get(node)
        if pullback is not None:
            return pullback(bars)
        wanted = [v in self._active for v in node.operands]
        if isinstance(node, arrays.Elementwise):
            return layout.pull_elementwise(node, bars, wanted, may_be_discarded=may_be_discarded)
        pulled = _RULES[type(node)].pull(node, bars, wanted)
        if isinstance(node, arrays.Reduce) and may_be_discarded:
            return reductions.without_unused(node, pulled, bars)
        return pulled

    def _accumulate(
        self, bar_of: dict[Value, Value], values: Sequence[Value], bars: Derivatives
    ) -> None:
        for v, bar in zip(values, bars, strict=False):
            if bar is not None and v in self._active:
                bar_of[v] = layout.sum_of(bar_of[v], bar) if v in bar_of else bar


def _discardable(nodes: Sequence[Node], unused: Sequence[Value]) -> set[Node]:
    """Nodes whose value a `where` may discard, or `unused` ones; their pullbacks must tolerate NaN.

    `nodes` are in order, operands first.
    """
    discardable = {v.producer for v in unused if v.producer is not None}
    for node in reversed(nodes):
        is_choice = False
        if isinstance(node, arrays.Elementwise) and has_choice(node.expr):
            is_choice = True
            if not all(isinstance(a, Var) for a in children(node.expr)):
                discardable.add(node)
        if is_choice or node in discardable:
            discardable |= {v.producer for v in node.operands if v.producer is not None}
    return discardable


def _active_inputs(graph: Graph, wanted: Sequence[bool]) -> set[Value]:
    return {v for v in selected(graph.inputs, wanted) if b.has_derivative(v)}


def _pull(
    graph: Graph, bars: Derivatives, wanted: Sequence[bool], unused: Sequence[Value]
) -> Derivatives:
    return LinearisedGraph(graph, wanted).pull(bars, unused)


def _depends(graph: Graph, wanted: Sequence[bool]) -> Sequence[bool]:
    """Flags of the outputs that depend on an input in `wanted`."""
    active = _active_inputs(graph, wanted)
    for node in graph.nodes:
        if any(v in active for v in node.operands):
            active |= {v for v in node.results if b.has_derivative(v)}
    return [v in active for v in graph.outputs]


WALKS = subgraphs.Walks(push, _pull, _depends)

_RULES: dict[type[Node], NodeRule] = {
    **layout.LINEAR,
    arrays.Elementwise: NodeRule(layout.push_elementwise, layout.pull_elementwise),
    arrays.Concatenate: NodeRule(layout.push_concatenate, layout.pull_concatenate),
    arrays.ScatterAdd: NodeRule(layout.push_scatter_add, layout.pull_scatter_add),
    arrays.Reduce: NodeRule(reductions.push_reduce, reductions.pull_reduce),
    arrays.Convolution: NodeRule(convolutions.push_convolution, convolutions.pull_convolution),
    arrays.Scan: NodeRule(reductions.push_scan, reductions.pull_scan),
    arrays.KernelCall: NodeRule(kernels.push_call, kernels.pull_call),
    arrays.KernelPull: NodeRule(kernels.push_pull, kernels.pull_pull),
    arrays.KernelPush: NodeRule(kernels.push_push, kernels.pull_push),
}
