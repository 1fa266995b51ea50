"""The batching of whole graphs: the rules of their nodes, applied in order.

`batched` maps a graph to a graph, which can itself be differentiated and batched. Invariant: a node
without a mapped operand stays as it is, and is computed once for the whole batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.sizes import Size
from shaderad.ir.tables import check_rows
from shaderad.rules.batching import kernels, layout
from shaderad.rules.batching.convolutions import batch_convolution
from shaderad.rules.batching.loops import batch_loop, batch_while
from shaderad.rules.batching.operands import (
    Batch,
    NodeRule,
    Operand,
    flags_of,
    shared,
    values_of,
)
from shaderad.rules.batching.subgraphs import batch_subgraph


def batched(
    graph: Graph, is_mapped: Sequence[bool], extent: Size
) -> tuple[Graph, tuple[bool, ...]]:
    """The graph of a batch of `extent`, and a flag for each output that is mapped.

    In and out: those of `graph`, with the axis of the batch in front of what is mapped.
    """
    batch = Batch(extent)
    inputs = batch.inputs(graph.inputs, is_mapped)
    outputs = _outputs(graph, inputs, batch)
    return Graph(values_of(inputs), values_of(outputs)), flags_of(outputs)


def _outputs(graph: Graph, inputs: Sequence[Operand], batch: Batch) -> list[Operand]:
    """The outputs of `graph` for `inputs` of a batch."""
    new = dict(zip(graph.inputs, inputs, strict=True))

    def operands(values: Sequence[Value]) -> list[Operand]:
        return [new[v] if v in new else Operand(v, False) for v in values]

    for node in graph.nodes:
        results = _results(node, operands(node.operands), batch)
        new |= zip(node.results, results, strict=True)
    return operands(graph.outputs)


def _results(node: Node, operands: Sequence[Operand], batch: Batch) -> Sequence[Operand]:
    if not any(x.is_mapped for x in operands):
        return shared(arrays.with_operands(node, values_of(operands)).results)
    return _RULES[type(node)](node, operands, batch)


_RULES: dict[type[Node], NodeRule] = {
    **layout.RULES,
    arrays.Convolution: batch_convolution,
    arrays.KernelCall: kernels.batch_call,
    arrays.KernelPull: kernels.batch_pull,
    arrays.KernelPush: kernels.batch_push,
    arrays.Loop: partial(batch_loop, outputs_of=_outputs),
    arrays.WhileLoop: partial(batch_while, outputs_of=_outputs),
    arrays.Subgraph: partial(batch_subgraph, outputs_of=_outputs),
}
check_rows(_RULES, arrays.NODES, but=(arrays.Iota, arrays.SizeOf))  # They have no operands.
