"""The fields and small parts of `manifest.json`; see plans.py and entries.py for the rest.

Missing fields take the defaults below and unknown fields are skipped, so manifests of later minor
versions can be read. Invariant: a manifest holds only names, numbers and hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypedDict

import msgspec

from shaderad.compiler import artifact
from shaderad.ir.types import Kind
from shaderad.lower.bindings import ATOMICS, BOUNDS, SiteKind

SCHEMA = "shaderad-manifest"
SCHEMA_VERSION = 3
FILE = "manifest.json"
SCHEMA_FILE = "manifest.schema.json"


# JSON Schema and Python agree on this pattern; `$` alone would accept a line break at the end.
Name = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)")]
"""One line."""
Text = Annotated[str, msgspec.Meta(max_length=65536, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
"""Text of several lines."""
Path = Annotated[list[Name], msgspec.Meta(max_length=32)]
"""A parameter and the fields below it."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A count or a position."""
Word = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
"""An unsigned 32-bit word."""
Slot = Annotated[int, msgspec.Meta(ge=0, le=65535)]
"""The number of a binding."""
Threads = Annotated[int, msgspec.Meta(ge=1, le=1024)]
"""Threads of a workgroup along an axis."""
SizeText = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=4096)]
)
"""A whole number, or an expression of sizes; see size_text.py."""


def one_of(names: Iterable[str]) -> msgspec.Meta:
    """Documents `names` in the schema as the valid names; later versions may add names."""
    return msgspec.Meta(extra_json_schema={"enum": sorted(names)})


BoundsName = Annotated[Name, one_of(BOUNDS)]
AtomicsName = Annotated[Name, one_of(ATOMICS)]
FeatureName = Annotated[Name, one_of(artifact.FEATURES)]
STRATEGIES = ("exclusive", "uniform", "scattered", "uniform and scattered")
StrategyName = Annotated[Name, one_of(STRATEGIES)]


class BindingPlace(TypedDict, total=False):
    """The place of a binding; empty if the code does not use it."""

    set: Number
    """SPIR-V: the descriptor set. WGSL: the group."""
    binding: Number
    """SPIR-V and WGSL: the binding."""
    register: Name
    """HLSL: the register, such as ``t0``."""
    space: Number
    """HLSL: the register space."""
    buffer: Number
    """Metal: the buffer index."""
    texture: Number
    """Metal: the texture index."""
    sampler: Number
    """Metal: the sampler index."""


class TargetEntry(msgspec.Struct):
    """The features and limits that the code of one target may use."""

    atomics: AtomicsName
    """The kind of atomic additions of floats."""
    features: list[FeatureName]
    """Features that code may use; each entry point lists those that it needs."""
    storage_buffer_limit: Number
    """Storage buffers of one entry point."""
    workgroup: Threads = 64
    """Threads of a workgroup; reductions and scans of graphs choose their own."""
    space: Slot = 0
    """The descriptor set, bind group or register space of all bindings."""
    first_binding: Slot = 0
    """The slot of the constant buffer."""


class Part(msgspec.Struct):
    """One scalar of an element: its path and its byte offset."""

    path: list[Name | Number]
    """Fields and component numbers, outermost first."""
    type: Kind
    byte_offset: Number


class PointerPart(msgspec.Struct):
    """A pointer in an element."""

    path: list[Name | Number]
    target: Name
    """The name of the array that it points into."""


class StructField(msgspec.Struct):
    """A field of a struct."""

    name: Name
    type: Name


class Layout(msgspec.Struct, omit_defaults=True):
    """The layout of one element type in storage buffers."""

    byte_count: Number
    """The stride of elements."""
    word_bytes: Number
    """2 for elements that hold halfs only, else 4; the unit of array offsets."""
    scalars: list[Part]
    pointers: list[PointerPart] = []
    fields: list[StructField] = []
    """The fields of a struct, in order."""
    element: Name = ""
    """The element type of a pointer's array."""


class SiteEntry(msgspec.Struct):
    """A place in the Python source that may report an error."""

    kind: SiteKind
    file: Name
    """The name of the file, without folder."""
    line: Number
    name: Text
    """The name of the array, or the message of an assert."""


class NoDerivative(msgspec.Struct):
    """Why a derivative was not built."""

    code: Name | None
    """The error code; null if there is nothing to differentiate."""
    reason: Text
    line: Number | None
    """The line in the Python source."""
