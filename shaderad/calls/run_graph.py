"""A graph at its operands: run at once, when somebody needs it, or as nodes of a trace around it.

Invariant: what a graph computes has derivatives wherever its operands have: a tape records the
graph as one step, a trace its nodes. Results that wait are computed once: alone when one is looked
at, or with the next derivative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import Values, When, trace_of
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.execute.derivative_graphs import kernels_of, pulled, pushed, silenced, summed_pull
from shaderad.execute.runner import GraphRunner, evaluate
from shaderad.ir import sizes
from shaderad.ir.arrays import KernelCall
from shaderad.ir.building import reshape
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode
from shaderad.rules.arrays.subgraphs import instantiate
from shaderad.trace.traced import GraphTrace, TracedArray, current_trace

if TYPE_CHECKING:
    from shaderad.calls.call import BoundCall
    from shaderad.device.devices import Device
    from shaderad.execute.derivative_graphs import Flags
    from shaderad.ir.arrays import Graph, Value
    from shaderad.ir.nodes import Kernel


def run_graph(
    graph: Graph,
    operands: Sequence[Array],
    size_by_name: Mapping[str, int],
    device: Device | None,
    *,
    zero_wins: bool = False,
) -> list[Array]:
    """The outputs of `graph` at its operands.

    Args:
        graph: What to compute.
        operands: One array an input.
        size_by_name: What its symbolic sizes are.
        device: Where it runs; `None` while a function is traced.
        zero_wins: True if zero cotangents suppress NaN in its pullback.
    """
    trace = current_trace()
    if trace is not None:
        return _in_trace(trace, graph, operands)
    assert device is not None
    tape = trace_of(operands)
    if tape is None:
        return list(evaluate(graph, operands, size_by_name, device))
    run = GraphStep(graph, list(operands), size_by_name, device, When.NOW, zero_wins=zero_wins)
    run.start(is_now=True)
    tape.record(run)
    return run.results


def _in_trace(trace: GraphTrace, graph: Graph, operands: Sequence[Array]) -> list[Array]:
    """The nodes of `graph` as a part of the trace."""
    if graph.is_built:
        raise error("SR0733", user_span(), graph=cast("Any", graph).built.name)
    # Sizes that are equal in this call alone must also look equal: rules compare them.
    pairs = zip(operands, graph.inputs, strict=True)
    values = instantiate(graph, [reshape(trace.value_of(x), v.shape) for x, v in pairs])
    return [TracedArray(trace, v) for v in values]


@dataclass(eq=False, slots=True)
class GraphStep:
    """A graph at its operands, whose results wait; a step of a tape."""

    graph: Graph
    operands: list[Array]
    size_by_name: Mapping[str, int]
    device: Device
    when: When
    zero_wins: bool = False
    expected: Flags = ()
    """The operands by which gradients are probably asked for next; empty if nobody knows."""
    results: list[Array] = field(init=False)
    """Set by `start`."""

    def _pending(self, v: Value) -> Array:
        shape = tuple([sizes.evaluate(extent, self.size_by_name) for extent in v.shape])
        return Array(self.device, v.element, shape, None, pending=self.run)

    @property
    def kernels(self) -> Sequence[Kernel]:
        return kernels_of(self.graph)

    @property
    def _again(self) -> Graph:
        """The graph for derivatives: it prints when its results are computed."""
        return silenced(self.graph)

    @property
    def is_waiting(self) -> bool:
        """True until its results are computed."""
        return any(result.is_pending for result in self.results)

    def start(self, *, is_now: bool = False) -> None:
        """Computes the results if `is_now`, or if they cannot wait."""
        if is_now or (self.when is not When.NEVER and does_more(self.graph)):
            self.results = list(self._evaluated())
        else:
            self.results = [self._pending(v) for v in self.graph.outputs]

    def run(self) -> None:
        """Computes the results alone, if they wait."""
        if self.is_waiting:
            self._fill_in(self._evaluated())

    def _evaluated(self) -> Sequence[Array]:
        if any(self.expected):
            runner = self.device.kept(GraphRunner)
            runner.foresee(self.graph, self.expected, self.operands, self.size_by_name)
        return evaluate(self.graph, self.operands, self.size_by_name, self.device)

    # -- derivatives ------------------------------------------------------------------------

    def is_active(self, k: int) -> bool:
        """True if operand `k` has a gradient."""
        return is_differentiable(self.graph.inputs[k].element)

    def gradients(
        self, wanted: Flags, bars: Sequence[Array | None], totals: Sequence[Array] = ()
    ) -> list[Array]:
        """The gradients of the operands `wanted`.

        Args:
            wanted: Flags for operands that hold floats.
            bars: The cotangent of each result; `None` is zero.
            totals: Arrays to which a kernel call adds its gradients in place.
        """
        has_bar = tuple([bar is not None for bar in bars])
        cotangents = [bar for bar in bars if bar is not None]
        if totals:
            graph = summed_pull(self._again, wanted, has_bar)
            return self._ran(graph, [*cotangents, *totals])
        is_joined = self._joins_results()
        graph = pulled(
            self._again, wanted, has_bar, with_outputs=is_joined, zero_wins=self.zero_wins
        )
        return self._with_results(self._ran(graph, cotangents), is_joined=is_joined)

    def tangents(self, dots: Sequence[Array | None]) -> list[Array | None]:
        """The tangent of each result, for those of the operands; `None` for results without."""
        is_joined = self._joins_results()
        has_dot = tuple([dot is not None for dot in dots])
        graph = pushed(self._again, has_dot, with_outputs=is_joined)
        computed = self._ran(graph, [dot for dot in dots if dot is not None])
        moved = iter(self._with_results(computed, is_joined=is_joined))
        return [next(moved) if is_differentiable(v.element) else None for v in self.graph.outputs]

    def compile(self, mode: Mode, wanted: Flags) -> None:
        """Compiles the graph, or its derivative by the operands `wanted`, before it runs."""
        graph = self.graph
        if mode is Mode.BACKWARD:
            graph = pulled(
                graph, wanted, tuple([is_differentiable(v.element) for v in graph.outputs])
            )
        elif mode is Mode.FORWARD:
            graph = pushed(graph, wanted)
        self.device.kept(GraphRunner).compile(graph, self.operands, self.size_by_name)

    def _joins_results(self) -> bool:
        """True if the next derivative computes the results, too."""
        return self.when is not When.IF_NEEDED and self.is_waiting

    def _ran(self, graph: Graph, more: Sequence[Array]) -> list[Array]:
        return run_graph(graph, [*self.operands, *more], self.size_by_name, self.device)

    def _with_results(self, computed: list[Array], *, is_joined: bool) -> list[Array]:
        if not is_joined:
            return computed
        count = len(self.results)
        self._fill_in(computed[:count])
        return computed[count:]

    def _fill_in(self, computed: Sequence[Array]) -> None:
        for result, content in zip(self.results, computed, strict=True):
            result.fill_in(*content.aligned())

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        """Pulls back the cotangents of `results`, as a step of a tape."""
        active = tuple([id(x) in wanted and is_differentiable(x.element) for x in self.operands])
        bars = [cotangents.of(result) for result in self.results]
        if not any(active) or all(bar is None for bar in bars):
            return
        gradients = iter(self.gradients(active, bars))
        for operand, flag in zip(self.operands, active, strict=True):
            if flag:
                cotangents.add(operand, next(gradients))

    def push(self, tangents: Values) -> None:
        """Sets the tangents of `results`, as a step of a tape."""
        dots = self.tangents([tangents.of(x) for x in self.operands])
        for result, dot in zip(self.results, dots, strict=True):
            if dot is not None:
                tangents.add(result, dot)


def run_call(bound: BoundCall) -> list[Array]:
    """The results of a kernel call, which a tape records."""
    graph, sizes_ = bound.form.graph, bound.form.size_by_name
    tape = trace_of(bound.operands)
    if tape is None:
        return list(evaluate(graph, bound.operands, sizes_, bound.device))
    run = GraphStep(graph, bound.operands, sizes_, bound.device, tape.when)
    if tape.when is not When.NOW:
        run.expected = tuple(
            [run.is_active(k) and x.trace is tape for k, x in enumerate(bound.operands)]
        )
    run.start(is_now=runs_now(tape.when))
    tape.record(run)
    return run.results


def runs_now(when: When) -> bool:
    """True if a kernel call runs at once, so that the device works while Python goes on."""
    return when is When.NOW or when is When.BEFORE_PULLBACK


def does_more(graph: Graph) -> bool:
    """True if a graph prints or checks what it computes, or has no result."""
    calls = (node for node in graph.nodes if isinstance(node, KernelCall))
    is_checked = any(call.checks or not call.written for call in calls)
    return is_checked or silenced(graph) is not graph
