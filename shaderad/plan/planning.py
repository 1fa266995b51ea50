"""Graph -> plan: stored values are grouped into kernels, in the order in which they run.

A value's level is the number of steps that must run before the one that computes it. Stored
values of one shape and level are computed by one kernel, which evaluates common parts once and adds
to arrays by index; a sum of elements that read the same arrays is fused into one pass with it.
Invariant: a step reads only values that steps of lower levels write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from shaderad.compiler.launch_shapes import PORTABLE, LaunchShape
from shaderad.ir import arrays, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.sizes import Shape
from shaderad.plan import scatters
from shaderad.plan.elements import base_of
from shaderad.plan.epilogues import with_epilogues
from shaderad.plan.fusions import Fusions
from shaderad.plan.invariants import hoisted
from shaderad.plan.joined_calls import (
    call_key,
    extremes_of,
    in_order,
    joined_calls,
    needs_primal,
)
from shaderad.plan.joined_reductions import joined_reductions
from shaderad.plan.nest.chains import with_chains
from shaderad.plan.nest.sums.kernels import has_column_sum
from shaderad.plan.reductions import ReduceFields, Reduction, has_neutral
from shaderad.plan.scatters import by_index, is_sum, joined_scatters, threads_for
from shaderad.plan.simplify import (
    exact_products,
    narrowed,
    simplified,
    turned_reductions,
    without_unread_results,
)
from shaderad.plan.sorts import merges
from shaderad.plan.sorts.digit_kernels import digit_counts, sorted_by_digit
from shaderad.plan.sorts.digits import DigitCounts, SortedByDigit
from shaderad.plan.steps import (
    CallKernel,
    Plan,
    RunPass,
    Step,
)
from shaderad.plan.storage import is_fused_node
from shaderad.plan.work_steps import PASS_BUFFERS, WorkSteps

PORTABLE_BUFFER_LIMIT = 8
"""Storage buffers that a kernel can bind on every WebGPU device."""
UNREAD_BUFFERS = 2
"""Buffers that a kernel binds besides those that it reads: its reports and one output."""


def plan(
    graph: Graph,
    buffer_limit: int = PORTABLE_BUFFER_LIMIT,
    shape: LaunchShape = PORTABLE,
    depth: int = 0,
) -> Plan:
    """The plan of `graph`, for all sizes.

    Args:
        graph: The computation.
        buffer_limit: The number of buffers that a kernel should bind.
        shape: How work is laid out over threads.
        depth: The number of loops around the graph.
    """
    graph = hoisted(simplified(narrowed(graph, buffer_limit - UNREAD_BUFFERS)))
    graph = exact_products(without_unread_results(graph))
    graph = joined_scatters(turned_reductions(graph), buffer_limit - UNREAD_BUFFERS)
    graph = joined_reductions(graph, buffer_limit - 1 - PASS_BUFFERS)
    return _Planner(graph, buffer_limit, shape, depth).run()


@dataclass(frozen=True, slots=True)
class _Level:
    """The lowest level of a step that can compute a value.

    `own`: at the index of the thread; `anywhere`: at any index.
    """

    own: int
    anywhere: int


_AT_ONCE = _Level(0, 0)

_Work = list[Value] | Node | RunPass
"""The stored values of one kernel, sums of scatters among them, a node that is neither fused nor a
scatter, or a pass that stores such values."""


class _Planner:
    def __init__(self, graph: Graph, buffer_limit: int, shape: LaunchShape, depth: int) -> None:
        self._graph = graph
        self._shape = shape
        self._depth = depth
        # One buffer is left for reports.
        self._buffer_limit = buffer_limit - 1
        self._fusions = Fusions(graph, buffer_limit - UNREAD_BUFFERS, self._buffer_limit)
        self._is_stored = self._fusions.is_stored

        def plan_of(body: Graph) -> Plan:
            return plan(body, buffer_limit, shape, depth + 1)

        self._written = WorkSteps(self._fusions, self._buffer_limit, shape, plan_of, depth)
        self._levels: dict[Value, _Level] = {}
        self._effect_level = 0
        """The level of the latest call that prints or checks; those that follow run after it."""
        self._groups: dict[tuple[Shape, int], list[Value]] = {}
        self._ordered: list[tuple[int, _Work]] = []
        self._calls: dict[Hashable, arrays.KernelCall] = {}
        self._joined = joined_calls(graph, self._buffer_limit)
        self._call_by_pull = {pull: call for call, pull in self._joined.items()}

    def run(self) -> Plan:
        for node in in_order(self._graph, self._joined):
            if node.results[0] in self._fusions.total_of:
                self._place_epilogue(node)
            elif is_fused_node(node):
                self._place_fused(node, node.result)
            elif isinstance(node, arrays.ScatterAdd):
                self._place_scatter(node)
            elif node not in self._fusions.read_after:
                self._place_step(node)
        self._part_sums()
        self._fuse_reductions_with_groups()
        self._join_column_sums()
        self._ordered.sort(key=lambda entry: entry[0])
        outputs = tuple((base_of(v), v.shape) for v in self._graph.outputs)
        steps = [step for _, work in self._ordered for step in self._steps(work)]
        stored = [v for v, _ in outputs]
        limit = self._buffer_limit - PASS_BUFFERS + 1
        steps = with_epilogues(steps, stored, self._is_stored, limit)
        if self._shape.rows.is_together:
            steps = with_chains(steps, stored, self._buffer_limit)
        return Plan(inputs=self._graph.inputs, outputs=outputs, steps=steps)

    def _place_epilogue(self, node: Node) -> None:
        total = self._fusions.total_of[node.results[0]]
        assert total.producer is not None
        if total.producer in self._fusions.read_after:
            self._place_step(total.producer, self._fusions.read_after[total.producer])
        self._levels[node.results[0]] = self._level(total)

    def _place_step(self, node: Node, more: Iterable[Value] = ()) -> None:
        """Places the step of `node`, which also reads `more`."""
        needed = (*node.operands, *more)
        call = self._call_by_pull.get(node, node)
        if isinstance(call, arrays.KernelCall):
            self._calls.setdefault(call_key(call, call.operands), call)
        if isinstance(node, arrays.KernelPull | arrays.KernelPush) and needs_primal(node):
            # The thread that attained a minimum is found by its value; only the primal prints.
            needed = (*needed, *self._primal_of(node).results)
        level = max((self._level(v).anywhere for v in needed), default=0)
        if any(map(arrays.is_effect, node.results)):
            level = self._effect_level = max(level, self._effect_level)
        self._ordered.append((level, node))
        after = _Level(level + 1, level + 1)
        self._levels.update(dict.fromkeys((*node.results, *self._stored_with(node)), after))

    def _stored_with(self, node: Node) -> tuple[Value, ...]:
        """The results of the call that a pullback stores."""
        call = self._call_by_pull.get(node)
        return () if call is None else call.results

    def _primal_of(self, node: arrays.KernelPull | arrays.KernelPush) -> arrays.KernelCall:
        """The call that `node` differentiates; added to the plan if the graph does not have it."""
        operands = node.operands[: len(node.call.operands)]
        key = call_key(node.call, operands)
        if key not in self._calls:
            self._place_step(replace(node.call, operands=operands))
        return self._calls[key]

    def _place_fused(self, node: Node, value: Value) -> None:
        levels = [self._level(v) for v in node.operands]
        own = anywhere = max((level.anywhere for level in levels), default=0)
        if isinstance(node, arrays.Elementwise):
            own = max((level.own for level in levels), default=0)
        if self._is_stored(value):
            self._join(value, own)
            anywhere = own + 1
        self._levels[value] = _Level(own, anywhere)

    def _place_scatter(self, node: arrays.ScatterAdd) -> None:
        """Lets the kernel that stores elements for each summand add the summands."""
        base, *others = node.operands
        threads, levels = threads_for(node.result), [self._level(base).anywhere]
        for v in others:
            level = self._level(v)
            levels.append(level.own if v.shape == threads else level.anywhere)
        level = max(levels)
        self._join(node.result, level)
        self._levels[node.result] = _Level(level + 1, level + 1)

    def _join(self, value: Value, level: int) -> None:
        key = (threads_for(value), level)
        if key not in self._groups:
            self._groups[key] = []
            self._ordered.append((level, self._groups[key]))
        self._groups[key].append(value)

    def _part_sums(self) -> None:
        """Puts the sums of scatters after the stored elements of their kernel, by index arrays.

        If both read no array in common, they are two kernels: threads may store the elements by
        four, or a pass may.
        """
        ordered: list[tuple[int, _Work]] = []
        for level, work in self._ordered:
            ordered.append((level, work))
            if not isinstance(work, list):
                continue
            elements = [v for v in work if not is_sum(v)]
            sums = by_index([v for v in work if is_sum(v)])
            if elements and sums and self._reads(elements).isdisjoint(self._reads(sums, elements)):
                work[:] = elements
                ordered.append((level, sums))
            else:
                work[:] = [*elements, *sums]
        self._ordered = ordered

    def _reads(self, values: Sequence[Value], beside: Sequence[Value] = ()) -> set[Value]:
        """The arrays from which a kernel computes `values`, and stored ones `beside` on the way."""
        step = self._written.kernel(values, frozenset((*values, *beside)))
        return {v for _, v in step.work.reads if v.shape}

    def _fuse_reductions_with_groups(self) -> None:
        """Replaces each group and a reduction that reads the same arrays by one pass."""
        for node in [work for _, work in self._ordered if isinstance(work, Reduction)]:
            key = self._group_beside(node.operands[0])
            both = None if key is None else self._beside(node, self._groups[key])
            if key is None or both is None:
                continue
            group = self._groups.pop(key)
            self._ordered = [
                (level, both if work is group else work)
                for level, work in self._ordered
                if work is not node
            ]

    def _join_column_sums(self) -> None:
        """Lets a sum over tiles compute a sum along its columns of what it reads.

        The gradients of a bias and of the weights before it are such. In loops they stay apart:
        one workgroup runs these.
        """
        places: defaultdict[int, list[arrays.Reduce]] = defaultdict(list)
        for level, work in self._ordered:
            if isinstance(work, arrays.Reduce) and not self._depth:
                places[level].append(work)
        taken: set[Node] = set()
        for nodes in places.values():
            for node in nodes:
                columns = (
                    other
                    for other in nodes
                    if other not in taken and other.result not in self._fusions.fused
                    if len(node.operands) == 1 and has_column_sum(node, other, self._is_stored)
                )
                other = next(columns, None)
                if other is not None:
                    self._written.column_sums[node] = other
                    taken.add(other)
        self._ordered = [
            (level, work)
            for level, work in self._ordered
            if not isinstance(work, Node) or work not in taken
        ]

    def _group_beside(self, x: Value) -> tuple[Shape, int] | None:
        """The key of a group that a pass over `x` can store: one of as many elements.

        Values that a thread computes at its own index are there in groups of their shape alone;
        kernels of other shapes read them from memory. `x` of one axis may be a reshape of several.
        """
        base, level = base_of(x), self._level(x).anywhere
        keys = [(x.shape, level)]
        if len(x.shape) == 1:
            count = sizes.product(x.shape)
            keys += (k for k in self._groups if k[1] == level and sizes.product(k[0]) == count)
        if base.shape == x.shape or len(x.shape) == 1:
            keys.insert(0, (base.shape, self._level(base).own))
        return next((key for key in keys if key in self._groups), None)

    def _beside(self, node: Reduction, group: list[Value]) -> RunPass | None:
        """The pass of the reduction `node` that also stores `group`, element by element.

        `None` if they read no array in common, or would bind too many.
        """
        x, *init = node.operands
        # If the order of elements counts, a thread takes a run of them: stores would lie far apart.
        if (
            init
            or not has_neutral(node)
            or node in self._fusions.read_after
            or any(map(is_sum, group))
        ):
            return None
        seen = [b.reshape(v, x.shape) for v in group]
        elements, stored, both = (
            self._fusions.cluster(values, frozenset(group)) for values in ([x], seen, [x, *seen])
        )
        read = {v for _, v in elements.reads if v.shape}
        if read.isdisjoint(v for _, v in stored.reads):
            return None
        if len(both.reads) + len(group) + PASS_BUFFERS > self._buffer_limit:
            return None
        (name, _), *others = both.writes
        named = ((other, v) for (other, _), v in zip(others, group, strict=True))
        return RunPass(
            node, replace(both, writes=((name, x), *named)), None, self._fusions.epilogue(node)
        )

    def _level(self, value: Value) -> _Level:
        return self._levels.get(value, _AT_ONCE)

    def _steps(self, work: _Work) -> Sequence[Step]:
        match work:
            case RunPass():
                return [work]
            case list():
                return self._written.kernels(work)
            case arrays.Loop() | arrays.WhileLoop():
                return self._written.of_loop(work)
            case arrays.Reduce() | ReduceFields() | arrays.Scan():
                return self._written.of_pass(work)
            case arrays.ArgSort():
                return [self._written.of_sort(work)]
            case arrays.KernelCall() | arrays.KernelPull() | arrays.KernelPush():
                return [self._call(work)]
            case _:
                return [_STEPS[type(work)](work, self._is_stored)]

    def _call(self, node: arrays.KernelCall | arrays.KernelPull | arrays.KernelPush) -> CallKernel:
        reads = tuple(map(base_of, node.operands))
        if isinstance(node, arrays.KernelCall):
            return CallKernel(node, reads)
        names = extremes_of(node)
        if not names:
            return CallKernel(node, reads, stored=self._stored_with(node))
        call = self._primal_of(node)
        by_name = dict(zip((n for n, _ in call.written), call.results, strict=False))
        return CallKernel(node, (*reads, *(by_name[n] for n in names)), names)


_STEPS: dict[type[Node], Callable[..., Step]] = {
    DigitCounts: digit_counts,
    SortedByDigit: sorted_by_digit,
    merges.SortedBlocks: merges.sorted_blocks,
    merges.MergedRuns: merges.merged_runs,
    arrays.LastWriter: scatters.last_writer,
}
