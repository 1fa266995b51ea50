"""A cache of bind groups for later dispatches that bind the same resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

BINDING_LIMIT = 4096
"""The most bindings that are kept. One of slangpy's takes 8 KB."""

BoundT = TypeVar("BoundT")

Key = tuple[int, ...]
"""The serial of a pipeline or run, and the serials of its buffers."""


class KeptBindings(Generic[BoundT]):
    """Bind groups, or the equivalent of the library below, the oldest first.

    Creating one costs more than the rest of a dispatch. Each holds the memory of its buffers, so it
    is dropped when one of them is freed. Idle buffers keep their bindings.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._bound_by_key: dict[Key, BoundT] = {}
        self._keys_by_buffer: dict[int, set[Key]] = {}
        self.find: Callable[[Key], BoundT | None] = self._bound_by_key.get
        """Looks up the binding of a key; a bound method, because every dispatch calls it."""

    def keep(self, key: Key, bound: BoundT) -> None:
        """Adds a binding; drops the oldest one if there are too many."""
        if len(self._bound_by_key) >= (self._limit or BINDING_LIMIT):
            self._drop(next(iter(self._bound_by_key)))
        self._bound_by_key[key] = bound
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def count_of(self, serial: int) -> int:
        """The number of bindings of a buffer, texture or sampler."""
        return len(self._keys_by_buffer.get(serial, ()))

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
