"""Derivatives of graphs as one step: recomputed, or as the user says.

    results = body(operands)            operands_bar = pull(body)(operands, results_bar)
    results, residuals = forward(..)    operands_bar = backward(residuals, results_bar)

Each derivative is a subgraph again, so what it computes of the primal is computed a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.diagnostics import error
from shaderad.ir.arrays import CustomPullback, Graph, Subgraph, Value
from shaderad.ir.graph_prints import silent_graph
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.loops import Walks, kept, read_by, wanted_or_zeros


def push(node: Subgraph, dots: Derivatives, walks: Walks) -> Derivatives:
    """The tangents, by a subgraph of their own.

    Raises:
        DerivativeError: SR0472 where the derivative is the user's, which is of reverse mode.
    """
    if node.custom is not None:
        raise error("SR0472", node.span, function=node.custom.name)
    inputs_dot = [None if dot is None else Value(dot.type) for dot in dots]
    found = walks.push(node.body, inputs_dot)
    given = [*zip(node.body.inputs, node.operands, strict=True),
             *zip(kept(inputs_dot), kept(dots), strict=True)]  # fmt: skip
    return _as_subgraph(node, found, given)


def linearise(
    node: Subgraph, wanted: Sequence[bool], walks: Walks
) -> tuple[Subgraph, Callable[[Derivatives], Derivatives]]:
    """What stands for `node`, and its pullback."""
    custom = node.custom
    if custom is None:
        return node, lambda bars: _pull(node, bars, wanted, walks)
    made = Subgraph(operands=node.operands, body=custom.forward, span=node.span)
    return made, lambda bars: _pull_custom(made, custom, len(node.results), bars)


def _pull(node: Subgraph, bars: Derivatives, wanted: Sequence[bool], walks: Walks) -> Derivatives:
    outputs_bar = [None if bar is None else Value(bar.type) for bar in bars]
    found = walks.pull(node.body, outputs_bar, wanted)
    given = [*zip(node.body.inputs, node.operands, strict=True),
             *zip(kept(outputs_bar), kept(bars), strict=True)]  # fmt: skip
    return _as_subgraph(node, found, given)


def _pull_custom(
    made: Subgraph, custom: CustomPullback, result_count: int, bars: Derivatives
) -> Derivatives:
    results, residuals = made.results[:result_count], made.results[result_count:]
    floats = [b.has_derivative(v) for v in results]
    given = (*residuals, *wanted_or_zeros(bars, results, floats))
    found = iter(Subgraph(operands=given, body=custom.backward, span=made.span).results)
    return [next(found) if b.has_derivative(v) else None for v in made.operands]


def _as_subgraph(
    node: Subgraph, outputs: Derivatives, given: Sequence[tuple[Value, Value]]
) -> Derivatives:
    """`outputs`, computed in a subgraph from those inputs that they read."""
    read = read_by(kept(outputs))
    used = [(own, operand) for own, operand in given if own in read]
    body = silent_graph(Graph(tuple(own for own, _ in used), kept(outputs)))
    made = Subgraph(operands=tuple(operand for _, operand in used), body=body, span=node.span)
    found = iter(made.results)
    return [None if one is None else next(found) for one in outputs]
