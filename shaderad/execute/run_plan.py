"""An array graph and its arguments -> results on their device, by a plan kept with the graph.

A graph is planned and scheduled once; what depends on sizes (buffers, parameter words,
workgroups) is worked out once for each combination of sizes and kept, so that a call only hands
recorded steps to the runtime. Invariant: a call records everything into one submission and reads
nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shaderad.arrays.arrays import Array
from shaderad.device.devices import check_same
from shaderad.device.lines import AtUserLine
from shaderad.device.prebuilt import used_of_build
from shaderad.device.weak_keys import WeakKeys
from shaderad.diagnostics.progress import Work
from shaderad.execute.kernel_steps import StagedPasses
from shaderad.execute.plan_steps import lowered_passes
from shaderad.execute.plan_to_schedule import schedule
from shaderad.execute.prebuilt_graphs import PrebuiltGraph, PrebuiltPart, check_results
from shaderad.execute.scheduled import KernelPrograms, Scheduled
from shaderad.plan.explain import Memory, explain
from shaderad.plan.planning import plan

if TYPE_CHECKING:
    from shaderad.device.devices import Choice, Device
    from shaderad.execute.prepared import Prepared
    from shaderad.ir.arrays import Graph
    from shaderad.plan.steps import PassStep, Plan


class GraphPrograms(KernelPrograms):
    """The programs of one plan on a device."""

    def of_pass(self, step: PassStep, choice: Choice) -> StagedPasses:
        device, kernel = self.device, step.producer.kernel.reported_name
        with AtUserLine():
            passes = lowered_passes(step, device.variant(choice))
            numbers = [self.number(device.stage(one.lowered, kernel)) for one in passes.steps]
        return StagedPasses(passes, tuple(numbers), step.shape)


class GraphRunner:
    """The schedules of one device, for as long as their graphs live."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._scheduled: WeakKeys[Graph, Scheduled] = WeakKeys()

    def run(
        self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The outputs of `graph`."""
        inputs = [one.aligned() for one in inputs]
        if isinstance(graph, PrebuiltGraph):
            with used_of_build(graph.built.name, graph.built.folder):
                return self.prepared(graph, inputs, sizes).run(inputs)
        if isinstance(graph, PrebuiltPart):
            filled = graph.filled(inputs, sizes, self._device)
            found = self.run(graph.whole, filled, sizes)
            return tuple(found[k] for k in graph.chosen)
        return self.prepared(graph, inputs, sizes).run(inputs)

    def prepared(self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]) -> Prepared:
        """What runs `graph` at these sizes.

        Raises:
            DeviceError: SR0650, where an input lives on another device.
        """
        for one in inputs:
            check_same(one.device, self._device, "an argument")
        scheduled = self._scheduled.get(graph)
        if scheduled is None:
            scheduled = self._scheduled.setdefault(graph, self._newly_scheduled(graph))

        def checked_sizes() -> Mapping[str, int]:
            if isinstance(graph, PrebuiltGraph):
                check_results(scheduled.schedule, sizes)
            return sizes

        return scheduled.prepared(inputs, tuple(sizes.items()), checked_sizes)

    def plan(self, graph: Graph) -> Plan:
        """The plan of `graph` for what the device can bind."""
        return plan(graph, self._device.capabilities.storage_buffer_limit)

    def _newly_scheduled(self, graph: Graph) -> Scheduled:
        with Work("graph", "planning"):
            if isinstance(graph, PrebuiltGraph):
                built, stages = graph.built.scheduled(graph.mode, self._device)
                return Scheduled(self._device, built, stages)
            programs = GraphPrograms(self._device)
            planned = schedule(self.plan(graph), programs)
            return Scheduled(self._device, planned, programs.stages)


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
    """Which dispatches run `graph` at these sizes, and what they keep in memory."""
    runner = device.kept(GraphRunner)
    found = runner.prepared(graph, inputs, sizes)
    memory = Memory(found.live_bytes, sum(found.kept_bytes), sum(found.scratch_bytes))
    text = explain(runner.plan(graph), len(graph.nodes), sizes, memory)
    return f"{text}\ndispatches: {found.dispatch_count}, in one submission"
