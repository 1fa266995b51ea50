"""A schedule on one device: what runs it at known sizes is prepared once and kept.

Invariant: a run records everything into one submission and reads nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shaderad.execute.prepared import Prepared, prepare

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.device.devices import Choice, Device, Stage
    from shaderad.execute.schedule import Schedule
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Lowered

PREPARED_LIMIT = 64
"""Combinations of sizes of one schedule for which everything is kept ready."""


class KernelPrograms:
    """Programs on a device, numbered in the order in which they were first asked for."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.stages: list[Stage] = []
        self._number_by_stage: dict[int, int] = {}

    @property
    def lowered(self) -> list[Lowered]:
        return [stage.lowered for stage in self.stages]

    def of_kernel(self, kernel: Kernel, choice: Choice) -> Sequence[int]:
        """The dispatches of a mode of `kernel`, in order."""
        return [self.number(stage) for stage in self.device.stages(kernel, choice)]

    def number(self, stage: Stage) -> int:
        number = self._number_by_stage.setdefault(id(stage), len(self.stages))
        if number == len(self.stages):
            self.stages.append(stage)
        return number


@dataclass(eq=False, slots=True)
class Scheduled:
    """A schedule on a device, for all sizes."""

    device: Device
    schedule: Schedule
    stages: Sequence[Stage]
    """Its programs."""
    _prepared: dict[Hashable, Prepared] = field(default_factory=dict[Hashable, Prepared])

    def prepared(
        self, inputs: Sequence[Array], key: Hashable, sizes: Callable[[], Mapping[str, int]]
    ) -> Prepared:
        """What runs it at `inputs` and the sizes that `key` stands for, which `sizes` names."""
        shifted = tuple(k for k in self.schedule.aligned_inputs if inputs[k].offset)
        prepared = self._prepared.get((key, shifted))
        if prepared is None:
            if len(self._prepared) >= PREPARED_LIMIT:
                self._prepared.pop(next(iter(self._prepared)), None)
            prepared = prepare(self.device, self.schedule, self.stages, sizes(), shifted)
            self._prepared[key, shifted] = prepared
        return prepared
