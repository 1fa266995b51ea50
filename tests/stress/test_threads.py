"""Threads that share a device get their own results and their own reports."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import shaderad as sad
from tests.stress.threads import shared, work

PATIENCE = 5.0
"""Seconds; a thread raises what it has read within milliseconds."""


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    """Threads take turns a thousand times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def test_eight_threads_get_the_results_of_their_own_kernels(device: sad.Device) -> None:
    assert shared(8, lambda number: work(device, number, 6)) == []


@sad.kernel
def picked(i: sad.Index, x: sad.In[float], index: sad.In[int], y: sad.Out[float]):
    y[i] = x[index[i]]


def test_a_report_is_raised_whoever_reads_meanwhile(device: sad.Device) -> None:
    x = sad.array(np.arange(4.0), device=device)
    stop = threading.Event()
    raised: list[sad.Error] = []

    def read_on(_: int) -> list[str]:
        while not stop.is_set():
            try:
                x.numpy()
            except sad.BoundsError as failure:
                raised.append(failure)
        return []

    def report(_: int) -> list[str]:
        try:
            for _ in range(100):
                before = len(raised)
                try:
                    picked(x, [9], dim=1).buffer
                    device.synchronize()
                except sad.BoundsError as failure:
                    raised.append(failure)
                start = time.monotonic()
                while len(raised) == before:  # whoever read it has yet to say so
                    if time.monotonic() - start > PATIENCE:
                        return ["a report was lost"]
        finally:
            stop.set()
        return []

    assert shared(4, lambda number: read_on(number) if number else report(number)) == []


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i]


def test_threads_may_look_at_one_result_together(device: sad.Device) -> None:
    for _ in range(20):
        y = scaled(np.ones(64, np.float32), 3.0, dim=64, device=device)
        together = threading.Barrier(4)

        def look(_: int, y: sad.Array = y, together: threading.Barrier = together) -> list[str]:
            together.wait()
            return [] if (y.numpy() == 3.0).all() else ["wrong"]

        assert shared(4, look) == []


def test_closing_in_the_middle_is_an_error_in_every_thread_and_no_crash(
    device: sad.Device,
) -> None:
    other = sad.open_device(device.capabilities.runtime)
    scaled(np.ones(64, np.float32), 2.0, dim=64, device=other).numpy()
    together = threading.Barrier(5)

    def until_closed(number: int) -> list[str]:
        together.wait()
        if number == 0:
            scaled(np.ones(64, np.float32), 2.0, dim=64, device=other).numpy()
            other.close()
            return []
        try:
            while True:
                y = scaled(np.ones(64, np.float32), 2.0, dim=64, device=other)
                assert (y.numpy() == 2.0).all()
        except sad.DeviceError as failure:
            return [] if failure.code == "SR0610" else [str(failure)]

    assert shared(5, until_closed) == []
