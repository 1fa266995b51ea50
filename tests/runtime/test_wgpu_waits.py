"""Waits of wgpu poll: an interrupt ends them, and a lost device is reported after them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime import DeviceBuffer, Runtime, wgpu_runtime, wgpu_waits
from tests.runtime.conftest import opened_or_skip
from tests.runtime.programs import SCALE_AND_ADD, scale_and_add_words

pytestmark = pytest.mark.gpu

COUNT = 64
WORDS = scale_and_add_words(COUNT, 2.0, 1.0)
Wait = Callable[[Runtime, DeviceBuffer], Any]


def waited(runtime: Runtime, _: DeviceBuffer) -> None:
    runtime.wait()


def read(runtime: Runtime, z: DeviceBuffer) -> np.ndarray:
    return np.frombuffer(runtime.read([(z, 0, z.byte_count)])[0], np.float32)


WAITS = pytest.mark.parametrize("wait", [waited, read])


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    opened = opened_or_skip("wgpu")
    yield opened
    opened.close()


def dispatched(runtime: Runtime) -> DeviceBuffer:
    """The result of a dispatch that is recorded: ones."""
    buffers = {slot: runtime.allocate(4 * COUNT) for slot in (1, 2, 3)}
    runtime.dispatch(runtime.pipeline(SCALE_AND_ADD), buffers, WORDS, (1, 1, 1))
    return buffers[3]


@WAITS
def test_an_interrupt_ends_a_wait_and_the_device_goes_on(
    wait: Wait, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = dispatched(runtime)
    polls: list[Any] = []

    def busy(device: Any) -> bool:
        polls.append(device)
        if len(polls) == 3:
            signal.raise_signal(signal.SIGINT)
        return False

    with monkeypatch.context() as patched:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        for module in (wgpu_runtime, wgpu_waits):
            patched.setattr(module, "is_queue_empty", busy)
        try:
            with pytest.raises(KeyboardInterrupt):
                wait(runtime, z)
        finally:
            signal.signal(signal.SIGINT, before)
    assert not runtime.is_sound
    np.testing.assert_array_equal(read(runtime, z), np.ones(COUNT))
    assert runtime.is_sound


@WAITS
def test_a_device_that_is_lost_during_a_wait_says_so(
    wait: Wait, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = dispatched(runtime)
    poll = wgpu_waits.is_queue_empty

    def losing(device: Any) -> bool:
        device.destroy()
        return poll(device)

    for module in (wgpu_runtime, wgpu_waits):
        monkeypatch.setattr(module, "is_queue_empty", losing)
    for call in (wait, waited, read):
        with pytest.raises(DeviceError) as caught:
            call(runtime, z)
        assert caught.value.code == "SR0604"


def test_a_wait_copies_nothing_and_is_over_once_the_device_is_idle(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = dispatched(runtime)
    monkeypatch.setattr(wgpu_runtime, "StagedRead", None)
    runtime.wait()
    assert runtime.is_idle()
    monkeypatch.undo()
    np.testing.assert_array_equal(read(runtime, z), np.ones(COUNT))


def test_a_write_between_dispatches_submits_nothing_and_keeps_its_place(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, *z = (runtime.allocate(4 * COUNT) for _ in range(5))
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    submissions: list[None] = []
    monkeypatch.setattr(runtime, "submit_recorded", lambda: submissions.append(None))
    for value, result in enumerate(z):
        runtime.write(x, 0, np.full(COUNT, value, np.float32).tobytes())
        runtime.dispatch(pipeline, {1: x, 2: y, 3: result}, WORDS, (1, 1, 1))
    assert submissions == []
    monkeypatch.undo()
    for value, result in enumerate(z):
        np.testing.assert_array_equal(read(runtime, result), np.full(COUNT, 2.0 * value + 1.0))


def test_a_large_write_between_dispatches_keeps_its_place(runtime: Runtime) -> None:
    count = wgpu_runtime.PAGED_WRITE_BYTES
    x, y, *z = (runtime.allocate(4 * count) for _ in range(4))
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    for value, result in enumerate(z):
        runtime.write(x, 0, np.full(count, value, np.float32).tobytes())
        runtime.dispatch(pipeline, {1: x, 2: y, 3: result}, WORDS, (1, 1, 1))
    for value, result in enumerate(z):
        np.testing.assert_array_equal(read(runtime, result)[:COUNT], 2.0 * value + 1.0)
