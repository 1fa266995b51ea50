"""Sizes and a device -> sorts by digits, or by merges."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.ir import arrays
from shaderad.ir.types import INT
from shaderad.plan.call_kernels import Decision
from shaderad.plan.nest.limits import NestLimits
from shaderad.plan.nest.row_work import team_along
from shaderad.plan.nest.teams import Team
from shaderad.plan.sorts.digit_kernels import group_bytes
from shaderad.plan.sorts.digits import DigitSharing
from shaderad.plan.sorts.keys import Digit, digits_of
from shaderad.plan.steps import Plan, RunSort

_ITEM_COUNTS = (15, 7)
"""Keys of each thread of a tile, the best first. Odd, so that the items of adjacent threads lie in
different banks of group memory."""
_FEWEST_THREADS = 8


@dataclass(frozen=True, slots=True)
class SortChoices:
    """Chooses the plans of sorts by what is known."""

    limits: NestLimits

    def sharing(self, node: arrays.ArgSort) -> DigitSharing | None:
        """The way in which threads sort by digits; `None` for merges."""
        limits, (keys,) = self.limits, node.operands
        shortest = limits.shape.shortest_by_digits
        is_known = all(map(limits.is_known, keys.shape))
        if not shortest or limits.is_windowed or not is_known:
            return None
        if limits.value(keys.shape[-1]) < shortest or not all(map(limits.value, keys.shape)):
            return None
        threads = limits.shape.workgroup
        if threads < _FEWEST_THREADS or threads & (threads - 1):
            return None
        return self._in_memory(self._digits(node), team_along(threads, limits.shape, [INT]))

    def _digits(self, node: arrays.ArgSort) -> tuple[Digit, ...]:
        limit, bits = node.limit, None
        if limit is not None and self.limits.is_known(limit):
            bits = self.limits.value(limit).bit_length()
        return tuple(digits_of(node.operands[0].element, bits))

    def _in_memory(self, digits: tuple[Digit, ...], team: Team) -> DigitSharing | None:
        """The largest tiles for which group memory has room."""
        sharings = (DigitSharing(digits, team, count) for count in _ITEM_COUNTS)
        return next((s for s in sharings if group_bytes(s) <= self.limits.group_bytes), None)


def sort_decision(
    step: RunSort, sharing: DigitSharing | None, body: Decision[Plan]
) -> Decision[RunSort]:
    """The decision about one sort, whose plan is `body`."""
    numbers = (0, 0) if sharing is None else (len(sharing.digits), sharing.item_count)
    return Decision(
        (*numbers, *body.numbers),
        lambda: replace(step, sharing=sharing, body=body.make()),
    )
