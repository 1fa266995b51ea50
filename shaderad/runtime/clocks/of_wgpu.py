"""The clock of wgpu: each dispatch is a pass of its own, which writes timestamps."""

from __future__ import annotations

from typing import Any

import numpy as np

from shaderad.runtime.clocks.observing import QUERY_SET_SIZE, DeviceClock, pairs_of
from shaderad.runtime.wgpu_pipelines import ffi, lib

FEATURE = "timestamp-query"
_QUERY_RESOLVE, _COPY_SRC = 0x200, 0x4


class WgpuClock(DeviceClock):
    """Timestamps of a `wgpu.GPUDevice`."""

    def __init__(self, native: Any) -> None:
        super().__init__()
        self._native = native
        self._sets: list[Any] = []
        self._writes: Any = None
        """Keeps what the last descriptor points to."""

    def next_pass(self) -> Any:
        """The descriptor of the pass of the next dispatch."""
        index = self.next_pair(self._sets, self._new_set)
        self._writes = writes = ffi.new("WGPUPassTimestampWrites *")
        writes.querySet = self._sets[-1]._internal
        writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = index, index + 1
        descriptor = ffi.new("WGPUComputePassDescriptor *")
        descriptor.timestampWrites = writes
        return descriptor

    def _new_set(self) -> Any:
        return self._native.create_query_set(type="timestamp", count=QUERY_SET_SIZE)

    def milliseconds(self, count: int) -> list[tuple[float, float]]:
        period = 1e-6 * lib.wgpuQueueGetTimestampPeriod(self._native.queue._internal)
        times: list[float] = []
        for queries, size in zip(self._sets, self.counts(count), strict=False):
            usage = _QUERY_RESOLVE | _COPY_SRC
            resolved = self._native.create_buffer(size=8 * size, usage=usage)
            encoder = self._native.create_command_encoder()
            encoder.resolve_query_set(queries, 0, size, resolved, 0)
            self._native.queue.submit([encoder.finish()])
            ticks = np.frombuffer(self._native.queue.read_buffer(resolved), np.uint64)
            times += [period * int(tick) for tick in ticks]
        return pairs_of(times)
