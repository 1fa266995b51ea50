"""Work that has its place in a plan -> its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays
from shaderad.ir.arrays import Node, Value
from shaderad.plan.clusters import cluster, kernel_name
from shaderad.plan.elements import base_of
from shaderad.plan.fusions import Fusions
from shaderad.plan.nest.chains import without_chains
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.loops.in_group import group_loop
from shaderad.plan.nest.loops.in_thread import loop_kernels
from shaderad.plan.nest.row_work import RowWork
from shaderad.plan.nest.rows import Rows
from shaderad.plan.nest.sums.kernels import Sums, sums_of
from shaderad.plan.nest.transposed import TransposedElements
from shaderad.plan.reductions import Reduction
from shaderad.plan.repeats import PlanOf, repeat, repeat_while
from shaderad.plan.scatters import is_sum, sums_and_elements
from shaderad.plan.sorts.steps import run_sort
from shaderad.plan.steps import Epilogue, RunKernel, RunPass, RunSort, RunTiles, Step

PASS_BUFFERS = 3
"""Buffers that a pass binds besides those that it reads."""


class WorkSteps:
    """The steps of one graph.

    Args:
        fusions: The values that have memory, and the nodes that are fused.
        buffer_limit: The number of buffers that a kernel should bind.
        shape: How work is laid out over threads.
        plan_of: Plans the body of a loop.
        depth: The number of loops around the graph.
    """

    def __init__(
        self,
        fusions: Fusions,
        buffer_limit: int,
        shape: LaunchShape,
        plan_of: PlanOf,
        depth: int,
    ) -> None:
        self._fusions, self._is_stored = fusions, fusions.is_stored
        self._buffer_limit, self._shape = buffer_limit, shape
        self._plan_of, self._depth = plan_of, depth
        self.column_sums: dict[Node, arrays.Reduce] = {}
        """Sums over tiles -> sums along their columns that their kernels compute, too."""

    def kernels(self, values: Sequence[Value]) -> list[Step]:
        """Kernels that compute `values`, each as many of them as its buffers allow."""
        step = self.kernel(values, frozenset(values))
        low, high = 1, len(values)
        if high <= low or self._binds_few(step):
            return [step]
        while high - low > 1:
            middle = (low + high) // 2
            first = self.kernel(values[:middle], frozenset(values[:middle]))
            low, high = (middle, high) if self._binds_few(first) else (low, middle)
        # The rest reads what it needs of the first: elements come in the order of nodes.
        first = self.kernel(values[:low], frozenset(values[:low]))
        return [first, *self.kernels(values[low:])]

    def kernel(self, values: Sequence[Value], inside: frozenset[Value]) -> RunKernel:
        """The kernel of `values`, which computes stored values `inside` instead of reading them."""
        if any(map(is_sum, values)):
            return sums_and_elements(values, lambda v: self._is_stored(v) and v not in inside)
        work = self._fusions.cluster(values, inside)
        by_four, transposed = FourElements(work, values), TransposedElements(work, values)
        return RunKernel(work, by_four=by_four, transposed=transposed)

    def _binds_few(self, step: RunKernel | RunTiles) -> bool:
        reads = step.work.reads if isinstance(step, RunKernel) else step.reads
        written = len(step.writes) + isinstance(step, RunTiles)
        return len(reads) + written <= self._buffer_limit

    def of_pass(self, node: Reduction | arrays.Scan) -> list[Step]:
        """A pass that computes its elements, or a kernel that stores them and a pass over these.

        The latter where the former would bind too many buffers.
        """
        fused = self._fusions.fused.get(node.result)
        if isinstance(node, arrays.Reduce):
            result = node.result if fused is None else fused.result
            other = self.column_sums.pop(node, None)
            tiles = self._tiles(node, result, other)
            if tiles is not None and self._binds_few(tiles):
                return [tiles]
            if other is not None:
                return [*self.of_pass(other), *self.of_pass(node)]
        if fused is None or node not in self._fusions.read_after:
            return self._pass_alone(node, self._fusions.epilogue(node))
        # Values that are stored since then take the tiles away.
        work = self._fusions.cluster_on(node.result, fused.result)
        return [*self._pass_alone(node, None), RunKernel(work)]

    def _tiles(
        self, node: arrays.Reduce, result: Value, other: arrays.Reduce | None
    ) -> RunTiles | None:
        """The sum `node` over tiles that store `result`, and `other`, a sum along their columns."""
        work = sums_of(node, result, self._is_stored, other)
        if work is None:
            return None
        rows = None
        if not work.is_shared:
            name, reads = kernel_name(node.operands[0]), frozenset(work.inputs)
            of_rows = RowWork(name, (node,), (result,), ((), ()), frozenset(), reads)
            rows = cache(partial(Rows, of_rows))
        return RunTiles(Sums(work, self._shape), rows)

    def _pass_alone(self, node: Reduction | arrays.Scan, epilogue: Epilogue | None) -> list[Step]:
        x, *init = node.operands
        first = base_of(init[0]) if init else None
        work = cluster([x], self._is_stored)
        if len(work.reads) + len(init) + PASS_BUFFERS <= self._buffer_limit:
            return [RunPass(node, work, first, epilogue)]
        stored = cluster([x], lambda v: v is x or self._is_stored(v))
        return [RunKernel(work), RunPass(node, stored, first, epilogue)]

    def of_sort(self, node: arrays.ArgSort) -> RunSort:
        """The step that sorts rows."""
        return run_sort(node, self._plan_of)

    def of_loop(self, node: arrays.Loop | arrays.WhileLoop) -> Sequence[Step]:
        """Kernels that contain the loop, or else one step that repeats the plan of the body."""
        kernels = loop_kernels(node, self._is_stored)
        if kernels is not None and all(map(self._binds_few, kernels)):
            return kernels
        if isinstance(node, arrays.Loop):
            step = repeat(node, self._plan_of, self._depth)
            apart = replace(step, body=without_chains(step.body))
            return [replace(step, group=group_loop(apart, self._is_stored, self._buffer_limit))]
        return [repeat_while(node, self._plan_of)]
