"""Batching of subgraphs: recomputed as before, with the user's own pullback over the whole batch.

    results, residuals = forward(operands)      operands_bar = backward(residuals, results_bar)

The cotangent of an operand that the batch shares is the sum of those from all its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import building as b
from shaderad.ir.arrays import CustomPullback, Graph, Subgraph, Value
from shaderad.rules.arrays.subgraphs import selected
from shaderad.rules.batching.operands import (
    Batch,
    GraphRule,
    Operand,
    flags_of,
    mapped,
    values_of,
)


def batch_subgraph(
    node: Subgraph, operands: Sequence[Operand], batch: Batch, outputs_of: GraphRule
) -> list[Operand]:
    flags, inner = flags_of(operands), batch.inside()
    own = batch.inputs(node.body.inputs, flags)
    outputs = inner.selected(outputs_of(node.body, own, inner))
    batch_operands, inputs = (*values_of(operands), *batch.passed), (*values_of(own), *inner.passed)
    if node.custom is None:
        new = replace(node, operands=batch_operands, body=Graph(inputs, values_of(outputs)))
        return [*map(Operand, new.results, flags_of(outputs))]
    count = len(outputs)
    forward, residuals = _forward(node.custom, count, flags, batch, outputs_of)
    wanted = selected(flags, [b.has_derivative(v) for v in node.operands])
    custom = replace(
        node.custom,
        forward=forward,
        backward=_backward(node.custom, residuals, wanted, batch, outputs_of),
    )
    body = Graph(inputs, batch.flagged(outputs, [True] * count))
    return mapped(replace(node, operands=batch_operands, body=body, custom=custom).results)


def _forward(
    custom: CustomPullback,
    count: int,
    flags: Sequence[bool],
    batch: Batch,
    outputs_of: GraphRule,
) -> tuple[Graph, tuple[bool, ...]]:
    """The forward function, whose `count` results are all mapped, and a flag for each residual.

    Further residuals are the values that `Batch` passes to bodies.
    """
    inner = batch.inside()
    own = batch.inputs(custom.forward.inputs, flags)
    outputs = outputs_of(custom.forward, own, inner)
    residuals = outputs[count:]
    results = batch.flagged(outputs[:count], [True] * count)
    inputs = (*values_of(own), *inner.passed)
    return Graph(inputs, (*results, *values_of(residuals), *inner.passed)), flags_of(residuals)


def _backward(
    custom: CustomPullback,
    residuals: tuple[bool, ...],
    wanted: Sequence[bool],
    batch: Batch,
    outputs_of: GraphRule,
) -> Graph:
    """The backward function. `wanted` flags the cotangents that belong to mapped operands."""
    inner, count = batch.inside(), len(residuals)
    flags = (*residuals, *(True for _ in custom.backward.inputs[count:]))
    own = batch.inputs(custom.backward.inputs, flags)
    bars = inner.selected(outputs_of(custom.backward, own, inner))
    inputs = (*values_of(own[:count]), *inner.passed, *values_of(own[count:]))
    return Graph(inputs, tuple(map(_cotangent, map(batch.spread, bars), wanted)))


def _cotangent(bar: Value, is_mapped: bool) -> Value:
    return bar if is_mapped else b.sum_over(bar, [0])
