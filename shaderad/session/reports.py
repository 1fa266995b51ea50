"""The report buffer of a device -> the error a user sees.

Kernels never stop a dispatch: the first thread that meets something wrong leaves a record. Word 0
counts the reports; a record of four words follows: site id + 1, index, length, spare.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from shaderad.diagnostics import Error, error
from shaderad.lower.bindings import Site, SiteKind

REPORT_BYTES = 32
_RECORD = struct.Struct("<IIiiI")


@dataclass(frozen=True, slots=True)
class Report:
    """What the first report says."""

    count: int
    """Of all reports since the buffer was cleared."""
    site: int
    """Position in the device's table of sites."""
    index: int
    length: int


def decoded(raw: memoryview | bytes) -> Report | None:
    """The first report, or `None` where nothing was reported."""
    count, site, index, length, _ = _RECORD.unpack_from(raw)
    return Report(count, site - 1, index, length) if count and site else None


_CODE_BY_KIND = {
    SiteKind.BOUNDS: "SR0660",
    SiteKind.LIMIT: "SR0661",
    SiteKind.ASSERT: "SR0662",
    SiteKind.DIVISION: "SR0663",
    SiteKind.SHAPE: "SR0664",
}


def error_of(kernel: str, site: Site, report: Report) -> Error:
    """The error of `site` in `kernel`, at its Python line."""
    return error(
        _CODE_BY_KIND[site.kind],
        site.span,
        kernel=kernel,
        name=site.name,
        index=report.index,
        length=report.length,
        count=report.count,
    )
