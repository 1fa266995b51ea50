"""Graphs on a device: planned once, scheduled for what sizes decide, prepared at each size.

Invariant: graphs of kernel calls alone need none of what plans functions on arrays, so that a
program that only calls kernels does not wait for its import.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from shaderad.arrays.numbers import HostNumber
from shaderad.device.devices import check_same
from shaderad.device.stages import WeakKeys
from shaderad.execute.call_steps import add_call, call_step
from shaderad.execute.derivative_graphs import only_call, pulled
from shaderad.execute.kept_schedules import (
    PREPARED_LIMIT,
    KernelPrograms,
    LoopRefused,
    Scheduled,
)
from shaderad.execute.kernel_steps import KernelBinder, choice_with
from shaderad.execute.planned_kernels import PlannedKernel
from shaderad.execute.planned_steps import Known, MakeSchedule, PlannedSteps
from shaderad.execute.schedule import Places, number_of
from shaderad.ir import arrays, types
from shaderad.lower.bindings import Mode
from shaderad.plan.call_kernels import (
    CallKernel,
    Decision,
    call_decision,
    deciding_values,
    steps_of_calls,
)

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.compiler.launch_shapes import LaunchShape
    from shaderad.device.devices import Device
    from shaderad.execute.prepared import Place, Prepared
    from shaderad.execute.schedule import Schedule
    from shaderad.ir.arrays import Graph, Value

FIXED_LIMIT = 8
"""Combinations of sizes for which a graph has kernels of their own; others share one."""

_NOWHERE = cast("Place", (SimpleNamespace(byte_count=0), 0))
"""Where an input lies that no program reads from memory."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The plan of a graph that consists of kernel calls."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    steps: tuple[CallKernel, ...]
    shape: LaunchShape

    @property
    def deciding(self) -> frozenset[Value]:
        return deciding_values(self.steps)

    def decided(self, known: Known) -> Decision[MakeSchedule]:
        decisions = [
            call_decision(step, known.sizes, known.numbers, self.shape) for step in self.steps
        ]
        numbers = tuple(number for decision in decisions for number in decision.numbers)

        def make() -> MakeSchedule:
            steps = [decision.make() for decision in decisions]
            return partial(self._schedule, steps, known.host_inputs)

        return Decision(numbers, make)

    def _schedule(
        self,
        steps: Sequence[CallKernel],
        host_inputs: Sequence[int],
        device: Device,
        is_windowed: bool,
    ) -> tuple[Schedule, KernelPrograms]:
        programs = KernelPrograms(device, is_windowed=is_windowed)
        return programs.settled(partial(self._written, steps, host_inputs, programs)), programs

    def _written(
        self, steps: Sequence[CallKernel], host_inputs: Sequence[int], programs: KernelPrograms
    ) -> Schedule:
        places = Places(self.inputs, host_inputs)
        binder = KernelBinder(programs, places)
        for step in steps:
            for value in step.writes:
                places.make(value)
            add_call(binder, step)
        outputs = ((v, v.shape) for v in self.outputs)
        return places.schedule(outputs, programs.lowered, binder.instructions)


def planned_steps(graph: Graph, device: Device) -> PlannedSteps:
    """The plan of `graph`."""
    capabilities = device.capabilities
    steps = steps_of_calls(graph, capabilities.storage_buffer_limit - 1)
    if steps is not None:
        return CallPlan(graph.inputs, graph.outputs, steps, capabilities.launch_shape)
    from shaderad.execute.graph_plans import graph_plan

    return graph_plan(graph, capabilities)


@dataclass(eq=False, slots=True)
class _PlannedGraph:
    """A graph on a device, with its schedules."""

    steps: PlannedSteps | None
    """`None` for a graph that was built."""
    deciding: tuple[int, ...]
    """The inputs on whose values the kernels depend, if these are numbers of the host."""
    used: Callable[[], AbstractContextManager[None]] | None
    """Blames the build of a kernel for what goes wrong on a device."""
    by_choices: dict[Hashable, Scheduled] = field(default_factory=dict[Hashable, Scheduled])
    """By what sizes and numbers decide: see `plan/choices.py`."""
    by_sizes: dict[Hashable, Scheduled] = field(default_factory=dict[Hashable, Scheduled])
    has_groups: bool = True
    """False once the driver has refused the kernel of a loop."""
    is_foreseen: bool = False
    """True if the compiler knows of the gradient that is probably asked for."""


class GraphRunner:
    """The schedules of one device, for as long as their graphs live."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._planned: WeakKeys[Graph, _PlannedGraph] = WeakKeys()

    def run(
        self, graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The outputs of `graph`."""
        if graph.is_built:
            from shaderad.execute.prebuilt import run_built

            return run_built(graph, inputs, size_by_name, self._device, self._run)
        return self._run(graph, inputs, size_by_name)

    def _run(
        self, graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int]
    ) -> tuple[Array, ...]:
        planned = self._planned_of(graph)
        if planned.used is None:
            return self._prepared(planned, graph, inputs, size_by_name).run()
        with planned.used():
            return self._prepared(planned, graph, inputs, size_by_name).run()

    def prepared(
        self, graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int]
    ) -> PreparedRun:
        """The commands that run `graph` at these sizes, and where they read its inputs.

        Raises:
            DeviceError: SR0650, where an input lives on another device.
        """
        return self._prepared(self._planned_of(graph), graph, inputs, size_by_name)

    def _prepared(
        self,
        planned: _PlannedGraph,
        graph: Graph,
        inputs: Sequence[Array],
        size_by_name: Mapping[str, int],
    ) -> PreparedRun:
        device = self._device
        for x in inputs:
            if x.device is not device:
                check_same(x.device, device, "an argument")
        host_inputs = _host_inputs(inputs)
        key: Hashable = tuple(size_by_name.items())
        if host_inputs:
            words = tuple([_words(inputs[k]) for k in planned.deciding if k in host_inputs])
            key = (tuple(host_inputs), words, key)
        scheduled = planned.by_sizes.get(key)
        if scheduled is None:
            scheduled = self._scheduled_at(graph, planned, key, inputs, size_by_name)
        if scheduled.reads_all:
            places = [x.aligned() for x in inputs]
        else:
            read = scheduled.read_inputs
            places = [x.aligned() if k in read else _NOWHERE for k, x in enumerate(inputs)]
        commands = scheduled.prepared(places, key, size_by_name)
        numbers = {number_of(k): _words(inputs[k]) for k in host_inputs}
        return PreparedRun(commands, places, numbers)

    def foresee(
        self,
        graph: Graph,
        wanted: Sequence[bool],
        inputs: Sequence[Array],
        size_by_name: Mapping[str, int],
    ) -> None:
        """Starts to compile the pullback of a kernel call to its inputs `wanted`."""
        planned, call = self._planned_of(graph), only_call(graph)
        if planned.is_foreseen or call is None or call.kernel.is_built:
            return
        planned.is_foreseen = True
        stages = self._device.stages
        if stages.has(call.kernel, Mode.BACKWARD):
            return
        given = tuple(types.is_differentiable(v.element) for v in graph.outputs)
        backward = pulled(graph, tuple(wanted), given)
        known = self.known(graph, inputs, size_by_name)
        limits = self._device.capabilities
        for step in steps_of_calls(backward, limits.storage_buffer_limit) or ():
            decision = call_decision(step, known.sizes, known.numbers, limits.launch_shape)
            asked = call_step(decision.make())
            choice = choice_with(asked, Places(backward.inputs, known.host_inputs))
            if choice.mode is Mode.BACKWARD:
                stages.foresee(call.kernel, choice)

    def compile(
        self, graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int]
    ) -> None:
        """Compiles what runs `graph` at these sizes; inputs of derivatives may be left out."""
        planned = self._planned_of(graph)
        if planned.steps is not None:
            self._chosen(planned, planned.steps, self.known(graph, inputs, size_by_name))

    def _planned_of(self, graph: Graph) -> _PlannedGraph:
        planned = self._planned.get(graph)
        return planned or self._planned.setdefault(graph, self._newly_planned(graph))

    def _newly_planned(self, graph: Graph) -> _PlannedGraph:
        if graph.is_built:
            from shaderad.execute.prebuilt import scheduled_on

            return _PlannedGraph(None, (), None, {(): scheduled_on(graph, self._device)})
        steps = planned_steps(graph, self._device)
        deciding = steps.deciding
        positions = tuple(k for k, v in enumerate(graph.inputs) if v in deciding)
        return _PlannedGraph(steps, positions, _used_in(graph))

    def known(
        self, graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int]
    ) -> Known:
        """All that decides which kernels run `graph`."""
        planned = self._planned_of(graph)
        host_inputs = tuple(_host_inputs(inputs))
        numbers = {graph.inputs[k]: _whole(inputs[k]) for k in planned.deciding if k in host_inputs}
        are_fixed = len(planned.by_choices) < FIXED_LIMIT
        return Known(size_by_name, numbers, host_inputs, are_fixed, planned.has_groups)

    def _scheduled_at(
        self,
        graph: Graph,
        planned: _PlannedGraph,
        key: Hashable,
        inputs: Sequence[Array],
        size_by_name: Mapping[str, int],
    ) -> Scheduled:
        if planned.steps is None:
            from shaderad.execute.prebuilt import check_results

            scheduled = planned.by_choices[()]
            check_results(scheduled.schedule, size_by_name)
        else:
            scheduled = self._chosen(
                planned, planned.steps, self.known(graph, inputs, size_by_name)
            )
        if len(planned.by_sizes) >= PREPARED_LIMIT:
            planned.by_sizes.clear()
        planned.by_sizes[key] = scheduled
        return scheduled

    def _chosen(self, planned: _PlannedGraph, steps: PlannedSteps, known: Known) -> Scheduled:
        """The schedule at these sizes. If the driver refuses a loop, its steps are dispatches."""
        # With and without fixed sizes, equal numbers may mean different kernels.
        decision = steps.decided(known)
        choices = (known.are_fixed, known.host_inputs, *decision.numbers)
        if choices not in planned.by_choices:
            make = decision.make()
            windowed = partial(_scheduled, make, self._device, is_windowed=True)
            try:
                planned.by_choices[choices] = _scheduled(make, self._device, windowed)
            except LoopRefused:
                planned.has_groups = False
                return self._chosen(planned, steps, replace(known, has_groups=False))
        return planned.by_choices[choices]


def _scheduled(
    make: MakeSchedule,
    device: Device,
    make_windowed: Callable[[], Scheduled] | None = None,
    *,
    is_windowed: bool = False,
) -> Scheduled:
    made, programs = make(device, is_windowed)
    return Scheduled(device, made, programs.stages, make_windowed)


@dataclass(slots=True)
class PreparedRun:
    """The commands of a graph, and what they read."""

    commands: Prepared
    places: list[Place]
    numbers: Mapping[str, bytes]

    def run(self) -> tuple[Array, ...]:
        """The outputs."""
        return self.commands.run(self.places, self.numbers)


def evaluate(
    graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int], device: Device
) -> tuple[Array, ...]:
    """Runs `graph` on `device`.

    Args:
        graph: What to compute; planned at its first run.
        inputs: Arrays of the element types and shapes of its inputs, on `device`.
        size_by_name: What its symbolic sizes are.
        device: Where.
    """
    return device.kept(GraphRunner).run(graph, inputs, size_by_name)


def _used_in(graph: Graph) -> Callable[[], AbstractContextManager[None]] | None:
    """Blames the folder of a built kernel that `graph` calls, if there is one."""
    for node in graph.nodes:
        call = node.call if isinstance(node, arrays.KernelPull | arrays.KernelPush) else node
        if isinstance(call, arrays.KernelCall) and isinstance(call.kernel, PlannedKernel):
            return call.kernel.used
    return None


def _host_inputs(inputs: Sequence[Array]) -> list[int]:
    """The positions of numbers of the host."""
    return [k for k, x in enumerate(inputs) if type(x) is HostNumber]


def _words(number: Array) -> bytes:
    assert isinstance(number, HostNumber)
    return number.words


def _whole(number: Array) -> int:
    """A whole number of the host."""
    is_signed = number.element == types.INT
    return int.from_bytes(_words(number), "little", signed=is_signed)
