"""Buffers of a run: as few bytes as are needed at one time, and none that two things share."""

from __future__ import annotations

import numpy as np

from shaderad.execute.commands import FramePlan


def test_a_result_takes_no_buffer_that_is_still_read() -> None:
    frame = FramePlan(input_count=2)
    first = frame.take(64)
    second = frame.take(64)
    frame.give(first)
    result = frame.take(64)
    frame.give(second)
    layout = frame.layout([result])
    assert layout.numbers == [0, 1, 2, 3, 2]
    assert (layout.kept_bytes, layout.scratch_bytes) == ([64], [64])
    assert frame.peak_live_bytes == 128


def test_what_is_small_leaves_large_buffers_to_what_is_large() -> None:
    frame = FramePlan(input_count=0)
    a = frame.take(1000)
    frame.give(a)
    small = frame.take(8)
    b = frame.take(1000)
    frame.give(small)
    frame.give(b)
    assert sorted(frame.layout([]).scratch_bytes) == [8, 1000]


def test_nothing_shares_a_buffer_while_it_is_needed() -> None:
    draw = np.random.default_rng(3)
    frame = FramePlan(input_count=1)
    alive: list[int] = []
    sizes: dict[int, int] = {}
    pairs: list[tuple[int, int]] = []
    for _ in range(300):
        if alive and draw.random() < 0.5:
            frame.give(alive.pop(int(draw.integers(len(alive)))))
            continue
        size = int(draw.integers(1, 9)) * 4
        new = frame.take(size)
        sizes[new] = size
        pairs += [(one, new) for one in alive]
        alive.append(new)
    layout = frame.layout(alive)
    buffers = [0, *layout.kept_bytes, *layout.scratch_bytes]
    assert all(buffers[layout.numbers[k]] >= size for k, size in sizes.items())
    assert all(layout.numbers[a] != layout.numbers[b] for a, b in pairs)
    assert [layout.numbers[k] for k in alive] == list(range(1, 1 + len(alive)))


def test_what_is_needed_since_the_start_shares_no_memory_with_what_was_needed_before() -> None:
    frame = FramePlan(0)
    first = frame.take(16)
    frame.give(first)
    filled, other = frame.take(16, since_start=True), frame.take(16)
    frame.give(filled)
    frame.give(other)
    numbers = frame.layout([]).numbers
    assert numbers[first] == numbers[other]
    assert numbers[filled] != numbers[first]
