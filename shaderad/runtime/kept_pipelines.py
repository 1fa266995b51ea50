"""A cache of pipelines by program, which also holds the most recently used ones.

A driver's pipeline takes megabytes, so a pipeline lives as long as the kernels, graphs and prepared
commands that dispatch it. The most recently used ones live longer, because a dropped program may
return, for example if a function makes a new graph at each call.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import ref

RECENT_LIMIT = 128
"""The number of most recently used pipelines that are kept even if nobody holds them."""

PipelineT = TypeVar("PipelineT")


class KeptPipelines(Generic[PipelineT]):
    """Pipelines by program."""

    def __init__(self) -> None:
        self.count = 0
        """The number of pipelines so far."""
        self._pipeline_by_program: dict[Hashable, tuple[ref[PipelineT], int]] = {}
        """Each with its number, in order of creation."""
        self._recent: dict[PipelineT, None] = {}
        """In the order of their last use."""

    def __len__(self) -> int:
        return sum(pipeline() is not None for pipeline, _ in self._pipeline_by_program.values())

    def find(self, program: Hashable) -> PipelineT | None:
        """The pipeline of `program`, or `None`. Marks it as the most recently used one."""
        entry = self._pipeline_by_program.get(program)
        pipeline = None if entry is None else entry[0]()
        if pipeline is not None:
            self._use(pipeline)
        return pipeline

    def keep(self, program: Hashable, pipeline: PipelineT) -> set[int]:
        """Adds a pipeline; returns the numbers of those that ended since the last addition."""
        self._pipeline_by_program.pop(program, None)
        self._pipeline_by_program[program] = ref(pipeline), self.count
        self.count += 1
        self._use(pipeline)
        # No callbacks of the references, because those may run at any moment.
        ended = {
            key: number
            for key, (pipeline_ref, number) in self._pipeline_by_program.items()
            if pipeline_ref() is None
        }
        for key in ended:
            del self._pipeline_by_program[key]
        return set(ended.values())

    def clear(self) -> None:
        self._pipeline_by_program.clear()
        self._recent.clear()

    def _use(self, pipeline: PipelineT) -> None:
        self._recent.pop(pipeline, None)
        self._recent[pipeline] = None
        if len(self._recent) > RECENT_LIMIT:
            del self._recent[next(iter(self._recent))]
