"""The plan of a graph for all sizes, as whoever runs graphs sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shaderad.execute.kept_schedules import KernelPrograms
from shaderad.plan.call_kernels import Decision

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.execute.schedule import Schedule
    from shaderad.ir.arrays import Value

MakeSchedule = Callable[["Device", bool], tuple["Schedule", KernelPrograms]]
"""Schedules a plan on a device; true if its programs run by windows."""


@dataclass(frozen=True, slots=True)
class Known:
    """Sizes and numbers of a graph that runs, by which its kernels are chosen."""

    sizes: Mapping[str, int]
    numbers: Mapping[Value, int]
    """The numbers of the host that are whole."""
    host_inputs: tuple[int, ...]
    """The positions of inputs that are numbers of the host."""
    are_fixed: bool
    """True if sizes may be numbers in kernels."""
    has_groups: bool
    """False once the driver has refused the kernel of a loop."""


class PlannedSteps(Protocol):
    """The plan of a graph, for all sizes."""

    @property
    def deciding(self) -> frozenset[Value]:
        """The whole numbers on which its kernels depend."""
        ...

    def decided(self, known: Known) -> Decision[MakeSchedule]: ...
