"""Which bind group serves a pipeline with given buffers, for as long as the buffers live.

Making a bind group costs more than the rest of a dispatch, so they are kept; but each keeps its
buffers' memory, so those of a buffer that Python has dropped are dropped as well.
"""

from __future__ import annotations

from collections import deque
from typing import Any


class WgpuBuffer:
    """A storage buffer; when Python drops it, the runtime drops the bind groups that hold it."""

    __slots__ = ("_dropped", "byte_count", "native", "serial")

    def __init__(self, byte_count: int, native: Any, serial: int, dropped: deque[int]) -> None:
        self.byte_count = byte_count
        self.native = native
        self.serial = serial
        self._dropped = dropped

    def __del__(self) -> None:
        # May run inside any call of ours, by the garbage collector: only leave a note.
        self._dropped.append(self.serial)


class BindGroups:
    """Bind groups by pipeline and buffers: making one costs more than the rest of a dispatch.

    A bind group keeps its buffers' memory, so those of a dropped buffer are dropped as well.
    """

    def __init__(self) -> None:
        self._group_by_key: dict[tuple[int, ...], Any] = {}
        self._keys_by_buffer: dict[int, set[tuple[int, ...]]] = {}
        self.dropped: deque[int] = deque()

    def find(self, key: tuple[int, ...]) -> Any:
        return self._group_by_key.get(key)

    def keep(self, key: tuple[int, ...], group: Any) -> None:
        """Keeps `group`; `key` is the pipeline's serial and then those of the buffers."""
        self._group_by_key[key] = group
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def forget_dropped(self) -> None:
        """Frees what buffers that Python no longer holds still occupy."""
        while self.dropped:
            serial = self.dropped.popleft()
            for key in self._keys_by_buffer.pop(serial, ()):
                self._group_by_key.pop(key, None)
                for other in key[1:]:
                    self._keys_by_buffer.get(other, set()).discard(key)
