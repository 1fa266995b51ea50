"""Device time of each dispatch of a step; no profiler is needed.

Dispatches that would share a pass run one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import shaderad as sad
from shaderad.profiling.recorder import DispatchRecorder


class Dispatched(NamedTuple):
    """The time of one dispatch."""

    kernel: str
    group_count: int
    microseconds: float


def dispatches_of(device: sad.Device, step: Callable[[], object]) -> list[Dispatched]:
    """Runs a step and waits for it; the time of each of its dispatches."""
    recorder = device.kept(DispatchRecorder)
    begin = recorder.open()
    try:
        step()
        device.synchronize()
        found = recorder.dispatches(begin, recorder.finish())
    finally:
        recorder.close()
    return [
        Dispatched(
            timed.dispatch.program.name,
            math.prod(timed.dispatch.groups),
            1e3 * (timed.device_ms or math.nan),
        )
        for timed in found
    ]
