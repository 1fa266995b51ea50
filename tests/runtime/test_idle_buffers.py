"""Dropped buffers serve again, and nobody sees what they held."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import shaderad as sad
from shaderad.runtime import idle_buffers
from shaderad.runtime.idle_buffers import IdleBuffers

COUNT = 300_000


def test_a_buffer_is_taken_once_and_by_its_exact_size() -> None:
    idle = IdleBuffers[str]()
    assert idle.keep(64, "a")
    assert idle.take(32) is None
    assert (idle.take(64), idle.take(64)) == ("a", None)


def test_no_more_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_buffers, "IDLE_BYTES", 100)
    idle = IdleBuffers[int]()
    assert [idle.keep(40, k) for k in range(3)] == [True, True, False]
    assert idle.take(40) == 1
    assert idle.keep(60, 3)


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
