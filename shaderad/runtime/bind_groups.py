"""A cache of bind groups by pipeline and buffers.

Creating a bind group costs more than the rest of a dispatch, so bind groups are cached. Each holds
the memory of its buffers, so it is dropped when one of them is freed. Idle buffers keep their bind
groups: see idle_buffers.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class BindGroups:
    """Bind groups, keyed by the serials of the pipeline and then of the buffers."""

    def __init__(self) -> None:
        self._group_by_key: dict[tuple[int, ...], Any] = {}
        self._keys_by_buffer: dict[int, set[tuple[int, ...]]] = {}

    def find(self, key: tuple[int, ...]) -> Any:
        return self._group_by_key.get(key)

    def keep(self, key: tuple[int, ...], group: Any) -> None:
        """Stores `group` under `key`."""
        self._group_by_key[key] = group
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def forget(self, ended: Iterable[int]) -> None:
        """Drops the bind groups of freed buffers."""
        for serial in ended:
            for key in self._keys_by_buffer.pop(serial, ()):
                self._group_by_key.pop(key, None)
                for other in key[1:]:
                    self._keys_by_buffer.get(other, set()).discard(key)
