"""Derivatives of subgraphs, recomputed or user-defined; shared parts of all nodes with bodies.

    results = body(operands)            operands_bar = pull(body)(operands, results_bar)
    results, residuals = forward(...)    operands_bar = backward(residuals, results_bar)

Each derivative is a subgraph itself, so it recomputes the primal values that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, CustomPullback, Graph, Subgraph, Value
from shaderad.ir.prints import silent_graph
from shaderad.rules.arrays.halves import converted, widened
from shaderad.rules.arrays.layout import Derivatives

T = TypeVar("T")
Pullback = Callable[[Derivatives], Derivatives]
"""Cotangents of the results of a node -> cotangents of its operands."""


@dataclass(frozen=True, slots=True)
class Walks:
    """The derivatives of whole graphs, passed to the rules of nodes with bodies."""

    push: Callable[[Graph, Derivatives], Derivatives]
    """(graph, tangents of its inputs) -> tangents of its outputs."""
    pull: Callable[[Graph, Derivatives, Sequence[bool], Sequence[Value]], Derivatives]
    """(graph, cotangents of its outputs, flags of inputs, outputs whose cotangents may be 0 because
    they are unused) -> cotangents of flagged inputs."""
    depends: Callable[[Graph, Sequence[bool]], Sequence[bool]]
    """(graph, flags of inputs) -> flags of the outputs that depend on a flagged input."""


def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
    """New graph inputs with the types of `values`."""
    return tuple(Value(v.type) for v in values)


def kept(values: Derivatives) -> tuple[Value, ...]:
    return tuple(v for v in values if v is not None)


def selected(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    """The flagged values."""
    return [v for v, is_flagged in zip(values, flags, strict=True) if is_flagged]


def spread(values: Iterable[T], flags: Iterable[bool]) -> list[T | None]:
    """The inverse of `selected`: the next value for each flag that is set, else `None`."""
    remaining = iter(values)
    return [next(remaining) if is_flagged else None for is_flagged in flags]


def instantiate(graph: Graph, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of `graph` for other inputs."""
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        copy = arrays.with_operands(node, tuple(new.get(v, v) for v in node.operands))
        new |= zip(node.results, copy.results, strict=True)
    return tuple(new.get(v, v) for v in graph.outputs)


def wanted_or_zeros(bars: Derivatives, like: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    """The flagged derivatives, with explicit zeros; surplus items of any sequence are ignored."""
    triples = zip(bars, like, flags, strict=False)
    return [b.or_zeros(bar, v) for bar, v, is_flagged in triples if is_flagged]


def flagged_inputs(values: Sequence[Value], flags: Sequence[bool]) -> list[Value | None]:
    """A new graph input for each flagged value, else `None`."""
    return spread(fresh(selected(values, flags)), flags)


def sums_of(bars: Sequence[Value]) -> tuple[Value, ...]:
    """A new graph input for the sum of each of `bars` over iterations, halves in float."""
    return tuple(Value(ArrayType(widened(bar.element), bar.shape)) for bar in bars)


def accumulated(sums: Sequence[Value], bars: Sequence[Value]) -> list[Value]:
    return [
        b.add(total, converted(bar, total.element)) for total, bar in zip(sums, bars, strict=True)
    ]


def read_by(outputs: Sequence[Value]) -> set[Value]:
    """Every value that the computation of `outputs` reads."""
    return {*outputs, *(v for node in arrays.needed_by(outputs) for v in node.operands)}


# -- subgraphs -----------------------------------------------------------------------------------


def push(node: Subgraph, dots: Derivatives, walks: Walks) -> Derivatives:
    """The tangents of the results, computed by a subgraph.

    Raises:
        DerivativeError: SR0472 for a user-defined derivative, which exists in reverse mode only.
    """
    if node.custom is not None:
        raise error("SR0472", node.span, function=node.custom.name)
    inputs_dot = _inputs_for(dots)
    return _as_subgraph(node, walks.push(node.body, inputs_dot), inputs_dot, dots)


def linearise(node: Subgraph, wanted: Sequence[bool], walks: Walks) -> tuple[Subgraph, Pullback]:
    """The node that replaces `node`, and its pullback."""
    custom = node.custom
    if custom is None:
        return node, lambda bars: _pull(node, bars, wanted, walks)
    forward = Subgraph(operands=node.operands, body=custom.forward, span=node.span)
    return forward, lambda bars: _pull_custom(forward, custom, len(node.results), bars)


def _pull(node: Subgraph, bars: Derivatives, wanted: Sequence[bool], walks: Walks) -> Derivatives:
    outputs_bar = _inputs_for(bars)
    return _as_subgraph(node, walks.pull(node.body, outputs_bar, wanted, ()), outputs_bar, bars)


def _pull_custom(
    forward: Subgraph, custom: CustomPullback, result_count: int, bars: Derivatives
) -> Derivatives:
    results, residuals = forward.results[:result_count], forward.results[result_count:]
    results_bar = wanted_or_zeros(bars, results, [b.has_derivative(v) for v in results])
    backward = Subgraph(
        operands=(*residuals, *results_bar), body=custom.backward, span=forward.span
    )
    return spread(backward.results, map(b.has_derivative, forward.operands))


def _inputs_for(derivatives: Derivatives) -> list[Value | None]:
    """A new graph input for each derivative that is not zero."""
    return [None if v is None else Value(v.type) for v in derivatives]


def _as_subgraph(
    node: Subgraph, outputs: Derivatives, inputs: Derivatives, derivatives: Derivatives
) -> Derivatives:
    """`outputs`, computed by a subgraph.

    Its operands are the operands of `node` and the `derivatives` for `inputs` that `outputs` read.
    """
    read = read_by(kept(outputs))
    pairs = [*zip(node.body.inputs, node.operands, strict=True),
             *zip(kept(inputs), kept(derivatives), strict=True)]  # fmt: skip
    used = [(own, operand) for own, operand in pairs if own in read]
    body = silent_graph(Graph(tuple(own for own, _ in used), kept(outputs)))
    subgraph = Subgraph(operands=tuple(operand for _, operand in used), body=body, span=node.span)
    return spread(subgraph.results, (v is not None for v in outputs))
