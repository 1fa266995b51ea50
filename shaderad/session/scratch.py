"""Buffers for what plans compute in between, lent by the device and given back after recording.

Commands run in the order in which they were recorded, so a buffer may serve the next run before
the device has finished this one. A run that finds the same buffers again finds their bind groups.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shaderad.runtime import Buffer
    from shaderad.session.devices import Device

IDLE_BYTES = 64 << 20
"""What is kept while no plan runs."""


class ScratchBuffers:
    """The scratch buffers of one device."""

    def __init__(self, device: Device) -> None:
        self._runtime = device.runtime
        self._lock = threading.Lock()
        self._idle: defaultdict[int, list[Buffer]] = defaultdict(list)
        self._idle_bytes = 0

    def borrow(self, sizes: Sequence[int]) -> list[Buffer]:
        """Buffers of exactly these sizes, with any content."""
        with self._lock:
            return [self._one(size) for size in sizes]

    def _one(self, size: int) -> Buffer:
        idle = self._idle[size]
        if not idle:
            return self._runtime.allocate(size, zeroed=False)
        self._idle_bytes -= size
        return idle.pop()

    def give_back(self, lent: Sequence[Buffer]) -> None:
        """Keeps the buffers for the next run, as far as there is room."""
        with self._lock:
            for buffer in reversed(lent):  # the next run borrows the same ones in the same order
                if self._idle_bytes + buffer.byte_count <= IDLE_BYTES:
                    self._idle[buffer.byte_count].append(buffer)
                    self._idle_bytes += buffer.byte_count
