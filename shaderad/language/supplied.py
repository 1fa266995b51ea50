"""Functions that a room asks of a higher one, which the package names (`shaderad/__init__.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

T = TypeVar("T")


class Supplied(Generic[T]):
    """Functions that the first use imports."""

    def __init__(self) -> None:
        self._load: Callable[[], T] | None = None

    def comes_from(self, load: Callable[[], T]) -> None:
        self._load = load

    @cached_property
    def functions(self) -> T:
        assert self._load is not None
        return self._load()
