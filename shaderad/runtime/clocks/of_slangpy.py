"""The clock of slangpy: timestamps between the passes of dispatches."""

from __future__ import annotations

from typing import Any

from shaderad.runtime.clocks.observing import QUERY_SET_SIZE, DeviceClock, pairs_of
from shaderad.runtime.slangpy_module import spy


class SlangpyClock(DeviceClock):
    """Timestamps of a `slangpy.Device`."""

    def __init__(self, native: Any) -> None:
        super().__init__()
        self._native = native
        self._pools: list[Any] = []

    def next_writes(self) -> tuple[Any, int]:
        """The query pool of the next dispatch, and the first of its two indices."""
        index = self.next_pair(self._pools, self._new_pool)
        return self._pools[-1], index

    def _new_pool(self) -> Any:
        pool = self._native.create_query_pool(spy.QueryType.timestamp, QUERY_SET_SIZE)
        pool.reset()
        return pool

    def milliseconds(self, count: int) -> list[tuple[float, float]]:
        per_tick = 1e3 / self._native.info.timestamp_frequency
        times: list[float] = []
        for pool, size in zip(self._pools, self.counts(count), strict=False):
            times += [per_tick * ticks for ticks in pool.get_results(0, size)]
        return pairs_of(times)
