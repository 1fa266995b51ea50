"""Which bind group serves a pipeline with given buffers, for as long as the buffers live.

Making a bind group costs more than the rest of a dispatch, so they are kept; but each keeps its
buffers' memory, so those of a buffer that Python has dropped are dropped as well. Buffers that
nobody else can hold live on for a while instead, bind groups and all: see idle_buffers.py.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from shaderad.runtime.idle_buffers import IdleBuffers


class WgpuBuffer:
    """A storage buffer; when Python drops it, the runtime hears of it."""

    __slots__ = ("_dropped", "byte_count", "is_shared", "native", "serial")

    def __init__(
        self, byte_count: int, native: Any, serial: int, dropped: deque[Dropped], *, is_shared: bool
    ) -> None:
        self.byte_count = byte_count
        self.native = native
        self.serial = serial
        self.is_shared = is_shared
        self._dropped = dropped

    def shared(self) -> Any:
        self.is_shared = True
        return self.native

    def __del__(self) -> None:
        # May run inside any call of ours, by the garbage collector: only leave a note.
        self._dropped.append((self.serial, self.is_shared))


Dropped = tuple[int, bool]
"""Serial of a buffer, and whether somebody else may hold the native one."""


class BindGroups:
    """Bind groups by pipeline and buffers, and buffers that wait to serve again."""

    def __init__(self) -> None:
        self._group_by_key: dict[tuple[int, ...], Any] = {}
        self._keys_by_buffer: dict[int, set[tuple[int, ...]]] = {}
        self._idle = IdleBuffers[tuple[int, Any]]()
        # Held here, too: what the garbage collector finds together with its wrapper it finalises,
        # and wgpu-py's finaliser ends the native buffer.
        self._own_by_serial: dict[int, Any] = {}
        self.dropped: deque[Dropped] = deque()

    def find(self, key: tuple[int, ...]) -> Any:
        return self._group_by_key.get(key)

    def keep(self, key: tuple[int, ...], group: Any) -> None:
        """Keeps `group`; `key` is the pipeline's serial and then those of the buffers."""
        self._group_by_key[key] = group
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def note_buffer(self, serial: int, native: Any) -> None:
        """Notes a buffer of ours, which may serve again."""
        self._own_by_serial[serial] = native

    def reused(self, size: int) -> tuple[int, Any] | None:
        """Serial and native buffer of a dropped one of exactly `size` bytes; any content."""
        self.settle_dropped()
        return self._idle.take(size)

    def settle_dropped(self) -> None:
        """Keeps buffers that Python no longer holds as long as there is room, else frees them."""
        while self.dropped:
            serial, is_shared = self.dropped.popleft()
            native = None if is_shared else self._own_by_serial.get(serial)
            if native is None:
                self._forget(serial)
                continue
            for given_up, _ in self._idle.keep(native.size, (serial, native)):
                self._forget(given_up)

    def give_up_idle(self) -> None:
        """Frees the buffers that wait."""
        self.settle_dropped()
        for serial, _ in self._idle.clear():
            self._forget(serial)

    def _forget(self, serial: int) -> None:
        self._own_by_serial.pop(serial, None)
        for key in self._keys_by_buffer.pop(serial, ()):
            self._group_by_key.pop(key, None)
            for other in key[1:]:
                self._keys_by_buffer.get(other, set()).discard(key)
