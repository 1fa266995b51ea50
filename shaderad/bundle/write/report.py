"""A build -> one row per entry point for `--report`: the memory traffic and atomics of a thread.

Bytes count whole elements in the lowered body, atomics are those of one thread. Invariant: a number
holds for every thread; a count that depends on data is `None`, and shown as ``varies``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from shaderad.bundle.write.programs import AnyBuild, EntryPoint
from shaderad.compiler.artifact import Access
from shaderad.lower.bindings import Addition
from shaderad.lower.prepare.traffic import Traffic, traffic_of


class AdditionRow(msgspec.Struct):
    """A read of an array whose cotangents are added to memory."""

    array: str
    line: int
    """The line in the Python file; 0 if there is none."""
    read: str
    """The Python text."""
    by: str
    """``wave`` if the threads of a wave sum first, else ``thread``."""


class ReportRow(msgspec.Struct):
    """One entry point for one target."""

    entry: str
    target: str
    entry_point: str
    mode: str
    read_bytes: int | None
    """Bytes that one thread reads."""
    written_bytes: int | None
    """Bytes that one thread writes."""
    atomics: int | None
    """Atomic additions of one thread."""
    group_atomics: int | None
    """Atomic additions of a workgroup, after its threads have summed."""
    strategies: dict[str, str]
    additions: list[AdditionRow]
    """The additions of ``scattered`` gradients."""
    storage_bindings: int
    code_bytes: int


def report_rows(builds: Iterable[AnyBuild]) -> list[ReportRow]:
    """A row for each entry point, in the order of the manifest."""
    return [
        _row(build.name, target, point)
        for build in builds
        for target, programs in build.by_target.items()
        for point in programs.entry_points
    ]


def _row(entry: str, target: str, point: EntryPoint) -> ReportRow:
    lowered = point.lowered
    traffic = None
    if point.source is not None:
        kernel, variant = point.source
        traffic = traffic_of(kernel, lowered.mode, variant)
    traffic = traffic or Traffic(None, None, None, None)
    return ReportRow(
        entry=entry,
        target=target,
        entry_point=lowered.program.name,
        mode=lowered.mode.value,
        read_bytes=traffic.read_bytes,
        written_bytes=traffic.written_bytes,
        atomics=traffic.atomics,
        group_atomics=traffic.group_atomics,
        strategies=dict(sorted(lowered.strategies.items())),
        additions=[*map(_addition, lowered.additions)],
        storage_bindings=sum(b.access is not Access.UNIFORM for b in lowered.program.bindings),
        code_bytes=len(point.code.content),
    )


def _addition(addition: Addition) -> AdditionRow:
    span = addition.span
    read = span.text()[span.column : span.end_column]
    return AdditionRow(addition.array, span.line, read, addition.by)


_HEAD = ("entry point", "target", "read", "written", "atomics", "a group", "buffers", "code")


def report_lines(rows: Iterable[ReportRow]) -> Iterator[str]:
    """A table; below each row the strategy of each gradient and its additions to memory."""
    rows = list(rows)
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    yield "bytes and atomics of one thread; varies: data or sizes decide"
    for line, row in zip(cells, [None, *rows], strict=True):
        texts, numbers = line[:2], line[2:]
        left = [text.ljust(width) for text, width in zip(texts, widths, strict=False)]
        right = [text.rjust(width) for text, width in zip(numbers, widths[2:], strict=True)]
        yield "  ".join((*left, *right))
        if row is not None:
            yield from _gradient_lines(row)


def _gradient_lines(row: ReportRow) -> Iterator[str]:
    for name, strategy in row.strategies.items():
        yield f"    gradient of {name}: {strategy}"
        for addition in row.additions:
            if addition.array == name:
                read = f"line {addition.line}, `{addition.read}`"
                yield f"        {read}: one add a {addition.by}"


def _cells(row: ReportRow) -> tuple[str, ...]:
    counts = (row.read_bytes, row.written_bytes, row.atomics, row.group_atomics)
    shown = ("varies" if count is None else str(count) for count in counts)
    return (row.entry_point, row.target, *shown, str(row.storage_bindings), str(row.code_bytes))
