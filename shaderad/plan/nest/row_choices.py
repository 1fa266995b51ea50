"""Sizes and a device -> the kernels of reductions of rows.

A team of threads shares a row, or each thread takes rows, or parts of them, by itself: where
threads of a workgroup do not run in parallel, where group memory has no room for totals, and for
short rows of sizes that are open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.plan.call_kernels import Decision
from shaderad.plan.kernels import WIDTH, PlanKernel
from shaderad.plan.nest.limits import NestLimits, bits, is_more
from shaderad.plan.nest.memory import shared_bytes
from shaderad.plan.nest.row_work import (
    SHORTEST_SHARED,
    RowParts,
    RowSharing,
    is_large,
    sharing_across,
    sharing_alone,
    sharing_along,
    sharing_of_all,
)
from shaderad.plan.nest.rows import Rows
from shaderad.plan.steps import RunChain, RunPass, RunRows, RunTiles, Step

RowsOf = Callable[[LaunchShape], Rows]
"""Gives the kernels of rows for a shape."""
RowKernels = tuple[tuple[PlanKernel, ...], tuple[Value, ...]]
"""Kernels of rows, in order, and the values that they leave to each other."""


@dataclass(frozen=True, slots=True)
class RowChoices:
    """Chooses the kernels of rows by what is known."""

    limits: NestLimits

    def of_reduction(self, step: RunPass, rows: RowsOf) -> Decision[Step]:
        """The decision about one reduction."""
        if not all(map(self.limits.is_known, rows(self.limits.shape).work.places)):
            return Decision((0,), lambda: self._open(step, rows))
        return self.of_shared_rows(step, rows) or self._alone(step, rows(self.limits.shape_alone))

    # -- teams -------------------------------------------------------------------------------

    def of_shared_rows(self, step: RunPass | RunTiles, rows_of: RowsOf) -> Decision[Step] | None:
        """The decision about one reduction, if threads can share its rows."""
        rows = rows_of(self.limits.shape)
        shared = self._sharing(rows)
        if shared is None:
            return None
        whole, chosen = shared
        length = self.limits.value(rows.work.length)
        parts = rows.parts(whole.team.span * whole.rows)
        part_count, part_length = map(self.limits.value, (parts.count, parts.length))
        longest_whole = self.limits.shape.rows.longest_whole
        if part_count == 1 or length <= (WIDTH * part_length if whole.is_across else longest_whole):
            if not self._fits(rows, chosen, whole):
                return None
            return self._of_whole(step, rows, whole, chosen)
        own = self._of_parts(rows, part_length, whole)
        last = sharing_along(part_count, 1, rows.shape, rows.work)
        if own is None or last is None or not self._fits(rows, chosen, own, last):
            return None
        return self._of_cut(step, rows, own, last, parts, chosen)

    def _of_whole(
        self, step: RunPass | RunTiles, rows: Rows, whole: RowSharing, chosen: Sequence[bool]
    ) -> Decision[Step]:
        work = partial(rows.whole, whole, *chosen)
        numbers = (*whole.numbers, bits(chosen), 0)
        return Decision(numbers, lambda: RunRows(step, whole, (work(),)))

    def _of_cut(
        self,
        step: RunPass | RunTiles,
        rows: Rows,
        own: RowSharing,
        last: RowSharing,
        parts: RowParts,
        chosen: Sequence[bool] = (),
    ) -> Decision[Step]:
        def make() -> Step:
            works = rows.cut(own, parts, *chosen), rows.added(last, parts)
            return RunRows(step, own, works, (parts.totals,))

        return Decision((*own.numbers, bits(chosen), *last.numbers), make)

    def _sharing(self, rows: Rows) -> tuple[RowSharing, Sequence[bool]] | None:
        """How threads share rows that are not empty, and which loads are by four."""
        known, work = self.limits, rows.work
        if not self.limits.is_together or any(map(is_large, work.totals)):
            return None
        if not all(known.is_known(size) and known.value(size) for size in work.places):
            return None
        chosen, length = known.fitting(rows.loads), known.value(work.length)
        sharing = None
        if rows.is_across and not known.is_windowed:
            columns = known.value(work.places[-2])
            chosen = chosen if columns % WIDTH == 0 else ()
            sharing = sharing_across(length, columns, WIDTH if chosen else 1, rows.shape, work)
        if sharing is None:
            chosen = chosen if length % WIDTH == 0 and not rows.is_across else ()
            sharing = sharing_along(length, WIDTH if chosen else 1, rows.shape, work)
        return None if sharing is None else (sharing, chosen)

    def _of_parts(self, rows: Rows, length: int, whole: RowSharing) -> RowSharing | None:
        """How threads share parts of this length of rows that they would share in another way."""
        if not whole.is_across:
            return sharing_along(length, whole.width, rows.shape, rows.work)
        columns = self.limits.value(rows.work.places[-2])
        return sharing_across(length, columns, whole.rows, rows.shape, rows.work)

    def _fits(self, rows: Rows, chosen: Sequence[bool], *sharings: RowSharing) -> bool:
        """True if kernels of rows do not need more buffers or group memory than there is."""
        total_bytes = sum(map(shared_bytes, rows.work.totals))
        slots = max(sharing.team.slots * sharing.rows for sharing in sharings)
        has_memory = total_bytes * slots <= self.limits.group_bytes
        return has_memory and self.limits.binds_few(rows.binding_count(chosen))

    def of_chain(self, step: RunChain) -> Decision[tuple[Step, ...]] | None:
        """The decision about rows that one kernel computes, if they fit in registers."""
        rows = step.rows(self.limits.shape)
        shared = self._sharing(rows)
        if shared is None or not self._fits(rows, shared[1], shared[0]):
            return None
        sharing, chosen = shared
        work = partial(rows.whole, sharing, *chosen)
        return Decision(
            (*sharing.numbers, bits(chosen)),
            lambda: (RunRows(step, sharing, (work(),)),),
        )

    # -- single threads ----------------------------------------------------------------------

    def _alone(self, step: RunPass, rows: Rows) -> Decision[Step]:
        """The decision about rows, or parts, that each thread takes by itself."""
        known, cut = self.limits, rows.shape.rows
        row_count, length = map(known.value, (rows.work.row_count, rows.work.length))
        allowed = cut.chunk_limit // max(1, row_count)
        if length <= rows.longest_whole or allowed < 2:
            chosen = known.fitting(rows.loads) if length % WIDTH == 0 else ()
            if not known.binds_few(rows.binding_count(chosen)):
                chosen = ()
            width = WIDTH if chosen else 1
            whole = sharing_alone(length, rows.blocks, rows.shape, width=width)
            return self._of_whole(step, rows, whole, chosen)
        lanes = rows.most_neighbours
        while lanes > allowed:
            lanes //= 2
        parts = rows.parts_alone(lanes)
        total_count = known.value(parts.totals.shape[-1])
        own = sharing_alone(length, rows.blocks, rows.shape, lanes)
        last = sharing_alone(total_count, rows.blocks_of_totals, rows.shape)
        return self._of_cut(step, rows, own, last, parts)

    # -- open sizes --------------------------------------------------------------------------

    def _open(self, step: RunPass, rows_of: RowsOf) -> Step:
        """Kernels for all sizes; these decide which of them run."""
        alone, shared = rows_of(self.limits.shape_alone), rows_of(self.limits.shape)
        length = alone.work.length
        chosen = self.limits.fitting(alone.loads) if self.limits.are_multiples([length]) else ()
        if not self.limits.binds_few(alone.binding_count(chosen)):
            chosen = ()
        whole = sharing_alone(None, alone.blocks, alone.shape, width=WIDTH if chosen else 1)

        def of_short(longest: int) -> PlanKernel:
            is_short = sizes.subtract(1, is_more(length, longest))
            return alone.whole(replace(whole, is_chosen=is_short), *chosen)

        if self._may_share(shared):
            works, between = self._open_shared(shared)
            works = (of_short(SHORTEST_SHARED - 1), *works)
        else:
            works, between = self._open_alone(alone)
            works = (of_short(alone.longest_whole), *works)
        return RunRows(step, None, works, between)

    def _may_share(self, rows: Rows) -> bool:
        """True if threads can share rows at all sizes."""
        if not self.limits.is_together or any(map(is_large, rows.work.totals)):
            return False
        return self._fits(rows, (), sharing_of_all(rows.shape, rows.work))

    def _open_shared(self, rows: Rows) -> RowKernels:
        """The kernels of rows that are not short, with a workgroup for a row or part."""
        is_long = is_more(rows.work.length, rows.longest_whole)
        is_shared = is_more(rows.work.length, SHORTEST_SHARED - 1)
        team, parts = sharing_of_all(rows.shape, rows.work), rows.parts(1)
        whole = replace(team, is_chosen=sizes.subtract(is_shared, is_long))
        long = replace(team, is_chosen=is_long)
        return (rows.whole(whole), rows.cut(long, parts), rows.added(long, parts)), (parts.totals,)

    def _open_alone(self, rows: Rows) -> RowKernels:
        """The kernels of long rows, with a thread for each part."""
        is_long, lanes = is_more(rows.work.length, rows.longest_whole), rows.most_neighbours
        parts = rows.parts_alone(lanes)
        own = sharing_alone(None, rows.blocks, rows.shape, lanes)
        last = sharing_alone(None, rows.blocks_of_totals, rows.shape)
        works = (
            rows.cut(replace(own, is_chosen=is_long), parts),
            rows.added(replace(last, is_chosen=is_long), parts),
        )
        return works, (parts.totals,)
