"""Device time of each dispatch of a step, by timestamps before and after it; no profiler is needed.

A timestamp ends the open compute pass, so dispatches that would share a pass run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol
from unittest.mock import patch

import numpy as np

import shaderad as sad

CAPACITY = 4096
"""Timestamps of a step: twice as many as dispatches."""
WGPU_FEATURES = ("timestamp-query", "timestamp-query-inside-encoders")


class Dispatched(NamedTuple):
    """The time of one dispatch."""

    kernel: str
    group_count: int
    microseconds: float


class _Timestamps(Protocol):
    """Timestamps of one runtime, by index."""

    def write(self, index: int) -> None:
        """Records a timestamp after all recorded commands."""
        ...

    def microseconds(self, count: int) -> list[float]:
        """The first `count` timestamps, once the device has finished."""
        ...


def with_timestamps() -> AbstractContextManager[object]:
    """A context in which opened devices of wgpu have the features of timestamps."""
    from shaderad.runtime import wgpu_adapters

    features = (*wgpu_adapters.OPTIONAL_FEATURES, *WGPU_FEATURES)
    return patch.object(wgpu_adapters, "OPTIONAL_FEATURES", features)


class KernelClock:
    """Measures steps on a device that was opened in `with_timestamps`."""

    def __init__(self, device: sad.Device) -> None:
        self._device = device
        is_wgpu = device.capabilities.runtime == "wgpu"
        kind = _WgpuTimestamps if is_wgpu else _SlangpyTimestamps
        self._timestamps: _Timestamps = kind(device.runtime)

    def dispatches(self, step: Callable[[], object]) -> list[Dispatched]:
        """Runs a step and waits for it; the time of each of its dispatches."""
        runtime: Any = self._device.runtime
        record, stamps = runtime.record_dispatch, self._timestamps
        kernels: list[tuple[str, int]] = []

        def timed(
            pipeline: Any, resources: Any, words: Any, groups: Sequence[int], ranges: Any
        ) -> None:
            stamps.write(2 * len(kernels))
            record(pipeline, resources, words, groups, ranges)
            stamps.write(2 * len(kernels) + 1)
            kernels.append((pipeline.program.name, int(np.prod(groups))))

        runtime.record_dispatch, runtime.record_run = timed, runtime.record_each
        try:
            step()
            self._device.synchronize()
        finally:
            del runtime.record_dispatch, runtime.record_run
        times = stamps.microseconds(2 * len(kernels))
        return [
            Dispatched(name, group_count, times[2 * k + 1] - times[2 * k])
            for k, (name, group_count) in enumerate(kernels)
        ]


class _WgpuTimestamps:
    def __init__(self, runtime: Any) -> None:
        import wgpu
        from wgpu.backends.wgpu_native import _api  # pyright: ignore[reportPrivateUsage]

        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._runtime, self._native = runtime, runtime.native
        self._lib: Any = _api.libf
        self._queries = self._native.create_query_set(type="timestamp", count=CAPACITY)
        self._resolved = self._native.create_buffer(size=8 * CAPACITY, usage=usage)
        self._nanoseconds = self._lib.wgpuQueueGetTimestampPeriod(self._native.queue._internal)

    def write(self, index: int) -> None:
        encoder = self._runtime._recorded().end_pass()
        # wgpu-py has no call for it.
        self._lib.wgpuCommandEncoderWriteTimestamp(encoder, self._queries._internal, index)

    def microseconds(self, count: int) -> list[float]:
        encoder = self._native.create_command_encoder()
        encoder.resolve_query_set(self._queries, 0, count, self._resolved, 0)
        self._native.queue.submit([encoder.finish()])
        ticks = np.frombuffer(self._native.queue.read_buffer(self._resolved), np.uint64)[:count]
        return [1e-3 * self._nanoseconds * int(tick) for tick in ticks]


class _SlangpyTimestamps:
    def __init__(self, runtime: Any) -> None:
        import slangpy as spy

        self._runtime = runtime
        self._pool = runtime.native.create_query_pool(spy.QueryType.timestamp, CAPACITY)
        self._frequency = runtime.native.info.timestamp_frequency

    def write(self, index: int) -> None:
        if index == 0:
            self._pool.reset()
        self._runtime._commands().write_timestamp(self._pool, index)

    def microseconds(self, count: int) -> list[float]:
        return [1e6 * ticks / self._frequency for ticks in self._pool.get_results(0, count)]
