"""Dropped buffers serve again, and nobody sees what they held."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.runtime import idle_buffers
from shaderad.runtime.idle_buffers import BufferPool
from tests.stress.steps import STATM

COUNT = 300_000


class Native:
    """A buffer that has nothing but a size."""

    size = 100


def test_idle_buffers_hold_little_more_than_those_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = small_pool(monkeypatch, 200)
    held = [pool.hold(100, Native(), is_own=True) for _ in range(10)]
    del held[4:]
    assert pool.settle() == []  # 400 are in use, 600 idle
    again = pool.reuse(100)
    shared = held.pop()
    shared.shared()
    held.clear()
    ended = pool.settle()  # 100 are in use, 300 may be idle of 800
    assert len(ended) == 5
    assert again is not None
    assert again.serial not in ended
    del shared
    assert len(pool.settle()) == 1, "a buffer that somebody else may hold never serves again"


@pytest.mark.gpu
@pytest.mark.skipif(not STATM.is_file(), reason="the memory of the process is read from /proc")
def test_arrays_of_changing_sizes_cost_no_more_than_the_pool_holds(device: sad.Device) -> None:
    def resident() -> int:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    rng = np.random.default_rng(0)
    data = np.ones(100_000, np.float32)
    (sad.array(data, device=device) * 2.0).numpy()
    before = resident()
    for k in range(1000):
        result = sad.array(data[: rng.integers(1, data.size)], device=device) * 2.0
        if k % 4 == 0:
            result[:2].numpy()
    assert resident() - before < 120 << 20


def small_pool(monkeypatch: pytest.MonkeyPatch, spare_bytes: int) -> BufferPool:
    """A pool that counts only the content of buffers."""
    monkeypatch.setattr(idle_buffers, "SPARE_BYTES", spare_bytes)
    monkeypatch.setattr(idle_buffers, "BOOKKEEPING_BYTES", 0)
    return BufferPool()


def taken(pool: BufferPool, sizes: Sequence[int]) -> int:
    """Takes a buffer of each size and drops it, one after the other; returns how many were new."""
    new_count = 0
    for size in sizes:
        pool.settle()
        buffer = pool.reuse(size)
        if buffer is None:
            buffer = pool.hold(size, Native(), is_own=True)
            new_count += 1
        del buffer
    return new_count


def test_a_buffer_is_taken_once_and_by_its_exact_size() -> None:
    pool = BufferPool()
    pool.hold(64, Native(), is_own=True)
    pool.settle()
    assert pool.reuse(32) is None
    first = pool.reuse(64)
    assert first is not None
    assert pool.reuse(64) is None


def test_the_longest_idle_is_freed_where_there_is_no_more_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = small_pool(monkeypatch, 100)
    serials: list[int] = []
    for size in (40, 20, 40):
        serials.append(pool.hold(size, Native(), is_own=True).serial)
        assert pool.settle() == []
    pool.hold(60, Native(), is_own=True)
    assert pool.settle() == serials[:2]
    last = pool.hold(101, Native(), is_own=True).serial
    assert pool.settle() == [serials[2], serials[2] + 1, last]
    assert pool.reuse(40) is None


def test_the_oldest_buffer_of_a_size_serves_first() -> None:
    pool = BufferPool()
    held = [pool.hold(64, Native(), is_own=True) for _ in range(4)]
    serials = [buffer.serial for buffer in held]
    while held:  # dropped in the reverse order, too
        held.pop()
    pool.settle()
    again = [pool.reuse(64) for _ in serials]
    assert [buffer and buffer.serial for buffer in again] == serials


def test_a_repeated_step_soon_makes_no_buffers_whatever_its_scratch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = small_pool(monkeypatch, 100)
    sizes = range(200, 230)
    assert taken(pool, sizes) == len(sizes)
    for _ in range(4):
        taken(pool, sizes)
    assert taken(pool, [*sizes] * 20) == 0


def test_what_nobody_wants_any_more_is_freed_and_the_room_for_it_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(idle_buffers.time, "monotonic", lambda: now[0])
    pool = small_pool(monkeypatch, 100)
    for _ in range(5):
        taken(pool, range(200, 230))
    pool.settle()
    assert pool.idle.byte_count == sum(range(200, 230))
    for _ in range(3):
        now[0] += idle_buffers.IDLE_SECONDS * 0.6
        assert taken(pool, [300] * 4) <= 1
        pool.settle()
    assert pool.idle.byte_count == 300
    assert pool.idle.spare_bytes < 1000


def test_changing_sizes_do_not_raise_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = small_pool(monkeypatch, 10_000)
    rng = np.random.default_rng(0)
    for _ in range(20):
        taken(pool, rng.integers(1, 100_000, 500).tolist())
    assert pool.idle.spare_bytes < 300_000  # of 50 MB a round


@pytest.mark.gpu
def test_a_dropped_array_serves_the_next_of_its_size(device: sad.Device) -> None:
    with device:
        first = sad.array(np.ones(COUNT, np.float32)) * 2
        first.numpy()
        # Python looks only at the wrapper: the runtime's own buffer is what comes again.
        held = first.buffer.native
        del first
        gc.collect()
        second = sad.array(np.ones(COUNT, np.float32)) * 3
        third = sad.zeros(COUNT)
    natives = [second.buffer.native, third.buffer.native]
    assert any(one is held for one in natives)
    np.testing.assert_array_equal(second.numpy(), np.full(COUNT, 3))
    np.testing.assert_array_equal(third.numpy(), np.zeros(COUNT))


@pytest.mark.gpu
def test_a_buffer_that_somebody_else_may_hold_never_does(device: sad.Device) -> None:
    with device:
        first = sad.array(np.ones(COUNT, np.float32))
        held = first.native
        del first
        gc.collect()
        second = sad.array(np.full(COUNT, 3.0, np.float32))
    assert second.buffer.native is not held


@pytest.mark.gpu
def test_what_is_recorded_reads_what_it_was_given(device: sad.Device) -> None:
    with device:
        results: list[sad.Array] = []
        for k in range(40):
            x = sad.array(np.full(COUNT, k, np.float32))
            results.append(x * x + x)
            del x
        found = [one.numpy()[::1000] for one in results]
    for k, one in enumerate(found):
        np.testing.assert_array_equal(one, np.full(COUNT // 1000, k * k + k))


class Full:
    """A native device that has no room for the first buffers it is asked for."""

    def __init__(self, native: Any, refusal_count: int) -> None:
        self.native = native
        self.refusal_count = refusal_count
        self.made_count = 0

    def create_buffer(self, **wanted: Any) -> Any:
        if self.refusal_count:
            self.refusal_count -= 1
            raise MemoryError("out of memory")
        self.made_count += 1
        return self.native.create_buffer(**wanted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


@pytest.mark.gpu
def test_memory_that_lies_idle_is_freed_before_an_allocation_fails(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with device:
        x = np.ones(COUNT, np.float32)
        sad.array(x).numpy()
        full = Full(device.runtime.native, refusal_count=1)
        monkeypatch.setattr(device.runtime, "native", full)
        made = sad.array(np.ones(COUNT + 1, np.float32))
        assert (full.refusal_count, full.made_count) == (0, 1)
        again = sad.array(x)
        assert full.made_count == 2, "a buffer of that size still lay idle"
    assert made.numpy().sum() == COUNT + 1
    assert again.numpy().sum() == COUNT


@pytest.mark.gpu
def test_an_allocation_that_fails_twice_says_how_much_was_wanted(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Full(device.runtime.native, refusal_count=2)
    monkeypatch.setattr(device.runtime, "native", full)
    with pytest.raises(sad.DeviceError, match="4000") as caught:
        sad.array(np.ones(1000, np.float32), device=device)
    assert caught.value.code == "SR0605"
