"""What was built -> one row an entry point for `--report`: what a thread moves, binds and adds.

Bytes are those of whole elements in the lowered body, atomics those of one thread. Invariant: a
number is what every thread does; where data decide it is `None`, and shown as ``varies``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from shaderad.bundle.graph_entries import BuiltGraph
from shaderad.bundle.manifest import BuiltKernel
from shaderad.bundle.programs import Dispatch
from shaderad.lower.artifact import Access
from shaderad.lower.bindings import Addition
from shaderad.lower.traffic import Traffic, traffic_of


class AdditionRow(msgspec.Struct):
    """A read whose cotangents are added to memory."""

    array: str
    line: int
    """Of the Python file; 0 where no line of it says so."""
    read: str
    """As Python has it."""
    by: str
    """``wave``, where the threads of a wave sum theirs first, or ``thread``."""


class ReportRow(msgspec.Struct):
    """One entry point for one target."""

    entry: str
    target: str
    entry_point: str
    mode: str
    read_bytes: int | None
    """Of one thread."""
    written_bytes: int | None
    atomics: int | None
    """Of one thread."""
    group_atomics: int | None
    """Of a workgroup, after its threads have summed."""
    strategies: dict[str, str]
    additions: list[AdditionRow]
    """Of ``scattered`` gradients."""
    storage_bindings: int
    code_bytes: int


def report_rows(entries: Iterable[BuiltKernel | BuiltGraph]) -> list[ReportRow]:
    """A row for each entry point, in the order of the manifest."""
    return [
        _row(built.name, target, dispatch)
        for built in entries
        for target, programs in built.by_target.items()
        for dispatch in programs.dispatches
    ]


def _row(entry: str, target: str, dispatch: Dispatch) -> ReportRow:
    lowered = dispatch.lowered
    known = _traffic(dispatch) or Traffic(None, None, None, None)
    return ReportRow(
        entry=entry,
        target=target,
        entry_point=lowered.program.name,
        mode=lowered.mode.value,
        read_bytes=known.read_bytes,
        written_bytes=known.written_bytes,
        atomics=known.atomics,
        group_atomics=known.group_atomics,
        strategies=dict(sorted(lowered.strategies.items())),
        additions=[_addition(one) for one in lowered.additions],
        storage_bindings=sum(b.access is not Access.UNIFORM for b in lowered.program.bindings),
        code_bytes=len(dispatch.code.content),
    )


def _addition(one: Addition) -> AdditionRow:
    read = one.span.text()[one.span.column : one.span.end_column]
    return AdditionRow(one.array, one.span.line, read, one.by)


def _traffic(dispatch: Dispatch) -> Traffic | None:
    if dispatch.source is None:
        return None
    kernel, variant = dispatch.source
    return traffic_of(kernel, dispatch.lowered.mode, variant)


_HEAD = ("entry point", "target", "read", "written", "atomics", "a group", "buffers", "code")


def report_lines(rows: Iterable[ReportRow]) -> Iterator[str]:
    """A table; under each row how its gradients are summed, those in memory read by read."""
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
        for one in row.additions:
            if one.array == name:
                yield f"        line {one.line}, `{one.read}`: one add a {one.by}"


def _cells(row: ReportRow) -> tuple[str, ...]:
    counts = (row.read_bytes, row.written_bytes, row.atomics, row.group_atomics)
    shown = ("varies" if count is None else str(count) for count in counts)
    return (row.entry_point, row.target, *shown, str(row.storage_bindings), str(row.code_bytes))
