"""What a run met that a device would report: bounds, limits, asserts, divisions by zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from shaderad.diagnostics import Span
from shaderad.interpret.cells import AnyArray


class ReportKind(Enum):
    """What was wrong."""

    BOUNDS = "bounds"
    LIMIT = "limit"
    ASSERT = "assert"
    DIVISION = "division"


@dataclass(frozen=True, slots=True)
class Report:
    """One place of the program where something was wrong, and the first thread it was wrong in."""

    kind: ReportKind
    span: Span
    name: str
    """The array, the limit, or the assert's text."""
    thread: int
    """Its row-major number."""
    index: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """What one thread printed at one place."""

    span: Span
    thread: int
    """Its row-major number."""
    text: str


@dataclass(slots=True)
class Reports:
    """All reports of a run, in the order they came."""

    found: list[Report] = field(default_factory=list[Report])
    printed: list[Line] = field(default_factory=list[Line])
    """In the order in which each thread printed; threads come in any order."""

    def add(self, kind: ReportKind, span: Span, name: str, threads: AnyArray) -> None:
        """Notes that `threads`, which may be none, met something that has no index."""
        if threads.size:
            self.found.append(Report(kind, span, name, int(threads.min())))

    def out_of_range(
        self, span: Span, name: str, threads: AnyArray, index: AnyArray, length: AnyArray
    ) -> None:
        """Notes that `threads`, which may be none, used `index` on axes of `length`."""
        if threads.size:
            first = int(np.argmin(threads))
            thread, i, count = int(threads[first]), int(index[first]), int(length[first])
            self.found.append(Report(ReportKind.BOUNDS, span, name, thread, i, count))
