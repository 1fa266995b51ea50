"""Reductions of rows, and what becomes of their elements -> kernels whose threads share each row.

The lanes of a row are adjacent threads of a workgroup. Adjacent lanes read adjacent elements, four
at once where sizes allow it. Each lane folds its elements, then the team folds the totals of its
lanes. Several reductions of one row, and values that depend on their totals, are one kernel that
holds in registers what it needs again, so that the row is read once. Long rows of one reduction are
cut into parts, whose totals a second kernel folds in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir.costs import cost_of_choices, cost_of_operator
from shaderad.ir.sizes import Size
from shaderad.plan.kernels import WIDTH, PlanKernel
from shaderad.plan.nest.row_elements import NotRowwiseError
from shaderad.plan.nest.row_work import (
    ACROSS,
    ALONG,
    BLOCK,
    NEIGHBOURS,
    SINGLE,
    Blocks,
    RowParts,
    RowSharing,
    RowWork,
    parts_alone,
    parts_of,
)
from shaderad.plan.nest.row_writer import RowWriter
from shaderad.plan.nest.vectors import COST_LIMIT
from shaderad.plan.reductions import has_neutral, operators_of

_UNROLLED_LIMIT = 40
"""The cost of an element, in additions, beyond which its code is written once."""


class Rows:
    """The kernels of rows.

    Args:
        work: What they compute.
        shape: How work is laid out over threads.
    """

    def __init__(self, work: RowWork, shape: LaunchShape) -> None:
        self.work, self.shape = work, shape
        self.whole = cache(self._whole)
        self.cut = cache(self._cut)
        self.added = cache(self._added)
        self.parts = cache(self._parts)
        self.parts_alone = cache(self._parts_alone)

    @property
    def longest_whole(self) -> int:
        """The most elements of rows that are not cut."""
        return self.shape.rows.longest_whole

    def _parts(self, adjacent: int) -> RowParts:
        """The parts of rows of one reduction, of which a workgroup folds so many adjacent ones."""
        return parts_of(self.work, self.shape, adjacent)

    def _parts_alone(self, lanes: int) -> RowParts:
        """The same, of which each of so many lanes folds its own elements."""
        return parts_alone(self.work, lanes, self.shape)

    # -- single threads ----------------------------------------------------------------------

    @property
    def most_neighbours(self) -> int:
        """The most lanes that take adjacent elements of parts: each of them needs a total."""
        is_any_order = not self.work.is_ordered and self._have_neutral
        return NEIGHBOURS if is_any_order else 1

    @property
    def _have_neutral(self) -> bool:
        return all(map(has_neutral, self.work.folds))

    @cached_property
    def blocks(self) -> Blocks:
        """The elements that a thread folds before it adds them to its total."""
        costs = (elements.code_cost for elements in self._along.phases)
        return self._blocks(max(costs) // WIDTH)

    @property
    def blocks_of_totals(self) -> Blocks:
        """The same for the totals of parts."""
        return self._blocks(0)

    def _blocks(self, element_cost: int) -> Blocks:
        costs = (
            cost_of_operator(op, element) + cost_of_choices(op)
            for node in self.work.folds
            for op, element in operators_of(node)
        )
        if element_cost + sum(costs) <= _UNROLLED_LIMIT:
            return Blocks(BLOCK)
        return Blocks(BLOCK, is_rolled=True) if self._have_neutral else SINGLE

    # -- teams -------------------------------------------------------------------------------

    @cached_property
    def is_across(self) -> bool:
        """True if adjacent threads should have adjacent rows: their elements are adjacent."""
        if len(self.work.places) == 1:
            return False
        writer = RowWriter(self.work, replace(ACROSS, rows=1))
        try:
            return writer.strided(by_rows=True) < writer.strided(by_rows=False)
        except NotRowwiseError:  # What registers hold is not recognised by its indices.
            return False

    @cached_property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four, the sizes that must be multiples of 4; none in long code."""
        phases = self._trial.phases
        if any(elements.cost > COST_LIMIT for elements in phases):
            return ()
        return [sizes for elements in phases for sizes in elements.loads]

    @property
    def _trial(self) -> RowWriter:
        return self._across if self.is_across else self._along

    @cached_property
    def _along(self) -> RowWriter:
        return RowWriter(self.work, ALONG)

    @cached_property
    def _across(self) -> RowWriter:
        return RowWriter(self.work, ACROSS)

    def binding_count(self, chosen: Sequence[bool]) -> int:
        """The most buffers of a kernel with those of `loads` that are chosen."""
        twice = self._trial.bound_twice(chosen) if chosen else 0
        return len(self.work.reads) + twice + len(self.work.writes) + 1

    def _whole(self, sharing: RowSharing, *chosen: bool) -> PlanKernel:
        """The kernel of whole rows, with those of `loads` that are chosen."""
        return RowWriter(self.work, sharing).kernel(f"{self.work.name}_rows", chosen)

    def _cut(self, sharing: RowSharing, parts: RowParts, *chosen: bool) -> PlanKernel:
        """The kernel of the parts of rows."""
        writer = RowWriter(self.work, sharing, parts)
        return writer.kernel(f"{self.work.name}_parts", chosen)

    def _added(self, sharing: RowSharing, parts: RowParts) -> PlanKernel:
        """The kernel that folds the totals of parts."""
        writer = RowWriter(self.work, sharing, parts, is_last=True)
        return writer.kernel(f"{self.work.name}_of_parts", ())
