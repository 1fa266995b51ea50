"""Sizes and a device -> how kernels of elements load and store."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.plan.call_kernels import Decision
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.limits import NestLimits, bits
from shaderad.plan.nest.transposed import TILE, TransposedElements, has_whole_turns
from shaderad.plan.steps import RunKernel, Step


@dataclass(frozen=True, slots=True)
class ElementChoices:
    """Chooses kernels of elements by what is known."""

    limits: NestLimits

    def of_elements(self, step: RunKernel, by_four: FourElements) -> Decision[Step]:
        """The decision about one kernel."""
        known = self.limits
        step, transposed = replace(step, by_four=None, transposed=None), step.transposed
        if transposed is not None and self._has_tiles(transposed):
            threads = known.shape.workgroup
            tiled = replace(step, tile=(TILE, TILE))
            return Decision((-4,), lambda: replace(tiled, work=transposed.write(threads)))
        is_whole = known.are_multiples([by_four.extent])
        loads = by_four.loads if is_whole else None
        if loads is None:
            return Decision((0,), lambda: step)
        chosen = [*map(known.are_multiples, loads)]
        if not known.binds_few(by_four.binding_count(chosen)):
            chosen = [False] * len(chosen)
        return Decision(
            (1 + 2 * bits(chosen),),
            lambda: replace(step, work=by_four.write(*chosen)),
        )

    def _has_tiles(self, transposed: TransposedElements) -> bool:
        """True if tiles in group memory bring elements into the order in which they are stored."""
        known = self.limits
        threads = known.shape.workgroup
        if not known.shape.is_parallel or not has_whole_turns(threads) or transposed.axis is None:
            return False
        extents = transposed.extents
        is_large = all(known.is_known(size) and known.value(size) >= TILE for size in extents)
        return is_large and transposed.group_bytes <= known.group_bytes
