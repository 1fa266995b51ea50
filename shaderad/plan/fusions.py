"""Graph -> the values that get memory, and the nodes that steps compute on the way to them.

Elementwise nodes are fused onto reductions, scans, and sums over tiles: they take the place of the
results in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.types import byte_count
from shaderad.plan.clusters import cluster
from shaderad.plan.epilogues import followers, fused_onto_passes
from shaderad.plan.kernels import PlanKernel
from shaderad.plan.nest.sums.kernels import has_tiles
from shaderad.plan.reductions import Reduction
from shaderad.plan.steps import Epilogue
from shaderad.plan.storage import stored_values

TILES_WRITE = 2
"""Buffers that a sum over tiles writes: results, and sums of parts."""


class Fusions:
    """The decisions about one graph.

    Args:
        graph: The computation.
        read_limit: The values that a kernel may read.
        buffer_limit: The buffers that it may bind.
    """

    def __init__(self, graph: Graph, read_limit: int, buffer_limit: int) -> None:
        self._graph, self._buffer_limit = graph, buffer_limit
        self.fused = fused_onto_passes(graph)
        """Results of reductions and scans -> the last nodes that are fused onto them."""
        self._stored = self._with_fused(stored_values(graph, read_limit))
        self.read_after: dict[Node, tuple[Value, ...]] = {}
        """Sums over tiles -> the values that their epilogues read besides."""
        self._fuse_onto_tiles()
        self.total_of = {node.result: total for total, node in self.fused.items()}
        self._stored = self._with_fused(self._stored)

    def is_stored(self, value: Value) -> bool:
        """True if a value has memory."""
        return value.producer is None or value in self._stored

    def cluster(self, values: Sequence[Value], inside: frozenset[Value]) -> PlanKernel:
        """The kernel of `values`, which computes stored values `inside` instead of reading them."""
        return cluster(values, lambda v: self.is_stored(v) and v not in inside)

    def cluster_on(self, total: Value, last: Value) -> PlanKernel:
        """The kernel that computes `last`, which is fused onto `total`, from `total` in memory."""
        kept = (self._stored | {total}) - {last}
        return cluster([last], lambda v: v.producer is None or v in kept)

    def epilogue(self, node: Reduction | arrays.Scan) -> Epilogue | None:
        """The work that is fused onto a reduction or scan."""
        fused = self.fused.get(node.result)
        return None if fused is None else Epilogue((fused.result,))

    def _with_fused(self, stored: frozenset[Value]) -> frozenset[Value]:
        """`stored`, with epilogues in place of the results that they read."""
        return (stored - self.fused.keys()) | {node.result for node in self.fused.values()}

    def _fuse_onto_tiles(self) -> None:
        """Lets elementwise nodes that follow a sum over tiles, such as a bias, an activation or a
        mask, take its place in memory.
        """
        sums = (
            node
            for node in self._graph.nodes
            if isinstance(node, arrays.Reduce) and node.result not in self.fused
            if has_tiles(node, self.is_stored)
        )
        for node, nodes in followers(self._graph, sums, self._stored, self._fits_tiles).items():
            inside = {node.result, *(link.result for link in nodes)}
            others = (v for link in nodes for v in link.operands if v not in inside)
            self.fused[node.result] = nodes[-1]
            self.read_after[node] = tuple(others)

    def _fits_tiles(self, node: Node, last: arrays.Elementwise) -> bool:
        """True if the tiles of a sum can store `last` in its place."""
        if byte_count(last.result.element) > byte_count(node.results[0].element):
            return False
        elements = self.cluster(node.operands, frozenset())
        work = self.cluster([last.result], frozenset([last.result]))
        reads = {v for _, v in (*work.reads, *elements.reads)} - {node.results[0]}
        return work.bounds == "unchecked" and len(reads) + TILES_WRITE <= self._buffer_limit
