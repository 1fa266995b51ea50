"""`manifest.json` as a whole; its parts are in description.py and graph_description.py."""

from __future__ import annotations

import msgspec

from shaderad.bundle.description import SCHEMA, SCHEMA_VERSION, KernelEntry, Layout, TargetEntry
from shaderad.bundle.graph_description import GraphEntry


class Manifest(msgspec.Struct, kw_only=True):
    """The document."""

    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    shaderad: str
    compiler: str
    slang_library: str
    kernels: list[KernelEntry]
    graphs: list[GraphEntry]
    targets: dict[str, TargetEntry] = {}
    types: dict[str, Layout]
    header: str = ""
    """The file of constants and structs for C and C++."""
    files: dict[str, str]
    """SHA-256 of every file of the folder but this one, by path."""
