"""Pipelines by their programs, for as long as somebody holds them, and the latest longer.

A driver's pipeline takes megabytes. Kernels, graphs and prepared commands hold the pipelines that
they dispatch; a program that nobody holds any more may come back, as where a function makes a graph
at each call.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import ref

RECENT_LIMIT = 128
"""The most recently used pipelines, which are kept even if nobody holds them."""

PipelineT = TypeVar("PipelineT")


class KeptPipelines(Generic[PipelineT]):
    """Pipelines by program."""

    def __init__(self) -> None:
        self.count = 0
        """The number of pipelines so far."""
        self._known: dict[Hashable, tuple[ref[PipelineT], int]] = {}
        """Each with its number, in order of creation."""
        self._recent: dict[PipelineT, None] = {}
        """The longest unused first."""

    def __len__(self) -> int:
        return sum(pipeline() is not None for pipeline, _ in self._known.values())

    def find(self, program: Hashable) -> PipelineT | None:
        """The pipeline of `program`, which is the most recent one from now on."""
        known = self._known.get(program)
        pipeline = None if known is None else known[0]()
        if pipeline is not None:
            self._use(pipeline)
        return pipeline

    def keep(self, program: Hashable, pipeline: PipelineT) -> set[int]:
        """Adds a pipeline; returns the numbers of those that ended since the last addition."""
        self._known.pop(program, None)
        self._known[program] = ref(pipeline), self.count
        self.count += 1
        self._use(pipeline)
        # Not by callbacks of the references: those are called at any moment.
        ended = {p: number for p, (known, number) in self._known.items() if known() is None}
        for one in ended:
            del self._known[one]
        return set(ended.values())

    def clear(self) -> None:
        self._known.clear()
        self._recent.clear()

    def _use(self, pipeline: PipelineT) -> None:
        self._recent.pop(pipeline, None)
        self._recent[pipeline] = None
        if len(self._recent) > RECENT_LIMIT:
            del self._recent[next(iter(self._recent))]
