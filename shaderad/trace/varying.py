"""Float numbers in which the traces of one function differ: they become inputs of its graph.

The first trace has every number as a constant. Once two traces have as many numbers and differ in
some, a further trace takes those as inputs, so that its graph serves all values that follow.
Invariant: a number as an input means what it means as a constant, whichever numbers are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shaderad.trace.calls import TracedFunction

Groups = Mapping[int, int]
"""Position of a number among those of a trace -> the group whose numbers are always equal."""
NO_GROUPS: Groups = MappingProxyType({})
_KEPT_COUNTS = 8
_ATTEMPTS = 3


@dataclass(slots=True)
class _Numbers:
    """The numbers of the traces that have equally many."""

    texts: list[str]
    """The latest numbers. By text, because 0.0 == -0.0 and nan != nan."""
    groups: list[int]
    varying: set[int]
    """The groups whose numbers have differed between traces."""


class VaryingNumbers:
    """The numbers in which the traces of one function have differed."""

    def __init__(self) -> None:
        self._by_count: dict[int, _Numbers] = {}
        self._groups: Groups = NO_GROUPS

    def traced(self, trace: Callable[[Groups], TracedFunction]) -> TracedFunction:
        """The trace that `trace` gives with the numbers of these positions as inputs."""
        for _ in range(_ATTEMPTS):
            groups = self._groups
            traced = trace(groups)
            self._groups = self._noted(traced.numbers)
            if self._groups == groups:
                return traced
        return trace(NO_GROUPS)  # It is different at every call.

    def _noted(self, numbers: Sequence[float]) -> Groups:
        """The groups that hold for these numbers, too."""
        texts = [*map(repr, numbers)]
        known = self._by_count.get(len(texts))
        if known is None:
            if len(self._by_count) >= _KEPT_COUNTS:
                self._by_count.clear()
            known = self._by_count[len(texts)] = _Numbers(texts, [0] * len(texts), set())
        changed = [text != other for text, other in zip(texts, known.texts, strict=True)]
        number_by_part: dict[tuple[int, str, bool], int] = {}
        parts = [*zip(known.groups, texts, changed, strict=True)]
        groups = [number_by_part.setdefault(part, len(number_by_part)) for part in parts]
        varying = {
            group
            for group, (before, _, is_changed) in zip(groups, parts, strict=True)
            if is_changed or before in known.varying
        }
        known.texts, known.groups, known.varying = texts, groups, varying
        return {k: group for k, group in enumerate(groups) if group in varying}
