"""An array graph and its arguments -> results on their device, by a plan kept with the graph.

A graph is planned once; what depends on sizes (buffers, parameter words, workgroups) is worked
out once for each combination of sizes and kept, so that a call only hands recorded steps to the
runtime. Invariant: a call records everything into one submission and reads nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from shaderad.graph.explain import Memory, explain
from shaderad.graph.planning import plan
from shaderad.session.arrays import Array
from shaderad.session.plan_steps import stage_passes
from shaderad.session.prepared import Prepared, prepare

if TYPE_CHECKING:
    from shaderad.graph.plan import Plan, RunPass
    from shaderad.ir.arrays import Graph
    from shaderad.session.devices import Device
    from shaderad.session.kernel_steps import StagedPasses

PREPARED_LIMIT = 64
"""Combinations of sizes of one graph for which everything is kept ready."""

Key = tuple[tuple[tuple[str, int], ...], tuple[int, ...]]
"""Sizes by name, and where the inputs start in their buffers."""


class GraphRunner:
    """The plans of one device, for as long as their graphs live."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._plans: WeakKeyDictionary[Graph, Plan] = WeakKeyDictionary()
        self._passes: WeakKeyDictionary[RunPass, StagedPasses] = WeakKeyDictionary()
        self._prepared: WeakKeyDictionary[Graph, dict[Key, Prepared]] = WeakKeyDictionary()

    def run(
        self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The outputs of `graph`."""
        return self.prepared(graph, inputs, sizes).run(inputs)

    def prepared(self, graph: Graph, inputs: Sequence[Array], sizes: Mapping[str, int]) -> Prepared:
        """What runs `graph` at these sizes."""
        key = (tuple(sizes.items()), tuple(one.offset for one in inputs))
        known = self._prepared.setdefault(graph, {})
        found = known.get(key)
        if found is None:
            if len(known) >= PREPARED_LIMIT:
                known.pop(next(iter(known)))
            plan = self.plan(graph)
            found = known[key] = prepare(self._device, plan, sizes, key[1], self._staged)
        return found

    def plan(self, graph: Graph) -> Plan:
        found = self._plans.get(graph)
        if found is None:
            limit = self._device.capabilities.storage_buffer_limit
            found = self._plans[graph] = plan(graph, limit)
        return found

    def _staged(self, step: RunPass) -> StagedPasses:
        found = self._passes.get(step)
        if found is None:
            found = self._passes[step] = stage_passes(self._device, step)
        return found


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
