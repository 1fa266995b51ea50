"""A build -> the lines that the command prints, and the rows of `--report`.

A row has the memory traffic and atomics per thread of one entry point. Bytes count whole elements
in the lowered body. Invariant: a number is valid for every thread; a count that depends on data is
`None` and is shown as ``varies``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from shaderad.bundle.write.programs import AnyBuild, EntryPoint, Refusal
from shaderad.bundle.write.stages import Built
from shaderad.compiler.artifact import BindingAccess
from shaderad.compiler.validate import Status
from shaderad.ir.types import Access
from shaderad.lower.bindings import Addition, Mode, Role
from shaderad.lower.prepare.traffic import Traffic, traffic_of


class AdditionRow(msgspec.Struct):
    """A read whose cotangents are added to memory."""

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
    if point.source is not None and point.source[0].has_body:
        kernel, variant = point.source
        read = [resource for resource in lowered.resources if resource.role in _READ]
        bound = {name for resource in read for name in resource.members}
        inputs = {b.name for b in kernel.buffers if b.access is Access.IN}
        traffic = traffic_of(kernel, lowered.mode, variant, inputs - bound)
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
        storage_bindings=sum(
            b.access is not BindingAccess.UNIFORM for b in lowered.program.bindings
        ),
        code_bytes=len(point.code.content),
    )


def _addition(addition: Addition) -> AdditionRow:
    span = addition.span
    read = span.text()[span.column : span.end_column]
    return AdditionRow(addition.array, span.line, read, addition.by)


_READ = (Role.INPUT, Role.SAMPLED)
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


Kind = Literal["ok", "none", "fact"]


def summary_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    """The modes of each entry, the answers of validators, and the output folder."""
    entries = [*built.kernels, *built.graphs]
    width = max(len(each.name) for each in entries)
    for each in entries:
        yield from _entry_lines(each, width)
    yield from _validator_lines(built)
    yield from _verification_lines(built)
    yield f"wrote {len(built.files)} files to {built.folder}", "fact"


def _entry_lines(build: AnyBuild, width: int) -> Iterator[tuple[str, Kind]]:
    name, margin = f"{build.name:<{width}}", " " * width
    targets_by_state: dict[_State, list[str]] = {}
    for target, programs in build.by_target.items():
        state = (tuple(programs.by_mode), tuple(programs.refusals.items()))
        targets_by_state.setdefault(state, []).append(target)
    for (modes, refusals), targets in targets_by_state.items():
        names = ", ".join(map(_name, modes)) if len(modes) > 1 else "primal only"
        yield f"{name}  {names:<16}  {' '.join(targets)}", "none" if refusals else "ok"
        for mode, refusal in refusals:
            code = f"{refusal.code}: " if refusal.code else ""
            place = f" ({build.span.file_name}:{refusal.line})" if refusal.line else ""
            yield f"{margin}  no {_name(mode)}: {code}{refusal.reason}{place}", "none"


_State = tuple[tuple[Mode, ...], tuple[tuple[Mode, Refusal], ...]]


def _name(mode: Mode) -> str:
    return mode.name.lower()


def _validator_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    counts = Counter(j.validator for j in built.judgements if j.status is Status.ACCEPTED)
    for validator, count in sorted(counts.items()):
        yield f"{validator} accepts {count} of {count}", "ok"
    unavailable = Counter(
        (j.validator, f"{j.reason}; {j.remedy}" if j.remedy else j.reason)
        for j in built.judgements
        if j.status is Status.UNAVAILABLE
    )
    for (validator, reason), count in sorted(unavailable.items()):
        yield f"{validator} did not judge {count}: {reason}", "none"


def _verification_lines(built: Built) -> Iterator[tuple[str, Kind]]:
    targets_by_state: dict[tuple[str, str], list[str]] = {}
    for each in built.verifications:
        targets_by_state.setdefault((each.entry, each.reason), []).append(each.target)
    for (entry, reason), targets in targets_by_state.items():
        names = " ".join(targets)
        if reason:
            yield f"not verified: {entry} for {names}: {reason}", "none"
        else:
            yield f"gradient of {entry} verified for {names}", "ok"
