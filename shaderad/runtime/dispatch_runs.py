"""Dispatches that follow each other and are recorded again and again, always with the same words.

A runtime keeps what the library below needs of them, by the buffers that they use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_RUN = 64
"""Dispatches; a submission may follow each run."""
KEPT_RUNS = 256
"""The most combinations of a run and its buffers that a runtime keeps."""


@dataclass(frozen=True, slots=True)
class FixedDispatch:
    """A dispatch whose words do not change."""

    pipeline: Any
    """A `Pipeline`."""
    numbers: tuple[int, ...]
    """By storage slot of the pipeline: the position of its buffer among those of the run."""
    words: bytes
    groups: tuple[int, int, int]


class DispatchRun:
    """Fixed dispatches that follow each other; whoever records it keeps it."""

    __slots__ = ("dispatches", "numbers", "serial")

    def __init__(self, dispatches: Sequence[FixedDispatch], serial: int) -> None:
        self.dispatches = dispatches
        self.serial = serial
        """Its number in the runtime."""
        self.numbers = sorted({k for dispatch in dispatches for k in dispatch.numbers})
