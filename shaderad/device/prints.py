"""The print buffer of a device -> lines on ``stdout``.

Threads run in any order, so each record says its dispatch, its thread and its number in that
thread (shaders/prints.slang); lines come in that order. Invariant: what did not fit is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.device.reports import element_of
from shaderad.ir.shown import PrintForm, words_of
from shaderad.ir.types import Kind, LocalArray, Matrix, Scalar, Struct, Type, Vector
from shaderad.language.annotations import NUMPY_BY_KIND
from shaderad.lower.bindings import Site

PRINT_BYTES = 1 << 20
"""Of the buffer, header included; `printCapacity` of shaders/prints.slang follows from it."""
HEADER_BYTES = 16
_HEADER = struct.Struct("<III")
_RECORD = struct.Struct("<7I")

SiteOf = Callable[[int], tuple[str, Site]]
"""The kernel and place of a number in the device's table."""


@dataclass(frozen=True, slots=True)
class _Record:
    launch: int
    thread: int
    number: int
    kernel: str
    site: Site
    element: str
    text: str


def has_prints(header: memoryview | bytes) -> bool:
    """Whether any thread has printed since the buffer was cleared."""
    return any(_HEADER.unpack_from(header))


def printed(raw: memoryview | bytes, site_of: SiteOf) -> str:
    """What the threads printed, as one text.

    Each line begins with kernel, thread and Python line; one whose end is not a new line is
    continued by the next of its thread.
    """
    records = sorted(_records(raw, site_of), key=lambda r: (r.launch, r.thread, r.number))
    parts: list[str] = []
    last: _Record | None = None
    for record in records:
        is_open = last is not None and not last.text.endswith("\n")
        follows = is_open and last is not None and _owner(last) == _owner(record)
        if is_open and not follows:
            parts.append("\n")
        if record.text:
            parts.append(record.text if follows else f"{_place(record)}: {record.text}")
            last = record
    if last is not None and not last.text.endswith("\n"):
        parts.append("\n")
    parts += _left_out(raw)
    return "".join(parts)


def _owner(record: _Record) -> tuple[int, int]:
    return (record.launch, record.thread)


def _place(record: _Record) -> str:
    span = record.site.span
    return f"{record.kernel}[{record.element}] {span.file_name}:{span.line}"


def _left_out(raw: memoryview | bytes) -> Iterator[str]:
    _, low, high = _HEADER.unpack_from(raw)
    count = low + (high << 32)
    if count:
        size = f"{PRINT_BYTES >> 20} MiB"
        what = "line that kernels printed" if count == 1 else "lines that kernels printed"
        yield f"shaderad: {count} more {what} did not fit in the buffer of {size}\n"


def _records(raw: memoryview | bytes, site_of: SiteOf) -> Iterator[_Record]:
    claimed, _, _ = _HEADER.unpack_from(raw)
    end = min(HEADER_BYTES + 4 * claimed, PRINT_BYTES)
    offset = HEADER_BYTES
    while offset + _RECORD.size <= end:
        number, launch, thread, count, *inner = _RECORD.unpack_from(raw, offset)
        if not number:
            return  # The first print that did not fit claimed the rest.
        kernel, site = site_of(number - 1)
        form = site.form
        assert form is not None
        values = raw[offset + _RECORD.size : offset + _RECORD.size + 4 * form.word_count]
        element = element_of(thread, inner)
        yield _Record(launch, thread, count, kernel, site, element, _text(form, values))
        offset += _RECORD.size + 4 * form.word_count


def _text(form: PrintForm, raw: memoryview | bytes) -> str:
    words = _Words(raw)
    return form.text([words.value(t) for t in form.types])


class _Words:
    """Reads values from words, each scalar from words of its own."""

    def __init__(self, raw: memoryview | bytes) -> None:
        self._raw = raw
        self._offset = 0

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
        count = words_of(t)
        kind = Kind.FLOAT if t.kind is Kind.HALF else Kind.UINT if t.kind is Kind.BOOL else t.kind
        (found,) = np.frombuffer(self._raw, NUMPY_BY_KIND[kind], 1, 4 * self._offset)
        self._offset += count
        return NUMPY_BY_KIND[t.kind](found) if kind is not t.kind else found
