"""The kernels of `manifest.json` as data: what `manifest.py` writes and `loading.py` reads.

Fields that a document lacks have the value given here; unknown ones are skipped, so that a
manifest of a later minor version can be read. Invariant: only names, numbers and hashes.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

import msgspec

from shaderad.bundle.field_types import (
    Name,
    Number,
    Path,
    Slot,
    Text,
    Threads,
    Word,
    one_of,
)
from shaderad.ir.types import Access, Kind
from shaderad.lower import artifact
from shaderad.lower.bindings import ATOMICS, BOUNDS, Mode, Role, SiteKind, WordKind

SCHEMA = "shaderad-manifest"
SCHEMA_VERSION = 2
FILE = "manifest.json"
SCHEMA_FILE = "manifest.schema.json"


BoundsName = Annotated[Name, one_of(BOUNDS)]
AtomicsName = Annotated[Name, one_of(ATOMICS)]
FeatureName = Annotated[Name, one_of(artifact.FEATURES)]
STRATEGIES = ("exclusive", "uniform", "scattered", "uniform and scattered")
StrategyName = Annotated[Name, one_of(STRATEGIES)]


class Place(TypedDict, total=False):
    """Where a resource is bound; empty where the code does not use it."""

    set: Number
    """Of SPIR-V; the group of WGSL."""
    binding: Number
    """Of SPIR-V and WGSL."""
    register: Name
    """Of HLSL, such as ``t0``."""
    space: Number
    """Of HLSL."""
    buffer: Number
    """Of Metal."""


class TargetEntry(msgspec.Struct):
    """What all code of one target was allowed to use."""

    atomics: AtomicsName
    """How floats are added in memory."""
    features: list[FeatureName]
    """What code may have needed; each entry point says what it does need."""
    storage_buffer_limit: Number
    """For one entry point."""
    workgroup: Threads = 64
    """Threads of a workgroup; reductions and scans of graphs choose their own."""
    space: Slot = 0
    """The descriptor set, bind group or register space of everything that is bound."""
    first_binding: Slot = 0
    """The slot of the constant buffer."""


class Part(msgspec.Struct):
    """One scalar of an element: where it is in it, and where in its bytes."""

    path: list[Name | Number]
    """Fields and numbers of components, from the outside in."""
    type: Kind
    byte_offset: Number


class PointerPart(msgspec.Struct):
    """A pointer in an element, and the array it leads into."""

    path: list[Name | Number]
    target: Name
    """The array's name."""


class Field(msgspec.Struct):
    """A field of a struct, with its type as Python spells it."""

    name: Name
    type: Name


class Layout(msgspec.Struct, omit_defaults=True):
    """One element type as it lies in storage buffers."""

    byte_count: Number
    """From one element to the next."""
    word_bytes: Number
    """2 for elements made of half alone, else 4; offsets of arrays count such words."""
    scalars: list[Part]
    pointers: list[PointerPart] = []
    fields: list[Field] = []
    """Of a struct."""
    element: Name = ""
    """What a pointer leads to."""


class Parameter(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function, Index ones left out."""

    name: Name
    type: Name
    kind: Literal["array", "uniform", "struct of arrays", "constant"]
    value: float | Name | None = None
    """Of a constant; text where JSON has no number."""


class ArrayEntry(msgspec.Struct):
    """An array that the kernel binds."""

    name: Name
    path: Path
    """The parameter, and the fields that lead to the array; ``[]`` is where a pointer leads."""
    access: Access
    type: Name
    """Of an element: a key of `types`."""
    rank: Number
    """How many axes it has; elements lie in row-major order."""
    is_differentiable: bool
    """The backward dispatches give its gradient."""
    has_launch_shape: bool
    """The extents of the launch are its own."""


class UniformEntry(msgspec.Struct):
    """A value that is the same for the whole launch."""

    name: Name
    path: Path
    """The parameter, and the fields that lead to the value."""
    type: Name
    """A key of `types`."""
    is_differentiable: bool
    """The backward dispatches give its gradient."""


class WordEntry(msgspec.Struct, omit_defaults=True):
    """One 32-bit word of the constant buffer; docs/manifest.md says what each kind holds."""

    name: Name
    kind: WordKind
    index: Word
    """The axis, the word of the uniform, or the bits."""
    of: Name = ""
    """The array or uniform."""
    role: Role | None = None
    """Which of its buffers."""


class Parameters(msgspec.Struct):
    """The constant buffer; its size is rounded up to a multiple of 16 bytes."""

    slot: Slot
    """Of the Slang text; hosts bind by `place`."""
    name: Name
    place: Place
    words: list[WordEntry]


class Member(msgspec.Struct):
    """An array in a storage buffer, in the element type that the dispatch sees."""

    name: Name
    type: Name


class ResourceEntry(msgspec.Struct):
    """A storage buffer; docs/manifest.md says what each role holds."""

    slot: Slot
    """Of the Slang text; hosts bind by `place`."""
    name: Name
    place: Place
    access: artifact.Access
    role: Role
    members: list[Member]
    """What lies in it; several begin where their offset words say."""
    fill_word: Word | None
    """The 32-bit word to fill it with before the dispatch; none: its content is kept, or is
    overwritten whole."""
    is_covered_by_launch: bool
    """It needs no fill where the extents of the array are those of the launch."""


class SiteEntry(msgspec.Struct):
    """A place in the Python source that can report."""

    kind: SiteKind
    file: Name
    """Its name without folder."""
    line: Number
    name: Text
    """The array, or what an assert says."""


class DispatchEntry(msgspec.Struct):
    """One entry point, and how to bind and dispatch it."""

    mode: Mode
    entry_point: Name
    file: Name
    """The compiled code."""
    slang: Name
    """The text it was compiled from."""
    workgroup: tuple[Threads, Threads, Threads]
    thread_for_each: Name
    """``index``, or ``word of`` an array."""
    group_limit: Number
    """Each of at most so many groups takes a tile of indices; 0: each thread one index."""
    is_single_group: bool
    """It must run as one workgroup."""
    features: list[FeatureName]
    """What the device must have."""
    compiler_options: list[Name]
    """Of HLSL: what dxc must be told."""
    strategies: dict[Name, StrategyName]
    """How each gradient is summed: ``exclusive`` stores, ``uniform`` sums over threads first,
    ``scattered`` adds atomically."""
    parameters: Parameters
    resources: list[ResourceEntry]
    sites: list[SiteEntry]


class NoDerivative(msgspec.Struct):
    """Why something was built without a derivative."""

    code: Name | None
    """Of the error; none where nothing is to differentiate."""
    reason: Text
    line: Number | None
    """Of the Python source."""


class ProgramsEntry(msgspec.Struct, omit_defaults=True):
    """The dispatches of one kernel for one target, each mode's in their order."""

    primal: list[DispatchEntry]
    backward: list[DispatchEntry]
    forward: list[DispatchEntry] = []
    no_backward: NoDerivative | None = None
    no_forward: NoDerivative | None = None
    functions: Name = ""
    """The Slang module of the kernel's functions, for shaders that import it."""


class AxisEntry(msgspec.Struct):
    """An axis of an array."""

    array: Name
    axis: Number


class KernelEntry(msgspec.Struct):
    """One kernel."""

    name: Name
    file: Name
    """Of the Python source, without folder."""
    line: Number
    bounds: BoundsName
    """What an index out of range does: it is reported, has no effect, or is not looked for."""
    index_names: list[Name]
    """One for each extent of the launch."""
    parameters: list[Parameter]
    arrays: list[ArrayEntry]
    uniforms: list[UniformEntry]
    targets: dict[Name, ProgramsEntry]
    axes_of_launch: list[list[AxisEntry]] = []
    """For each Index the axes of arrays that are as long as the launch; empty: not known."""
