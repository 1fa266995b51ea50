"""The text of ``graph.explain(...)``: dispatches at known sizes, and their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shaderad.execute.commands import pipelines_of
from shaderad.execute.graph_plans import choices_of, graph_plan
from shaderad.execute.runner import GraphRunner
from shaderad.plan.explain import Memory, explain
from shaderad.plan.steps import RepeatWhile

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.device.devices import Device
    from shaderad.ir.arrays import Graph


def explained(
    graph: Graph, inputs: Sequence[Array], size_by_name: Mapping[str, int], device: Device
) -> str:
    """The dispatches that run `graph` at these sizes, and the memory that they keep."""
    runner = device.kept(GraphRunner)
    commands = runner.prepared(graph, inputs, size_by_name).commands
    memory = Memory(commands.live_bytes, sum(commands.kept_bytes), sum(commands.scratch_bytes))
    known = runner.known(graph, inputs, size_by_name)
    whole = graph_plan(graph, device.capabilities).plan
    planned = choices_of(known, device.capabilities).chosen(whole)
    text = explain(planned, len(graph.nodes), size_by_name, memory)
    program_count = len(set(pipelines_of(commands.commands)))
    loops = any(isinstance(step, RepeatWhile) for step in planned.steps)
    rest = "and more in each iteration of a while loop" if loops else "in one submission"
    dispatches = f"dispatches: {commands.dispatch_count}, {rest}"
    return f"{text}\n{dispatches}\nprograms: {program_count}"
