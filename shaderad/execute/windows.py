"""A dispatch whose arrays are larger than bindings -> windows, each with parts of the arrays.

A window runs consecutive items of the dispatch: threads, or the teams of a reduction or scan. It
binds the elements that those may access (`bodies/reaches.py`), or all of an array. Invariant: every
element in range that an item accesses is bound in its window, or the dispatch is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shaderad.bodies.reaches import (
    END_ITEM,
    FIRST,
    FIRST_ITEM,
    LAST,
    first_along,
    last_along,
)
from shaderad.execute.schedule import base_of
from shaderad.ir import sizes
from shaderad.runtime.buffers import WORD_BYTES
from shaderad.runtime.capabilities import check_bytes, padded

if TYPE_CHECKING:
    from shaderad.bodies.reaches import Reach
    from shaderad.execute.schedule import BoundPart, Windows
    from shaderad.ir.sizes import Size
    from shaderad.runtime import Capabilities, Ranges

_SMALLEST_BINDING = 4 * WORD_BYTES
"""Bytes; every buffer has so many."""


@dataclass(frozen=True, slots=True)
class Window:
    """Items of a dispatch, and what they bind."""

    sizes: Mapping[str, int]
    """The symbols that differ between windows."""
    ranges: Ranges | None


def windows_of(
    windows: Windows, known: Mapping[str, int], capabilities: Capabilities
) -> Iterator[Window]:
    """The windows of a dispatch, as large as bindings allow.

    Raises:
        DeviceError: SR0606, if an array has no part that suffices for the smallest window.
    """
    cut = _Cut(windows, known, capabilities)
    first = 0
    while first < cut.item_count:
        end = cut.longest(first)
        yield cut.window(first, end)
        first = end


class _Cut:
    """The dispatch at known sizes."""

    def __init__(
        self, windows: Windows, known: Mapping[str, int], capabilities: Capabilities
    ) -> None:
        self._known = known
        self._windows = windows
        self._capabilities = capabilities
        self._dim = [self._size(extent) for extent in windows.dim]
        self.item_count = self._size(windows.item_count)
        self._step = self._size(windows.step)

    def _size(self, size: Size, more: Mapping[str, int] | None = None) -> int:
        return sizes.evaluate(size, {**self._known, **more} if more else self._known)

    def longest(self, first: int) -> int:
        """The end of the longest window from `first` on, by bisection: longer ones bind more."""
        if self._fits(first, self.item_count):
            return self.item_count
        step = self._step
        if not self._fits(first, min(first + step, self.item_count)):
            return self._end_of_row(first)
        low, high = 1, -(-(self.item_count - first) // step)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if self._fits(first, first + middle * step) else (low, middle)
            )
        return first + low * step

    def _end_of_row(self, first: int) -> int:
        """The end of a window that is smaller than others, so that it does not cross rows."""
        row = max(1, prod(self._dim[1:]))
        end, after = (first // row + 1) * row, min(first + self._step, self.item_count)
        if end >= after or not self._fits(first, end):
            self._refuse(first, after)
        return end

    def _fits(self, first: int, end: int) -> bool:
        limit = self._capabilities.binding_bytes_limit
        items = self._items(first, end)
        return all(
            size <= limit for _, size in (self._range(p, items) for p in self._windows.parts)
        )

    def _refuse(self, first: int, end: int) -> None:
        """Raises the error for the array that the smallest window cannot bind."""
        items, limit = self._items(first, end), self._capabilities.binding_bytes_limit
        for part in self._windows.parts:
            if self._range(part, items)[1] > limit:
                size = self._size(part.count) * part.element_bytes
                check_bytes(self._capabilities, size, limit)

    def window(self, first: int, end: int) -> Window:
        """The items from `first` up to `end`."""
        items, alignment = self._items(first, end), self._capabilities.binding_alignment
        ranges = {part.slot: self._range(part, items) for part in self._windows.parts}
        bases = {base_of(slot): start if alignment else 0 for slot, (start, _) in ranges.items()}
        return Window({FIRST_ITEM: first, END_ITEM: end} | bases, ranges if alignment else None)

    def _items(self, first: int, end: int) -> dict[str, int]:
        """The symbols of reaches for the items from `first` up to `end`."""
        items = {FIRST_ITEM: first, END_ITEM: end}
        start = self._windows.first_number
        items[FIRST] = self._size(start, items)
        after = self._size(start, {FIRST_ITEM: end})
        items[LAST] = max(items[FIRST], min(after, prod(self._dim)) - 1)
        for axis, (low, high) in enumerate(_box(items[FIRST], items[LAST], self._dim)):
            items[first_along(axis)], items[last_along(axis)] = low, high
        return items

    def _range(self, part: BoundPart, items: Mapping[str, int]) -> tuple[int, int]:
        """First byte and byte count of the part of an array that a window binds."""
        count = self._size(part.count)
        if not count:
            return 0, _SMALLEST_BINDING
        low, high = 0, count - 1
        reach = part.reach
        if reach is not None and self._holds(reach, items):
            low, high = (min(max(self._size(n, items), 0), count - 1)
                         for n in (reach.low, reach.high))  # fmt: skip
        start = self._size(part.start)
        end = padded(start + (high + 1) * part.element_bytes)
        # Shaders that read four words at once want that many, be it some before the element.
        start = max(0, min(start + low * part.element_bytes, end - _SMALLEST_BINDING))
        start -= start % (self._capabilities.binding_alignment or WORD_BYTES)
        return start, max(end - start, _SMALLEST_BINDING)

    def _holds(self, reach: Reach, items: Mapping[str, int]) -> bool:
        return all(self._size(premise, items) >= 0 for premise in reach.premises)


def _box(first: int, last: int, dim: list[int]) -> Iterator[tuple[int, int]]:
    """The lowest and highest index along each axis, of the threads `first` to `last`."""
    is_one_row = True
    rest = prod(dim)
    for extent in dim:
        rest = rest // extent if extent else 0
        if is_one_row and rest:
            (low, first), (high, last) = divmod(first, rest), divmod(last, rest)
        else:
            low, high = 0, max(extent - 1, 0)
        is_one_row = is_one_row and low == high
        yield low, high
