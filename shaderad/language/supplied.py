"""Functions that a room needs from a higher one, which `shaderad/__init__.py` names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

T = TypeVar("T")


class Supplied(Generic[T]):
    """Functions that are imported at their first use."""

    def __init__(self) -> None:
        self._load: Callable[[], T] | None = None

    def comes_from(self, load: Callable[[], T]) -> None:
        self._load = load

    @cached_property
    def functions(self) -> T:
        assert self._load is not None
        return self._load()
