"""Values that live as long as the kernels and graphs that they belong to.

As `weakref.WeakKeyDictionary`, whose clean-up is a Python function, though: where it is the first
to run after a garbage collection, an interrupt that came meanwhile is raised in it, and lost.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class WeakKeys(Generic[K, V]):
    """A dict that does not keep its keys alive."""

    def __init__(self) -> None:
        self._value_by_key: dict[ref[K], V] = {}
        self._dead: deque[ref[K]] = deque()
        self._note = self._dead.append

    def get(self, key: K) -> V | None:
        return self._value_by_key.get(ref(key))

    def setdefault(self, key: K, default: V) -> V:
        """The value of `key`, which is `default` from now on where it had none."""
        while self._dead:
            self._value_by_key.pop(self._dead.popleft(), None)
        return self._value_by_key.setdefault(ref(key, self._note), default)

    def clear(self) -> None:
        self._value_by_key.clear()
