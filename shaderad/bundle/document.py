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
from shaderad.bundle.graph_description import GraphEntry
from shaderad.session.reports import REPORT_BYTES


class Verdicts(msgspec.Struct):
    """What naga, which reads SPIR-V and WGSL for wgpu, said of the code."""

    wgpu_native: str
    """The version that was asked; another one may say something else."""
    accepts: dict[str, bool]
    """By file. What is refused may end a process that hands it to wgpu all the same."""


class Manifest(msgspec.Struct, kw_only=True):
    """What `shaderad build` wrote, and how to run it."""

    json_schema: str = msgspec.field(name="$schema", default=SCHEMA_FILE)
    """The file beside this one that describes it."""
    schema: Literal["shaderad-manifest"] = SCHEMA
    schema_version: int = SCHEMA_VERSION
    """Of this form; a host that knows another one cannot read it."""
    shaderad: str
    """The version that wrote it."""
    compiler: str
    slang_library: str
    """The folder of what the Slang texts import."""
    kernels: list[KernelEntry]
    graphs: list[GraphEntry]
    targets: dict[str, TargetEntry] = {}
    types: dict[str, Layout]
    """Every element type that is named, inner ones first."""
    report_bytes: int = REPORT_BYTES
    """The least size of the buffer that is bound where a role is ``report``."""
    header: str = ""
    """The file of constants and structs for C and C++."""
    verdicts: Verdicts | None = None
    """Only of a build with ``--vet``."""
    files: dict[str, str]
    """SHA-256 of every file of the folder but this one, by path."""
