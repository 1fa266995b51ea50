"""The report buffer as bytes, and which of its records is the one to raise."""

from __future__ import annotations

import struct

import pytest

from shaderad.device.reports import (
    HEADER_BYTES,
    REPORT_BYTES,
    SLOT_BYTES,
    SLOT_COUNT,
    decoded,
    lowest,
)

Slot = tuple[int, int, int, int, int, int, int, int]
"""Site + 1, index, length, thread, launch, and the extents of three inner axes."""


def buffer(count: int, *slots: Slot, claimed: int | None = None) -> bytes:
    """What threads with checks leave."""
    content = bytearray(REPORT_BYTES)
    filled = len(slots) if claimed is None else claimed
    struct.pack_into("<8I", content, 0, count, 0, 0, 0, 0, filled, 0, 0)
    for k, slot in enumerate(slots):
        struct.pack_into("<8I", content, HEADER_BYTES + k * SLOT_BYTES, *slot)
    return bytes(content)


def test_an_untouched_buffer_says_nothing() -> None:
    assert decoded(bytes(HEADER_BYTES)) is None


def test_the_first_dispatch_comes_before_the_lowest_thread() -> None:
    content = buffer(
        9, (3, 1, 0, 70, 4, 0, 0, 0), (4, 1, 0, 20, 4, 0, 0, 0), (5, 2, 2, 0, 5, 0, 0, 0)
    )
    first = decoded(content)
    assert first is not None
    found = lowest(content, first)
    assert (found.count, found.site, found.element) == (9, 3, "20")


@pytest.mark.parametrize(
    ("inner", "element"),
    [
        ((0, 0, 0), "1234"),
        ((100, 0, 0), "12, 34"),
        ((4, 10, 0), "30, 3, 4"),
        ((2, 2, 5), "61, 1, 0, 4"),
    ],
)
def test_threads_are_shown_by_the_indices_of_their_launch(
    inner: tuple[int, int, int], element: str
) -> None:
    content = buffer(1, (1, 1, 0, 1234, 0, *inner))
    first = decoded(content)
    assert first is not None
    assert lowest(content, first).element == element


def test_slots_that_were_claimed_past_the_last_are_not_read() -> None:
    slots: list[Slot] = [(1, 1, 0, 1000 - k, 0, 0, 0, 0) for k in range(SLOT_COUNT)]
    content = buffer(200, *slots, claimed=SLOT_COUNT + 30)
    first = decoded(content)
    assert first is not None
    assert lowest(content, first).element == str(1000 - SLOT_COUNT + 1)
