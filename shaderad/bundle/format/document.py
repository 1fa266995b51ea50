"""The top level of `manifest.json`; see description.py, plans.py and entries.py for its parts."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from shaderad.bundle.format.description import (
    SCHEMA,
    SCHEMA_FILE,
    SCHEMA_VERSION,
    Layout,
    Name,
    Number,
    TargetEntry,
)
from shaderad.bundle.format.entries import GraphEntry, KernelEntry
from shaderad.device.reports import REPORT_BYTES


class Verdicts(msgspec.Struct):
    """The verdicts of naga, which reads SPIR-V and WGSL for wgpu."""

    wgpu_native: Name
    """The version that gave the verdicts; others may differ. `sad.load` trusts only the verdicts
    of its own machine."""
    accepts: dict[Name, bool]
    """By file. Passing refused code to wgpu may end the process."""


class Manifest(msgspec.Struct, kw_only=True):
    """The output of `shaderad build`, and how to run it."""

    json_schema: str = msgspec.field(name="$schema", default=SCHEMA_FILE)
    """The JSON Schema of this file, in the same folder."""
    schema: Literal["shaderad-manifest"] = SCHEMA
    schema_version: int = SCHEMA_VERSION
    """The version of this format; a host for another version cannot read it."""
    shaderad: Name
    """The version of shaderad that wrote this file."""
    digest: Name
    """SHA-256 of this file with 64 zeros in place of this hash."""
    compiler: Name
    slang_library: Name
    """The folder of the Slang library that the texts import."""
    entries: list[KernelEntry | GraphEntry]
    targets: dict[Name, TargetEntry] = {}
    types: dict[Name, Layout]
    """Every element type that this file names, inner types first."""
    report_bytes: Number = REPORT_BYTES
    """The minimum size of the buffer to bind for the role ``report``."""
    header: Name = ""
    """The file of constants and structs for C and C++."""
    verdicts: Verdicts | None = None
    """Present in builds with ``--vet``."""
    files: dict[Name, Name]
    """The SHA-256 of every other file of the folder, by path."""


BLANK = "0" * 64

_FIELD = re.compile(rb'"digest": ?"([0-9a-f]{64})"')


def with_digest(text: bytes) -> bytes:
    """The manifest `text` with its hash in the first field `digest`."""
    field = _FIELD.search(text)
    if field is None:
        raise ValueError("a manifest without a field `digest`")
    start, end = field.span(1)
    blank = text[:start] + BLANK.encode() + text[end:]
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[end:]


def is_intact(text: bytes) -> bool:
    """True if the hash in the manifest `text` matches the text."""
    return _FIELD.search(text) is not None and with_digest(text) == text
