"""A graph at its operands: run at once, or made part of the graph that is being traced.

Invariant: what a graph computes has derivatives wherever its operands have: a tape records the
graph as one step, a trace its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from shaderad.arrays.arrays import Array, zeros
from shaderad.arrays.tape import Values, trace_of
from shaderad.device.devices import check_same
from shaderad.device.lines import AtUserLine, user_span
from shaderad.device.prebuilt import used_of_build
from shaderad.device.stages import WeakKeys
from shaderad.diagnostics import error
from shaderad.diagnostics.progress import Work
from shaderad.execute.commands import pipelines_of
from shaderad.execute.kept_schedules import (
    PREPARED_LIMIT,
    KernelPrograms,
    LoopRefused,
    Scheduled,
)
from shaderad.execute.kernel_steps import StagedPasses
from shaderad.execute.plan_to_schedule import lowered_passes, schedule
from shaderad.execute.prebuilt import PrebuiltGraph, PrebuiltPart, check_results
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph, KernelCall, Value
from shaderad.ir.nodes import Kernel
from shaderad.ir.prints import silent_graph
from shaderad.ir.types import is_differentiable
from shaderad.plan.choices import PlanChoices
from shaderad.plan.explain import Memory, explain
from shaderad.plan.planning import plan
from shaderad.plan.steps import RepeatWhile
from shaderad.rules.arrays import LinearisedGraph
from shaderad.rules.arrays import push as pushed_through
from shaderad.rules.arrays.building import or_zeros, reshape
from shaderad.rules.arrays.subgraphs import instantiate, kept
from shaderad.trace.traced import TracedArray, current_trace

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.device.stages import Choice
    from shaderad.execute.prepared import Place, Prepared
    from shaderad.plan.steps import Plan, RunPass


Flags = tuple[bool, ...]
FIXED_LIMIT = 8
"""Combinations of sizes for which a graph has kernels of their own; others share one."""


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
        if isinstance(graph, PrebuiltGraph):
            raise error("SR0733", user_span(), graph=graph.built.name)
        # Sizes that are equal in this call alone must also look equal: rules compare them.
        pairs = zip(operands, graph.inputs, strict=True)
        found = instantiate(graph, [reshape(trace.value_of(x), v.shape) for x, v in pairs])
        return [TracedArray(trace, v) for v in found]
    assert device is not None
    results = list(evaluate(graph, operands, size_by_name, device))
    tape = trace_of(operands)
    if tape is not None:
        step = GraphStep(graph, list(operands), results, dict(size_by_name), device, zero_wins)
        tape.record(step)
    return results


@lru_cache(maxsize=256)
def pulled(
    graph: Graph,
    wanted: Flags,
    given: Flags,
    *,
    with_outputs: bool = False,
    zero_wins: bool = False,
) -> Graph:
    """Gradients of the inputs `wanted`, for cotangents of the outputs `given`.

    Takes the inputs of `graph`, then the cotangents. `zero_wins`: True if zeros among them suppress
    NaN.
    """
    if isinstance(graph, PrebuiltGraph):
        return graph.pulled(wanted, given, with_outputs=with_outputs)
    linear = LinearisedGraph(graph, wanted)
    bars = [Value(v.type) if one else None for v, one in zip(graph.outputs, given, strict=True)]
    found = linear.pull(bars, graph.outputs if zero_wins else ())
    gradients = [or_zeros(bar, v)
                 for bar, v, one in zip(found, graph.inputs, wanted, strict=True)
                 if one]  # fmt: skip
    outputs = linear.outputs if with_outputs else ()
    return Graph((*graph.inputs, *kept(bars)), (*outputs, *gradients))


@lru_cache(maxsize=256)
def pushed(
    graph: Graph, given: Flags, *, with_outputs: bool = False, of_all: bool = False
) -> Graph:
    """Tangents of the outputs that hold floats, for tangents of the inputs `given`.

    Takes the inputs of `graph`, then the tangents.
    """
    if isinstance(graph, PrebuiltGraph):
        return graph.pushed(given, with_outputs=with_outputs)
    dots = [Value(v.type) if one else None for v, one in zip(graph.inputs, given, strict=True)]
    found = pushed_through(graph, dots)
    moved = [or_zeros(dot, v) for dot, v in zip(found, graph.outputs, strict=True)
             if of_all or is_differentiable(v.element)]  # fmt: skip
    outputs = graph.outputs if with_outputs else ()
    return Graph((*graph.inputs, *kept(dots)), (*outputs, *moved))


def kernels_of(graph: Graph) -> Sequence[Kernel]:
    """The kernels that a graph calls."""
    return [node.kernel for node in graph.nodes if isinstance(node, KernelCall)]


@dataclass(eq=False)
class GraphStep:
    """A graph that ran while a function was transformed."""

    graph: Graph
    operands: list[Array]
    results: list[Array]
    size_by_name: dict[str, int]
    device: Device
    zero_wins: bool = False

    @property
    def kernels(self) -> Sequence[Kernel]:
        return kernels_of(self.graph)

    @property
    def _again(self) -> Graph:
        """The graph for derivatives: it ran, and printed, when it was recorded."""
        return silent_graph(self.graph)

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        active = tuple(id(x) in wanted and is_differentiable(x.element) for x in self.operands)
        bars = [cotangents.of(one) for one in self.results]
        if not any(active) or all(bar is None for bar in bars):
            return
        is_given = tuple(bar is not None for bar in bars)
        graph = pulled(self._again, active, is_given, zero_wins=self.zero_wins)
        given = [*self.operands, *(bar for bar in bars if bar is not None)]
        found = iter(evaluate(graph, given, self.size_by_name, self.device))
        for operand, is_active in zip(self.operands, active, strict=True):
            if is_active:
                cotangents.add(operand, next(found))

    def push(self, tangents: Values) -> None:
        dots = [tangents.of(x) for x in self.operands]
        graph = pushed(self._again, tuple(dot is not None for dot in dots))
        given = [*self.operands, *(dot for dot in dots if dot is not None)]
        moved = [one for one in self.results if is_differentiable(one.element)]
        for one, dot in zip(
            moved, evaluate(graph, given, self.size_by_name, self.device), strict=True
        ):
            tangents.add(one, dot)


class GraphPrograms(KernelPrograms):
    """The programs of one plan on a device."""

    def of_pass(self, step: RunPass, choice: Choice) -> StagedPasses:
        stages, kernel = self.device.stages, step.producer.kernel.reported_name
        with AtUserLine():
            passes = lowered_passes(step, stages.variant(self.windowed(choice)))
            numbers = [
                self.number(stages.begun(one.lowered, kernel, is_generated=True))
                for one in passes.steps
            ]
        return StagedPasses(passes, tuple(numbers), step.shape)


@dataclass(eq=False, slots=True)
class _PlannedGraph:
    """A graph on a device, with its schedules."""

    plan: Plan | None
    """Its plan for all sizes; `None` for a graph that was built."""
    by_choices: dict[tuple[int, ...], Scheduled] = field(
        default_factory=dict[tuple[int, ...], "Scheduled"]
    )
    """By what sizes decide: see `plan/choices.py`."""
    by_sizes: dict[Hashable, Scheduled] = field(default_factory=dict[Hashable, "Scheduled"])
    has_groups: bool = True
    """False once the driver has refused the kernel of a loop."""


class GraphRunner:
    """The schedules of one device, for as long as their graphs live."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._planned: WeakKeys[Graph, _PlannedGraph] = WeakKeys()

    def run(
        self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The outputs of `graph`."""
        if isinstance(graph, PrebuiltGraph):
            with used_of_build(graph.built.name, graph.built.folder):
                return self._run(graph, inputs, sizes)
        if isinstance(graph, PrebuiltPart):
            found = self.run(graph.whole, self._filled(graph, inputs, sizes), sizes)
            return tuple(found[k] for k in graph.chosen)
        return self._run(graph, inputs, sizes)

    def _run(
        self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        prepared, places = self.prepared(graph, inputs, sizes)
        return prepared.run(places)

    def _filled(
        self, part: PrebuiltPart, inputs: Sequence[Array], known: Mapping[str, int]
    ) -> list[Array]:
        """The inputs of the whole graph: `inputs`, and zeros for the others."""
        remaining = iter(inputs)

        def zero(value: Value) -> Array:
            shape = tuple(sizes.evaluate(extent, known) for extent in value.shape)
            return zeros(self._device, value.element, shape)

        pairs = zip(part.whole.inputs, part.is_given, strict=True)
        return [next(remaining) if is_given else zero(v) for v, is_given in pairs]

    def prepared(
        self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]
    ) -> tuple[Prepared, list[Place]]:
        """The commands that run `graph` at these sizes, and where they read its inputs.

        Raises:
            DeviceError: SR0650, where an input lives on another device.
        """
        for one in inputs:
            if one.device is not self._device:
                check_same(one.device, self._device, "an argument")
        key = tuple(sizes.items())
        planned = self._planned.get(graph)
        if planned is None:
            planned = self._planned.setdefault(graph, self._newly_planned(graph))
        scheduled = planned.by_sizes.get(key) or self._scheduled_at(planned, sizes, key)

        def checked_sizes() -> Mapping[str, int]:
            if isinstance(graph, PrebuiltGraph):
                check_results(scheduled.schedule, sizes)
            return sizes

        places = [one.aligned() for one in inputs]
        return scheduled.prepared(places, key, checked_sizes), places

    def plan(self, graph: Graph, sizes: Mapping[str, int]) -> Plan:
        """The plan of `graph` at these sizes, for what the device can bind."""
        planned = self._planned.get(graph)
        has_groups = planned is None or planned.has_groups
        return self._choices(sizes, has_groups=has_groups).chosen(self._plan(graph))

    def _choices(
        self, sizes: Mapping[str, int], *, are_fixed: bool = True, has_groups: bool = True
    ) -> PlanChoices:
        capabilities = self._device.capabilities
        limit, shape = capabilities.group_bytes_limit, capabilities.launch_shape
        return PlanChoices(sizes, limit, shape, are_fixed, has_groups)

    def _plan(self, graph: Graph) -> Plan:
        capabilities = self._device.capabilities
        return plan(graph, capabilities.storage_buffer_limit, capabilities.launch_shape)

    def _newly_planned(self, graph: Graph) -> _PlannedGraph:
        with Work("graph", "planning"):
            if isinstance(graph, PrebuiltGraph):
                built, stages = graph.built.planned(graph.mode, self._device)
                return _PlannedGraph(None, {(): Scheduled(self._device, built.schedule, stages)})
            return _PlannedGraph(self._plan(graph))

    def _scheduled_at(
        self, planned: _PlannedGraph, sizes: Mapping[str, int], key: Hashable
    ) -> Scheduled:
        if len(planned.by_sizes) >= PREPARED_LIMIT:
            planned.by_sizes.clear()
        scheduled = planned.by_sizes[key] = self._scheduled_by(planned, sizes)
        return scheduled

    def _scheduled_by(self, planned: _PlannedGraph, sizes: Mapping[str, int]) -> Scheduled:
        """The schedule at these sizes; with a dispatch a step where the driver refuses a loop."""
        if planned.plan is None:
            return planned.by_choices[()]
        are_fixed = len(planned.by_choices) < FIXED_LIMIT
        at_sizes = self._choices(sizes, are_fixed=are_fixed, has_groups=planned.has_groups)
        # With and without fixed sizes, equal numbers may mean different kernels.
        decision = at_sizes.decided(planned.plan)
        choices = (are_fixed, *decision.numbers)
        if choices not in planned.by_choices:
            try:
                planned.by_choices[choices] = self._newly_scheduled(decision.make())
            except LoopRefused:
                planned.has_groups = False
                return self._scheduled_by(planned, sizes)
        return planned.by_choices[choices]

    def _newly_scheduled(self, plan: Plan) -> Scheduled:
        with Work("graph", "planning"):
            by_windows = partial(self._schedule_of, plan, is_windowed=True)
            return self._schedule_of(plan, make_windowed=by_windows)

    def _schedule_of(
        self,
        plan: Plan,
        *,
        is_windowed: bool = False,
        make_windowed: Callable[[], Scheduled] | None = None,
    ) -> Scheduled:
        programs = GraphPrograms(self._device, is_windowed=is_windowed)
        made = programs.settled(lambda: schedule(plan, programs))
        return Scheduled(self._device, made, programs.stages, make_windowed)


def evaluate(
    graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int], device: Device
) -> tuple[Array, ...]:
    """Runs `graph` on `device`.

    Args:
        graph: What to compute; planned at its first run.
        inputs: Arrays of the element types and shapes of its inputs, on `device`.
        sizes: What its symbolic sizes are, by name.
        device: Where.
    """
    return device.kept(GraphRunner).run(graph, inputs, sizes)


def explained(
    graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int], device: Device
) -> str:
    """The dispatches that run `graph` at these sizes, and the memory that they keep."""
    runner = device.kept(GraphRunner)
    found, _ = runner.prepared(graph, inputs, sizes)
    memory = Memory(found.live_bytes, sum(found.kept_bytes), sum(found.scratch_bytes))
    planned = runner.plan(graph, sizes)
    text = explain(planned, len(graph.nodes), sizes, memory)
    program_count = len(set(pipelines_of(found.commands)))
    loops = any(isinstance(step, RepeatWhile) for step in planned.steps)
    rest = "and more in each iteration of a while loop" if loops else "in one submission"
    dispatches = f"dispatches: {found.dispatch_count}, {rest}"
    return f"{text}\n{dispatches}\nprograms: {program_count}"
