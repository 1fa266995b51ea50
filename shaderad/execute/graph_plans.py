"""Graphs of functions on arrays: planned, and chosen by sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from shaderad.diagnostics.progress import Work
from shaderad.execute.kept_schedules import KernelPrograms
from shaderad.execute.plan_to_schedule import schedule
from shaderad.execute.planned_steps import Known, MakeSchedule, PlannedSteps
from shaderad.plan.call_kernels import CallKernel, Decision, deciding_values
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.execute.schedule import Schedule
    from shaderad.ir.arrays import Graph, Value
    from shaderad.plan.steps import Plan
    from shaderad.runtime import Capabilities


@dataclass(frozen=True)
class GraphPlan(PlannedSteps):
    """The plan of a graph, for all sizes."""

    plan: Plan
    capabilities: Capabilities

    @property
    def deciding(self) -> frozenset[Value]:
        return deciding_values([step for step in self.plan.steps if isinstance(step, CallKernel)])

    def decided(self, known: Known) -> Decision[MakeSchedule]:
        choices = choices_of(known, self.capabilities)
        decision = choices.decided(self.plan)

        def make() -> MakeSchedule:
            chosen, by_windows = decision.make(), replace(choices, is_windowed=True)

            def of(device: Device, is_windowed: bool) -> tuple[Schedule, KernelPrograms]:
                plan = by_windows.chosen(self.plan) if is_windowed else chosen
                return _schedule(plan, known.host_inputs, device, is_windowed)

            return of

        return Decision(decision.numbers, make)


def graph_plan(graph: Graph, capabilities: Capabilities) -> GraphPlan:
    """The plan of `graph` on a device with these capabilities."""
    limit, shape = capabilities.storage_buffer_limit, capabilities.launch_shape
    with Work("graph", "planning"):
        return GraphPlan(plan(graph, limit, shape), capabilities)


def choices_of(known: Known, capabilities: Capabilities) -> PlanChoices:
    """The known sizes and numbers of a graph, as its plan asks for them."""
    return PlanChoices(
        known.sizes,
        capabilities.group_bytes_limit,
        capabilities.launch_shape,
        known.are_fixed,
        known.has_groups,
        known.numbers,
        capabilities.storage_buffer_limit,
    )


def _schedule(
    plan: Plan, host_inputs: Sequence[int], device: Device, is_windowed: bool
) -> tuple[Schedule, KernelPrograms]:
    programs = KernelPrograms(device, is_windowed=is_windowed)
    with Work("graph", "planning"):
        return programs.settled(partial(schedule, plan, programs, host_inputs)), programs
