"""The errors that a device would report: bounds, limits, asserts, divisions by zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from shaderad.diagnostics import Span
from shaderad.interpret.cells import AnyArray


class ReportKind(Enum):
    """The kind of error."""

    BOUNDS = "bounds"
    LIMIT = "limit"
    ASSERT = "assert"
    DIVISION = "division"


@dataclass(frozen=True, slots=True)
class RunReport:
    """An error at one place of the program, in the first thread that met it."""

    kind: ReportKind
    span: Span
    name: str
    """The array, the limit, or the assert's text."""
    thread: int
    """Row-major number of the thread."""
    index: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A line that one thread printed."""

    span: Span
    thread: int
    """Row-major number of the thread."""
    text: str


@dataclass(slots=True)
class RunReports:
    """All reports and printed lines of a run, in order of execution."""

    reports: list[RunReport] = field(default_factory=list[RunReport])
    printed: list[Line] = field(default_factory=list[Line])
    """The lines of each thread are in order; those of different threads are interleaved."""

    def add(self, kind: ReportKind, span: Span, name: str, threads: AnyArray) -> None:
        """Reports an error without index in `threads`, of which there may be none."""
        if threads.size:
            self.reports.append(RunReport(kind, span, name, int(threads.min())))

    def out_of_range(
        self, span: Span, name: str, threads: AnyArray, index: AnyArray, length: AnyArray
    ) -> None:
        """Reports that `threads`, of which there may be none, used `index` on axes of `length`."""
        if threads.size:
            first = int(np.argmin(threads))
            thread, i, count = int(threads[first]), int(index[first]), int(length[first])
            self.reports.append(RunReport(ReportKind.BOUNDS, span, name, thread, i, count))
