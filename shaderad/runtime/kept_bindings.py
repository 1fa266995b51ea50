"""A cache of bind groups for later dispatches that bind the same resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

BoundT = TypeVar("BoundT")

Key = tuple[int, ...]
"""The serial of a pipeline, followed by those of the buffers that it binds."""


class KeptBindings(Generic[BoundT]):
    """Bind groups, or the equivalent of the library below.

    Creating one costs more than the rest of a dispatch. Each holds the memory of its buffers, so it
    is dropped when one of them is freed. Idle buffers keep their bindings.
    """

    def __init__(self) -> None:
        self._bound_by_key: dict[Key, BoundT] = {}
        self._keys_by_buffer: dict[int, set[Key]] = {}
        self.find: Callable[[Key], BoundT | None] = self._bound_by_key.get
        """Looks up the binding of a key; a bound method, because every dispatch calls it."""

    def keep(self, key: Key, bound: BoundT) -> None:
        self._bound_by_key[key] = bound
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def forget(self, ended: Iterable[int]) -> None:
        """Drops the bindings of the buffers with these serials."""
        for serial in ended:
            for key in self._keys_by_buffer.pop(serial, ()):
                self._drop(key)

    def forget_pipelines(self, ended: Collection[int]) -> None:
        """Drops the bindings of the pipelines with these serials."""
        if ended:
            for key in [key for key in self._bound_by_key if key[0] in ended]:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        self._bound_by_key.pop(key, None)
        for serial in key[1:]:
            self._keys_by_buffer.get(serial, set()).discard(key)

    def clear(self) -> None:
        self._bound_by_key.clear()
        self._keys_by_buffer.clear()
