"""Buffers that nobody holds any more, kept to serve the next allocation of their size.

A training step makes the same arrays again and again, and new memory is dear: a driver maps and
clears it page by page, which for a few megabytes takes as long as a kernel over them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Generic, TypeVar

IDLE_BYTES = 1 << 27
"""What such buffers may hold in all."""
IDLE_COUNT = 32
"""How many of one size wait; a native buffer of a few bytes costs kilobytes."""

Kept = TypeVar("Kept")


class IdleBuffers(Generic[Kept]):
    """Buffers by their exact size in bytes."""

    def __init__(self) -> None:
        self._by_size: defaultdict[int, list[Kept]] = defaultdict(list)
        self._byte_count = 0

    def keep(self, size: int, buffer: Kept) -> bool:
        """Keeps a buffer; `False` where there is no room."""
        idle = self._by_size[size]
        if self._byte_count + size > IDLE_BYTES or len(idle) >= IDLE_COUNT:
            return False
        idle.append(buffer)
        self._byte_count += size
        return True

    def take(self, size: int) -> Kept | None:
        """A buffer of exactly `size` bytes, with any content."""
        idle = self._by_size.get(size)
        if not idle:
            return None
        self._byte_count -= size
        return idle.pop()
