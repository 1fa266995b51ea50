"""Sizes and a device -> the nests that take the place of steps: see `plan/choices.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.plan.call_kernels import Decision
from shaderad.plan.kernels import WIDTH
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.exchange import shared_bytes
from shaderad.plan.nest.row_work import RowSharing, sharing_across, sharing_along
from shaderad.plan.nest.rows import Rows
from shaderad.plan.nest.scans import Scans
from shaderad.plan.nest.transposed import TILE, TransposedElements
from shaderad.plan.steps import RunChain, RunKernel, RunPass, RunRows, RunTiles, Step


@dataclass(frozen=True, slots=True)
class NestChoices:
    """Sizes and a device, by which nests are chosen.

    Attributes:
        known: The sizes, by name.
        group_bytes: The memory of a workgroup.
        shape: How work is laid out over threads.
        buffer_limit: The number of buffers that a kernel should bind.
    """

    known: Mapping[str, int]
    group_bytes: int
    shape: LaunchShape
    buffer_limit: int

    def of_rows(self, step: RunPass | RunTiles, rows: Rows) -> Decision[Step] | None:
        """The decision about one reduction, if threads can share its rows."""
        length = self._length_of(rows)
        shared = None if length is None else self._sharing(rows, length)
        if length is None or shared is None:
            return None
        whole, chosen = shared
        parts = rows.parts(whole.team.span * whole.rows)
        assert parts is not None
        part_count = sizes.evaluate(parts.totals.shape[-1], self.known)
        part_length = sizes.evaluate(parts.length, self.known)
        longest = WIDTH * part_length if whole.is_across else self.shape.rows.longest_whole
        if part_count == 1 or length <= longest:
            if not self._fits(rows, chosen, whole):
                return None
            works = partial(rows.whole, whole, *chosen)
            return Decision(
                (*whole.numbers, _bits(chosen), 0),
                lambda: RunRows(step, whole, (works(),)),
            )
        own = self._of_parts(rows, part_length, whole)
        last = sharing_along(part_count, 1, self.shape, rows.work)
        if own is None or last is None or not self._fits(rows, chosen, own, last):
            return None

        def cut() -> Step:
            works = rows.cut(own, parts, *chosen), rows.added(last, parts)
            return RunRows(step, own, works, (parts.totals,))

        return Decision((*own.numbers, _bits(chosen), last.team.lanes), cut)

    def _of_parts(self, rows: Rows, length: int, whole: RowSharing) -> RowSharing | None:
        """How threads share parts of this length of rows that they would share in another way."""
        if not whole.is_across:
            return sharing_along(length, whole.width, self.shape, rows.work)
        columns = sizes.evaluate(rows.work.places[-2], self.known)
        return sharing_across(length, columns, whole.rows, self.shape, rows.work)

    def of_scan(self, step: RunPass, scans: Scans) -> Decision[Step] | None:
        """The decision about a scan of rows that are not empty, if threads can share them."""
        chosen = [*map(self.are_multiples, scans.loads)]
        choice = scans.choice(self.known, chosen, self.shape.rows.longest_whole)
        has_memory = shared_bytes(scans.total) * choice.slots <= self.group_bytes
        if not has_memory or not self._binds_few(scans.binding_count(choice.chosen)):
            return None
        numbers = (-4, *choice.sharing.numbers, _bits(choice.chosen), *choice.of_totals)
        return Decision(numbers, lambda: RunRows(step, choice.sharing, *choice.make()))

    def _length_of(self, rows: Rows) -> int | None:
        """The length of rows that are not empty, on a device whose threads can share them."""
        extents = rows.work.places
        if not self.shape.rows.is_together or not all(map(self.is_known, extents)):
            return None
        *_, length = known = [sizes.evaluate(extent, self.known) for extent in extents]
        return length if all(known) else None

    def _sharing(self, rows: Rows, length: int) -> tuple[RowSharing, Sequence[bool]] | None:
        """How threads share rows, or parts, of this length, and which loads are by four."""
        chosen = [*map(self.are_multiples, rows.loads)]
        sharing = None
        if rows.is_across:
            columns = sizes.evaluate(rows.work.places[-2], self.known)
            chosen = chosen if columns % WIDTH == 0 and any(chosen) else []
            count = WIDTH if chosen else 1
            sharing = sharing_across(length, columns, count, self.shape, rows.work)
        if sharing is None:
            is_whole = length % WIDTH == 0 and any(chosen) and not rows.is_across
            chosen = chosen if is_whole else []
            sharing = sharing_along(length, WIDTH if chosen else 1, self.shape, rows.work)
        return None if sharing is None else (sharing, chosen)

    def _fits(self, rows: Rows, chosen: Sequence[bool], *sharings: RowSharing) -> bool:
        """True if kernels of rows do not need more buffers or group memory than there is."""
        total_bytes = sum(shared_bytes(node.results[0].element) for node in rows.work.folds)
        slots = max(sharing.team.slots * sharing.rows for sharing in sharings)
        has_memory = total_bytes * slots <= self.group_bytes
        return has_memory and self._binds_few(rows.binding_count(chosen))

    def of_chain(self, step: RunChain) -> Decision[tuple[Step, ...]] | None:
        """The decision about rows that one kernel computes, if they fit in registers."""
        rows = step.rows(self.shape)
        length = self._length_of(rows)
        shared = None if length is None else self._sharing(rows, length)
        if shared is None or not self._fits(rows, shared[1], shared[0]):
            return None
        sharing, chosen = shared
        work = partial(rows.whole, sharing, *chosen)
        return Decision(
            (*sharing.numbers, _bits(chosen)),
            lambda: (RunRows(step, sharing, (work(),)),),
        )

    # -- sums over tiles ---------------------------------------------------------------------

    def of_tiles(self, step: RunTiles) -> Decision[Step]:
        """The decision about a sum over tiles, or of columns."""
        shared = None if step.rows is None else self.of_rows(step, step.rows(self.shape))
        if shared is not None:
            return shared
        sums = step.sums
        extents = (*sums.work.rows, *sums.work.summed)
        are_known = all(map(self.is_known, extents))
        if not are_known or (sums.work.column_sum is not None and self._is_empty(sums.work.rows)):
            return Decision((0,), lambda: step)
        names = {name for size in sums.sizes for name in sizes.symbols(size)} & self.known.keys()
        known = tuple((name, self.known[name]) for name in sorted(names))
        tile = sums.tile_at(known, self.group_bytes)
        writer = sums.writer(tile)
        chosen = tuple(map(self.are_multiples, writer.loads))
        if not self._binds_few(sums.binding_count(tile, chosen)):
            chosen = ()
        stored = writer.store_multiples
        by_four = stored is not None and self.are_multiples(stored)
        numbers = *tile.numbers, _bits(chosen), by_four
        return Decision(numbers, lambda: replace(step, chosen=sums.kernels(tile, chosen, by_four)))

    def _is_empty(self, shape: Shape) -> bool:
        return sizes.evaluate(sizes.product(shape), self.known) == 0

    # -- elements ----------------------------------------------------------------------------

    def of_elements(self, step: RunKernel, by_four: FourElements) -> Decision[Step]:
        step, transposed = replace(step, by_four=None, transposed=None), step.transposed
        if transposed is not None and self._has_tiles(transposed):
            threads = self.shape.workgroup
            return Decision((-4,), lambda: replace(step, work=transposed.write(threads)))
        is_whole = self.are_multiples([by_four.extent])
        loads = by_four.loads if is_whole else None
        if loads is None:
            return Decision((0,), lambda: step)
        chosen = [*map(self.are_multiples, loads)]
        if not self._binds_few(by_four.binding_count(chosen)):
            chosen = [False] * len(chosen)
        return Decision(
            (1 + 2 * _bits(chosen),),
            lambda: replace(step, work=by_four.write(*chosen)),
        )

    def _has_tiles(self, transposed: TransposedElements) -> bool:
        """True if tiles in group memory bring elements into the order in which they are stored."""
        if not self.shape.is_parallel or self.shape.workgroup % TILE or transposed.axis is None:
            return False
        extents = transposed.extents
        is_large = all(map(self.is_known, extents)) and all(
            sizes.evaluate(extent, self.known) >= TILE for extent in extents
        )
        return is_large and transposed.group_bytes <= self.group_bytes

    # -- sizes -------------------------------------------------------------------------------

    def are_multiples(self, extents: Iterable[Size]) -> bool:
        """True if sizes are known as multiples of 4, whatever the number of an iteration is."""
        return all(
            sizes.is_multiple(sizes.substituted(size, self.known), WIDTH) for size in extents
        )

    def is_known(self, size: Size) -> bool:
        """True if a size is a number."""
        return sizes.symbols(size) <= self.known.keys()

    def _binds_few(self, count: int) -> bool:
        """True if a kernel may bind so many buffers, besides that of its report."""
        return count < self.buffer_limit


def _bits(flags: Sequence[bool]) -> int:
    return sum(1 << k for k, flag in enumerate(flags) if flag)
