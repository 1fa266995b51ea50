"""Derivatives of subgraphs: recomputed, or user-defined.

    results = body(operands)            operands_bar = pull(body)(operands, results_bar)
    results, residuals = forward(..)    operands_bar = backward(residuals, results_bar)

Each derivative is a subgraph itself, so it recomputes the primal values that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.diagnostics import error
from shaderad.ir.arrays import CustomPullback, Graph, Subgraph, Value
from shaderad.ir.prints import silent_graph
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.loops import Walks, kept, read_by, spread, wanted_or_zeros


def push(node: Subgraph, dots: Derivatives, walks: Walks) -> Derivatives:
    """The tangents of the results, computed by a subgraph.

    Raises:
        DerivativeError: SR0472 for a user-defined derivative, which exists in reverse mode only.
    """
    if node.custom is not None:
        raise error("SR0472", node.span, function=node.custom.name)
    inputs_dot = _inputs_for(dots)
    return _as_subgraph(node, walks.push(node.body, inputs_dot), inputs_dot, dots)


def linearise(
    node: Subgraph, wanted: Sequence[bool], walks: Walks
) -> tuple[Subgraph, Callable[[Derivatives], Derivatives]]:
    """The node that replaces `node`, and its pullback."""
    custom = node.custom
    if custom is None:
        return node, lambda bars: _pull(node, bars, wanted, walks)
    forward = Subgraph(operands=node.operands, body=custom.forward, span=node.span)
    return forward, lambda bars: _pull_custom(forward, custom, len(node.results), bars)


def _pull(node: Subgraph, bars: Derivatives, wanted: Sequence[bool], walks: Walks) -> Derivatives:
    outputs_bar = _inputs_for(bars)
    return _as_subgraph(node, walks.pull(node.body, outputs_bar, wanted), outputs_bar, bars)


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
