"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_TITLES = ("kernel", "kind", "count", "ms", "MB", "MFLOP", "% of copy", "% of FMA")
_LEFT_COLUMNS, _LEAST_WIDTH = 2, 8


class _Row(Protocol):
    """The fields of `ProfileRow`."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def device_ms(self) -> float | None: ...
    @property
    def bytes(self) -> int: ...
    @property
    def operations(self) -> float | None: ...
    @property
    def percent_of_copy(self) -> float | None: ...
    @property
    def percent_of_fma(self) -> float | None: ...


def table(rows: Sequence[_Row], compile_ms: float, upload_ms: float, wait_ms: float) -> str:
    """The lines of a table, and of what the host waited for."""
    lines = _lines(rows) if rows else ["no kernel ran on this device"]
    spent = {"compiling": compile_ms, "uploading": upload_ms, "waiting": wait_ms}
    lines.append("host: " + ", ".join(f"{time:.1f} ms {doing}" for doing, time in spent.items()))
    return "\n".join(lines)


def _lines(rows: Sequence[_Row]) -> list[str]:
    """A line of titles, one for each row, and the sum of times."""
    cells = [_TITLES, *map(_cells, rows)]
    widths = [max(_LEAST_WIDTH, *map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(row, widths) for row in cells]
    times = [row.device_ms for row in rows if row.device_ms is not None]
    if len(times) == len(rows):
        lines.append(f"{sum(times):.3f} ms on the device")
    else:
        lines.append("no times: this device has no timestamp queries")
    return lines


def _cells(row: _Row) -> tuple[str, ...]:
    return (
        row.name,
        row.kind,
        str(row.count),
        _number(row.device_ms, 3),
        _number(1e-6 * row.bytes, 2),
        _number(None if row.operations is None else 1e-6 * row.operations, 2),
        _number(row.percent_of_copy, 1),
        _number(row.percent_of_fma, 1),
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if k < _LEFT_COLUMNS else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
