"""Sizes and a device -> the kernels of scans of rows; see also `row_choices.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.plan.call_kernels import Decision
from shaderad.plan.nest.limits import NestLimits, bits, is_more
from shaderad.plan.nest.memory import shared_bytes
from shaderad.plan.nest.row_work import SHORTEST_SHARED, is_large
from shaderad.plan.nest.scans import ScanChoice, Scans
from shaderad.plan.steps import CopyValues, RunPass, RunRows, Step

ScansOf = Callable[[LaunchShape], Scans]
"""Gives the kernels of a scan for a shape."""


@dataclass(frozen=True, slots=True)
class ScanChoices:
    """Chooses the kernels of scans by what is known."""

    limits: NestLimits

    def of_scan(self, step: RunPass, scans: ScansOf) -> Decision[Step]:
        """The decision about one scan."""
        if not all(map(self.limits.is_known, step.shape)):
            return Decision((0,), lambda: self._open(step, scans))
        if not all(map(self.limits.value, step.shape)):
            return Decision((-1,), lambda: CopyValues((), step.writes))
        choice = self._shared(scans) or self._choice(scans(self.limits.shape_alone))
        numbers = (-4, *choice.sharing.numbers, bits(choice.chosen), *choice.of_parts)
        return Decision(numbers, lambda: RunRows(step, choice.sharing, *choice.make()))

    def _shared(self, scans_of: ScansOf) -> ScanChoice | None:
        """The kernels whose threads share rows, if they can."""
        # The words of another window may not be bound.
        looks_back = self.limits.shape.looks_back and not self.limits.is_windowed
        scans = scans_of(replace(self.limits.shape, looks_back=looks_back))
        if not self.limits.is_together or is_large(scans.total):
            return None
        choice = self._choice(scans)
        return choice if self._has_memory(scans, choice.slots) else None

    def _has_memory(self, scans: Scans, slots: int) -> bool:
        return shared_bytes(scans.total) * slots <= self.limits.group_bytes

    def _choice(self, scans: Scans) -> ScanChoice:
        chosen = self.limits.fitting(scans.loads)
        if not self.limits.binds_few(scans.binding_count(chosen)):
            chosen = ()
        return scans.choice(self.limits.known, chosen)

    def _open(self, step: RunPass, scans_of: ScansOf) -> Step:
        """Kernels for all sizes; these decide which of them run."""
        scans = alone = scans_of(self.limits.shape_alone)
        length, shortest = step.shape[-1], alone.longest_whole + 1
        shared = self._shared_at_all_sizes(scans_of)
        if shared is not None:
            scans, shortest = shared, SHORTEST_SHARED
        is_long = is_more(length, scans.longest_whole)
        is_shared = is_more(length, shortest - 1)
        is_short = sizes.subtract(sizes.minimum(1, length), is_shared)
        works, _ = alone.whole(replace(alone.sharing(None, 1), is_chosen=is_short))
        last = scans.sharing(None, 1)
        if shared is not None:
            is_whole = sizes.subtract(is_shared, is_long)
            works += shared.whole(replace(last, is_chosen=is_whole))[0]
        own = scans.sharing_of_parts(1, is_repeated=True)
        cut, between = scans.cut(replace(own, is_chosen=is_long), replace(last, is_chosen=is_long))
        return RunRows(step, None, (*works, *cut), between)

    def _shared_at_all_sizes(self, scans_of: ScansOf) -> Scans | None:
        """The kernels whose threads share rows, if they can at all sizes."""
        scans = scans_of(self.limits.shape)
        if not self.limits.is_together or is_large(scans.total):
            return None
        sharings = scans.sharing(None, 1), scans.sharing_of_parts(1, is_repeated=True)
        return scans if self._has_memory(scans, max(s.slots for s in sharings)) else None
