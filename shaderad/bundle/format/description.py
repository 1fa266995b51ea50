"""The kernels of `manifest.json` as data; `manifest.py` writes it, `loading.py` reads it.

Missing fields take the defaults below and unknown fields are skipped, so manifests of later minor
versions can be read. Invariant: only names, numbers and hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

import msgspec

from shaderad.compiler import artifact
from shaderad.ir.types import Access, Kind
from shaderad.lower.bindings import ATOMICS, BOUNDS, Mode, Role, SiteKind, WordKind

SCHEMA = "shaderad-manifest"
SCHEMA_VERSION = 2
FILE = "manifest.json"
SCHEMA_FILE = "manifest.schema.json"


# JSON Schema and Python read this pattern alike; `$` alone accepts a line break at the end.
Name = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)")]
"""One line."""
Text = Annotated[str, msgspec.Meta(max_length=65536, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
"""Text of several lines."""
Path = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=32)]
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


class KernelArgument(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function, other than Index parameters."""

    name: Name
    type: Name
    kind: Literal["array", "uniform", "struct of arrays", "constant"]
    value: float | Name | None = None
    """The value of a constant; text for infinities and NaN."""


class ArrayEntry(msgspec.Struct):
    """An array that the kernel binds."""

    name: Name
    path: Path
    """The parameter and the fields that lead to the array; ``[]`` follows a pointer."""
    access: Access
    type: Name
    """The element type: a key of `types`."""
    rank: Number
    """The number of axes; elements are in row-major order."""
    is_differentiable: bool
    """True if the backward dispatches compute its gradient."""
    has_launch_shape: bool
    """True if its shape is that of the launch."""


class UniformEntry(msgspec.Struct):
    """A value that is the same for the whole launch."""

    name: Name
    path: Path
    """The parameter and the fields that lead to the value."""
    type: Name
    """A key of `types`."""
    is_differentiable: bool
    """True if the backward dispatches compute its gradient."""


class WordEntry(msgspec.Struct, omit_defaults=True):
    """One 32-bit word of the constant buffer; docs/manifest.md describes each kind."""

    name: Name
    kind: WordKind
    index: Word
    """The axis, the position of a word in the uniform, or the bits."""
    of: Name = ""
    """The name of the array or uniform."""
    role: Role | None = None
    """The role of the array's buffer."""


class Parameters(msgspec.Struct):
    """The constant buffer; its size is rounded up to a multiple of 16 bytes."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    words: list[WordEntry]


class Member(msgspec.Struct):
    """An array in a storage buffer, with its element type in the dispatch."""

    name: Name
    type: Name


class ResourceEntry(msgspec.Struct):
    """A storage buffer; docs/manifest.md describes each role."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    access: artifact.BindingAccess
    role: Role
    members: list[Member]
    """The arrays in the buffer; with several, offset words tell where each begins."""
    fill_word: Word | None
    """The 32-bit word to fill the buffer with before the dispatch; null if its content is kept or
    overwritten whole."""
    is_covered_by_launch: bool
    """True if no fill is needed when the array has the shape of the launch."""


class SiteEntry(msgspec.Struct):
    """A place in the Python source that may report an error."""

    kind: SiteKind
    file: Name
    """The name of the file, without folder."""
    line: Number
    name: Text
    """The name of the array, or the message of an assert."""


class DispatchEntry(msgspec.Struct):
    """One entry point of a kernel, and how to bind and dispatch it."""

    mode: Mode
    entry_point: Name
    file: Name
    """The compiled code."""
    slang: Name
    """The Slang text of the code."""
    workgroup: tuple[Threads, Threads, Threads]
    thread_for_each: Name
    """``index``, or ``word of`` an array."""
    group_limit: Number
    """If not 0, at most this many workgroups share the indices, a tile each; if 0, each thread
    takes one index."""
    is_single_group: bool
    """True if it must run as one workgroup."""
    features: list[FeatureName]
    """Features that the device must have."""
    compiler_options: list[Name]
    """HLSL: the options that dxc needs."""
    strategies: dict[Name, StrategyName]
    """How each gradient is summed: ``exclusive`` stores, ``uniform`` sums over threads first,
    ``scattered`` adds atomically."""
    parameters: Parameters
    resources: list[ResourceEntry]
    sites: list[SiteEntry]


class NoDerivative(msgspec.Struct):
    """Why a derivative was not built."""

    code: Name | None
    """The error code; null if there is nothing to differentiate."""
    reason: Text
    line: Number | None
    """The line in the Python source."""


class ProgramsEntry(msgspec.Struct, omit_defaults=True):
    """The dispatches of one kernel for one target, each mode in the order of execution."""

    primal: list[DispatchEntry]
    backward: list[DispatchEntry]
    forward: list[DispatchEntry] = []
    no_backward: NoDerivative | None = None
    no_forward: NoDerivative | None = None
    functions: Name = ""
    """The Slang module of the functions of the kernel, for other shaders to import."""


class AxisEntry(msgspec.Struct):
    """An axis of an array."""

    array: Name
    axis: Number


class KernelEntry(msgspec.Struct):
    """One kernel."""

    name: Name
    file: Name
    """The Python file, without folder."""
    line: Number
    bounds: BoundsName
    """The effect of an index out of range: reported, ignored, or not checked."""
    index_names: list[Name]
    """One name for each extent of the launch."""
    parameters: list[KernelArgument]
    arrays: list[ArrayEntry]
    uniforms: list[UniformEntry]
    targets: dict[Name, ProgramsEntry]
    axes_of_launch: list[list[AxisEntry]] = []
    """For each Index, the axes of arrays with the extent of the launch; empty if unknown."""
