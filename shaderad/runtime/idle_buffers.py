"""Buffers that nobody holds any more, kept to serve the next allocation of their size.

A training step makes the same arrays again and again, and new memory is dear: a driver maps and
clears it page by page, which for a few megabytes takes as long as a kernel over them. Commands run
in the order in which they were recorded, so a buffer may serve again before the device has
finished with it. Invariant: what waits holds at most `IDLE_BYTES`; the longest wait ends first.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Generic, TypeVar

IDLE_BYTES = 192 << 20
"""What such buffers may hold in all."""
IDLE_COUNT = 256
"""How many of one size wait; a native buffer of a few bytes costs kilobytes."""

Kept = TypeVar("Kept")


class IdleBuffers(Generic[Kept]):
    """Buffers by their exact size in bytes."""

    def __init__(self) -> None:
        self._by_size: defaultdict[int, deque[tuple[int, Kept]]] = defaultdict(deque)
        """With a number each, in the order in which they came."""
        self._size_by_number: OrderedDict[int, int] = OrderedDict()
        self._next_number = 0
        self._byte_count = 0

    def keep(self, size: int, buffer: Kept) -> list[Kept]:
        """Keeps a buffer; gives those that there is no room for any more, itself perhaps."""
        self._by_size[size].append((self._next_number, buffer))
        self._size_by_number[self._next_number] = size
        self._next_number += 1
        self._byte_count += size
        given_up = [self._oldest(size)] if len(self._by_size[size]) > IDLE_COUNT else []
        while self._byte_count > IDLE_BYTES:
            given_up.append(self._oldest(next(iter(self._size_by_number.values()))))
        return given_up

    def take(self, size: int) -> Kept | None:
        """The last buffer of exactly `size` bytes, with any content."""
        idle = self._by_size.get(size)
        return self._removed(size, *idle.pop()) if idle else None

    def clear(self) -> list[Kept]:
        """Gives all of them up."""
        found = [buffer for idle in self._by_size.values() for _, buffer in idle]
        self._by_size.clear()
        self._size_by_number.clear()
        self._byte_count = 0
        return found

    def _oldest(self, size: int) -> Kept:
        return self._removed(size, *self._by_size[size].popleft())

    def _removed(self, size: int, number: int, buffer: Kept) -> Kept:
        del self._size_by_number[number]
        self._byte_count -= size
        return buffer
