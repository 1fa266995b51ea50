"""Sizes and a device -> the kernels of sums over tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.ir import sizes
from shaderad.plan.call_kernels import Decision
from shaderad.plan.nest.limits import NestLimits, bits
from shaderad.plan.nest.row_choices import RowChoices
from shaderad.plan.steps import RunTiles, Step


@dataclass(frozen=True, slots=True)
class SumChoices:
    """Chooses kernels of sums by what is known."""

    limits: NestLimits

    def of_tiles(self, step: RunTiles) -> Decision[Step]:
        """The decision about a sum over tiles, or of columns."""
        known, sums = self.limits, step.sums
        if step.rows is not None and not known.is_windowed:
            shared = RowChoices(known).of_shared_rows(step, step.rows)
            if shared is not None:
                return shared
        if not self._has_tile(step):
            return Decision((0,), lambda: step)
        names = {name for size in sums.sizes for name in sizes.symbols(size)} & known.known.keys()
        numbers = tuple((name, known.known[name]) for name in sorted(names))
        tile = sums.tile_at(numbers, known.group_bytes)
        writer = sums.writer(tile)
        chosen = known.fitting(writer.loads)
        if not known.binds_few(sums.binding_count(tile, chosen)):
            chosen = ()
        stored = writer.store_multiples
        by_four = stored is not None and known.are_multiples(stored)
        return Decision(
            (*tile.numbers, bits(chosen), by_four),
            lambda: replace(step, chosen=sums.kernels(tile, chosen, by_four)),
        )

    def _has_tile(self, step: RunTiles) -> bool:
        """True if sizes are known, and there are rows beside which columns can be summed."""
        work = step.sums.work
        if not all(map(self.limits.is_known, (*work.rows, *work.summed))):
            return False
        return work.column_sum is None or self.limits.value(sizes.product(work.rows)) > 0
