"""The report buffer of a device -> the user's error; its print buffer -> lines on ``stdout``.

Reports: kernels never stop a dispatch. Word 0 counts the threads that found an error; the first
leaves a record in words 1 to 3: site id + 1, index, length. Kernels with `checks` write longer
records to slots of eight words behind this header, and word 5 counts the slots
(shaders/reports.slang). Of these, the host reports the lowest element of the first dispatch.

Prints: threads run in any order, so each record names its dispatch, its thread and its number in
the thread (shaders/prints.slang); lines are sorted by these. Invariant: lines that do not fit are
counted.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.diagnostics import Error, error
from shaderad.ir.shown import words_of
from shaderad.ir.types import Kind, LocalArray, Matrix, Scalar, Struct, Type, Vector
from shaderad.language.annotations import NUMPY_BY_KIND
from shaderad.lower.bindings import Site, SiteKind

HEADER_BYTES = 32
SLOT_BYTES = 32
SLOT_COUNT = 64
REPORT_BYTES = HEADER_BYTES + SLOT_COUNT * SLOT_BYTES
_HEADER = struct.Struct("<IIii4xI")
_SLOT = struct.Struct("<IiiIIIII")


@dataclass(frozen=True, slots=True)
class Report:
    """The first record of the report buffer."""

    count: int
    """All reports since the buffer was cleared."""
    site: int
    """Position in the device's table of sites."""
    index: int
    length: int
    slot_count: int = 0
    """The number of records of kernels with `checks`, from which `lowest` chooses."""
    element: str = ""
    """Index of the thread, if a kernel with `checks` reported."""


def decoded(header: memoryview | bytes) -> Report | None:
    """The first report, or `None` if nothing was reported."""
    count, site, index, length, slot_count = _HEADER.unpack_from(header)
    if not count or not (site or slot_count):
        return None
    return Report(count, site - 1, index, length, slot_count)


def lowest(raw: memoryview | bytes, first: Report) -> Report:
    """Among the reports in slots, that of the lowest element of the first dispatch."""
    filled = min(first.slot_count, SLOT_COUNT)
    slots = [_SLOT.unpack_from(raw, HEADER_BYTES + k * SLOT_BYTES) for k in range(filled)]
    site, index, length, thread, _, *inner = min(slots, key=lambda slot: (slot[4], slot[3]))
    return Report(first.count, site - 1, index, length, filled, element_of(thread, inner))


def element_of(thread: int, inner: list[int]) -> str:
    """The Index values of `thread`; `inner` are the extents after the first axis, 0 for none."""
    extents = [extent for extent in inner if extent]
    position: list[int] = []
    for extent in reversed(extents):
        thread, rest = divmod(thread, extent)
        position.insert(0, rest)
    return ", ".join(map(str, [thread, *position]))


_CODE_BY_KIND = {
    SiteKind.BOUNDS: "SR0660",
    SiteKind.LIMIT: "SR0661",
    SiteKind.ASSERT: "SR0662",
    SiteKind.DIVISION: "SR0663",
    SiteKind.SHAPE: "SR0664",
    SiteKind.WRITES: "SR0669",
}
# Indexed by the length that `watched` of shaders/checks.slang reports: a value, tangent or
# cotangent.
_FINITE_CODES = ("SR0666", "SR0667", "SR0668")
_VALUES = ("", "NaN", "inf", "-inf")


_GENERATED = re.compile(r"[sxy]\d+")
"""Names of arrays in generated kernels."""


def combined(failures: Sequence[Error]) -> Error:
    """The first of `failures`, with the others in its note; equal ones are counted."""
    first, *others = failures
    if not others:
        return first
    count_by_line = Counter(map(_line, failures))
    own = count_by_line.pop(_line(first))
    notes = [first.note, *([f"reported {own} times"] if own > 1 else [])]
    for line, count in count_by_line.items():
        times = f", {count} times" if count > 1 else ""
        notes.append(f"also reported{times}: {line}")
    return type(first)(first.code, first.message, span=first.span, label=first.label,
                       note="\n".join(notes), help=first.help)  # fmt: skip


def _line(failure: Error) -> str:
    """Code, message and place of an error."""
    place = "" if failure.span is None else f" ({failure.span.place})"
    return f"{failure.code} {failure.message}{place}"


def unknown_report(report: Report) -> Error:
    """The error SR0677 for a report that no kernel of the device writes."""
    return error("SR0677", site=report.site, index=report.index, length=report.length)


def error_of(kernel: str, site: Site, report: Report) -> Error:
    """The error of `site` at its Python line.

    Args:
        kernel: The name of the user's kernel; empty for generated kernels.
        site: The statement that reported.
        report: The values that it reported.
    """
    place = f" in kernel `{kernel}`" if kernel else ""
    is_unnamed = not kernel and _GENERATED.fullmatch(site.name)
    if site.kind is SiteKind.FINITE:
        if not (0 <= report.length < len(_FINITE_CODES) and 0 <= report.index < len(_VALUES)):
            return unknown_report(report)
        return error(
            _FINITE_CODES[report.length],
            site.span,
            place=place,
            name=site.name,
            value=_VALUES[report.index],
            element=report.element,
            count=report.count,
        )
    return error(
        _CODE_BY_KIND[site.kind],
        site.span,
        place=place,
        name=site.name,
        array="an array" if is_unnamed else f"`{site.name}`",
        index=report.index,
        length=report.length,
        count=report.count,
    )


# -- prints ------------------------------------------------------------------------------------

PRINT_BYTES = 1 << 20
"""The whole buffer; `printCapacity` of shaders/prints.slang follows from it."""
PRINT_HEADER_BYTES = 16
_PRINT_HEADER = struct.Struct("<III")
_PRINT_RECORD = struct.Struct("<7I")

SiteOf = Callable[[int], tuple[str, Site]]
"""Maps a number to the kernel and site that it has in the device's table."""


@dataclass(frozen=True, slots=True)
class _Record:
    launch: int
    thread: int
    number: int
    place: str
    text: str


def has_prints(header: memoryview | bytes) -> bool:
    """True if any thread has printed since the buffer was cleared."""
    return any(_PRINT_HEADER.unpack_from(header))


def printed(raw: memoryview | bytes, site_of: SiteOf) -> str:
    """The lines that threads printed, as one text.

    Each line begins with kernel, thread and Python line. If a text does not end with a new line,
    the next text of its thread continues it.
    """
    records = sorted(_records(raw, site_of), key=lambda r: (r.launch, r.thread, r.number))
    parts: list[str] = []
    last: _Record | None = None
    for record in records:
        is_open = last is not None and not last.text.endswith("\n")
        owner = (record.launch, record.thread)
        follows = is_open and last is not None and owner == (last.launch, last.thread)
        if is_open and not follows:
            parts.append("\n")
        if record.text:
            parts.append(record.text if follows else f"{record.place}: {record.text}")
            last = record
    if last is not None and not last.text.endswith("\n"):
        parts.append("\n")
    parts += _left_out(raw)
    return "".join(parts)


def _left_out(raw: memoryview | bytes) -> Iterator[str]:
    _, low, high = _PRINT_HEADER.unpack_from(raw)
    count = low + (high << 32)
    if count:
        size = f"{PRINT_BYTES >> 20} MiB"
        lines = "line that kernels printed" if count == 1 else "lines that kernels printed"
        yield f"shaderad: {count} more {lines} did not fit in the buffer of {size}\n"


def _records(raw: memoryview | bytes, site_of: SiteOf) -> Iterator[_Record]:
    claimed, _, _ = _PRINT_HEADER.unpack_from(raw)
    end = min(PRINT_HEADER_BYTES + 4 * claimed, PRINT_BYTES)
    offset = PRINT_HEADER_BYTES
    while offset + _PRINT_RECORD.size <= end:
        number, launch, thread, count, *inner = _PRINT_RECORD.unpack_from(raw, offset)
        if not number:
            return  # The first print that did not fit claimed the rest of the buffer.
        kernel, site = site_of(number - 1)
        form = site.form
        assert form is not None
        words = _Words(raw, offset + _PRINT_RECORD.size)
        text = form.text([words.value(t) for t in form.types])
        place = f"{kernel}[{element_of(thread, inner)}] {site.span.file_name}:{site.span.line}"
        yield _Record(launch, thread, count, place, text)
        offset += _PRINT_RECORD.size + 4 * form.word_count


@dataclass
class _Words:
    """Reads values from the words of a print; scalars do not share words."""

    raw: memoryview | bytes
    offset: int

    def value(self, t: Type) -> Any:
        if isinstance(t, Scalar):
            return self._scalar(t)
        if isinstance(t, Struct):
            return {name: self.value(field) for name, field in t.fields}
        assert isinstance(t, Vector | Matrix | LocalArray)
        if isinstance(t, Matrix):
            return [self.value(t.row) for _ in range(t.row_count)]
        return [self.value(t.element) for _ in range(t.count)]

    def _scalar(self, t: Scalar) -> Any:
        kind = Kind.FLOAT if t.kind is Kind.HALF else Kind.UINT if t.kind is Kind.BOOL else t.kind
        (value,) = np.frombuffer(self.raw, NUMPY_BY_KIND[kind], 1, self.offset)
        self.offset += 4 * words_of(t)
        return NUMPY_BY_KIND[t.kind](value) if kind is not t.kind else value
