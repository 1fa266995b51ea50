"""Float numbers that differ between traces of one function -> inputs of its graph.

In the first trace, every number is a constant. When two traces have equally many numbers but some
differ, the next trace takes those as inputs, so that its graph serves all later values.
Invariant: a number has the same meaning as an input and as a constant, whichever are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shaderad.trace.calls import TracedFunction

Groups = Mapping[int, int]
"""Position of a number in a trace -> its group; numbers of one group are always equal."""
NO_GROUPS: Groups = MappingProxyType({})
_KEPT_COUNTS = 8
_ATTEMPTS = 3


@dataclass(slots=True)
class _Numbers:
    """The numbers of all traces that have equally many of them."""

    texts: list[str]
    """The latest numbers, as text because 0.0 == -0.0 and nan != nan."""
    groups: list[int]
    varying: set[int]
    """The groups whose numbers have differed between traces."""


class VaryingNumbers:
    """The numbers in which the traces of one function have differed."""

    def __init__(self) -> None:
        self._by_count: dict[int, _Numbers] = {}
        self._groups: Groups = NO_GROUPS

    def traced(self, trace: Callable[[Groups], TracedFunction]) -> TracedFunction:
        """The result of `trace`, with the numbers that have varied as inputs."""
        for _ in range(_ATTEMPTS):
            groups = self._groups
            traced = trace(groups)
            self._groups = self._noted(traced.numbers)
            if self._groups == groups:
                return traced
        return trace(NO_GROUPS)  # It differs in every call.

    def _noted(self, numbers: Sequence[float]) -> Groups:
        """The groups of varying numbers, refined by these numbers."""
        texts = [*map(repr, numbers)]
        previous = self._by_count.get(len(texts))
        if previous is None:
            if len(self._by_count) >= _KEPT_COUNTS:
                self._by_count.clear()
            previous = self._by_count[len(texts)] = _Numbers(texts, [0] * len(texts), set())
        changed = [text != other for text, other in zip(texts, previous.texts, strict=True)]
        number_by_part: dict[tuple[int, str, bool], int] = {}
        parts = [*zip(previous.groups, texts, changed, strict=True)]
        groups = [number_by_part.setdefault(part, len(number_by_part)) for part in parts]
        varying = {
            group
            for group, (before, _, is_changed) in zip(groups, parts, strict=True)
            if is_changed or before in previous.varying
        }
        previous.texts, previous.groups, previous.varying = texts, groups, varying
        return {k: group for k, group in enumerate(groups) if group in varying}
