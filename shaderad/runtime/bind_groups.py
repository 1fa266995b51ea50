"""Which bind group serves a pipeline with given buffers, for as long as the buffers live.

Making a bind group costs more than the rest of a dispatch, so they are kept; but each keeps its
buffers' memory, so those of a buffer that has ended are dropped as well. Idle buffers live on with
their bind groups: see idle_buffers.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class BindGroups:
    """Bind groups by pipeline and buffers."""

    def __init__(self) -> None:
        self._group_by_key: dict[tuple[int, ...], Any] = {}
        self._keys_by_buffer: dict[int, set[tuple[int, ...]]] = {}

    def find(self, key: tuple[int, ...]) -> Any:
        return self._group_by_key.get(key)

    def keep(self, key: tuple[int, ...], group: Any) -> None:
        """Keeps `group`; `key` is the pipeline's serial and then those of the buffers."""
        self._group_by_key[key] = group
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def forget(self, ended: Iterable[int]) -> None:
        """Drops the bind groups of buffers that have ended."""
        for serial in ended:
            for key in self._keys_by_buffer.pop(serial, ()):
                self._group_by_key.pop(key, None)
                for other in key[1:]:
                    self._keys_by_buffer.get(other, set()).discard(key)
