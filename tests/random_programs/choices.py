"""Every decision of the generator, drawn from hypothesis so that it can shrink a program.

The first alternative is what hypothesis shrinks to: the simplest one stands first everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[int]], int]


@functools.cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Choices:
    """Small decisions in a row."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        return self._draw(_below(count)) if count > 1 else 0

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One option, as often as its weight says; the first is the simplest."""
        at = self.below(sum(weight for weight, _ in options))
        for weight, option in options:
            if at < weight:
                return option
            at -= weight
        raise AssertionError(at)
