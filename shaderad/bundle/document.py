"""`manifest.json` as a whole; its parts are in description.py and graph_description.py."""

from __future__ import annotations

from typing import Literal

import msgspec

from shaderad.bundle.description import (
    SCHEMA,
    SCHEMA_FILE,
    SCHEMA_VERSION,
    KernelEntry,
    Layout,
    TargetEntry,
)
from shaderad.bundle.field_types import Name, Number
from shaderad.bundle.graph_description import GraphEntry
from shaderad.session.reports import REPORT_BYTES


class Verdicts(msgspec.Struct):
    """What naga, which reads SPIR-V and WGSL for wgpu, said of the code."""

    wgpu_native: Name
    """The version that was asked; another one may say something else. `sad.load` believes the
    verdicts of its own machine alone."""
    accepts: dict[Name, bool]
    """By file. What is refused may end a process that hands it to wgpu all the same."""


class Manifest(msgspec.Struct, kw_only=True):
    """What `shaderad build` wrote, and how to run it."""

    json_schema: str = msgspec.field(name="$schema", default=SCHEMA_FILE)
    """The file beside this one that describes it."""
    schema: Literal["shaderad-manifest"] = SCHEMA
    schema_version: int = SCHEMA_VERSION
    """Of this form; a host that knows another one cannot read it."""
    shaderad: Name
    """The version that wrote it."""
    digest: Name
    """SHA-256 of this file with 64 zeros in place of this hash."""
    compiler: Name
    slang_library: Name
    """The folder of what the Slang texts import."""
    kernels: list[KernelEntry]
    graphs: list[GraphEntry]
    targets: dict[Name, TargetEntry] = {}
    types: dict[Name, Layout]
    """Every element type that is named, inner ones first."""
    report_bytes: Number = REPORT_BYTES
    """The least size of the buffer that is bound where a role is ``report``."""
    header: Name = ""
    """The file of constants and structs for C and C++."""
    verdicts: Verdicts | None = None
    """Only of a build with ``--vet``."""
    files: dict[Name, Name]
    """SHA-256 of every file of the folder but this one, by path."""
