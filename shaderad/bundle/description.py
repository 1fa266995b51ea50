"""The kernels of `manifest.json` as data: what `manifest.py` writes and `loading.py` reads.

Fields that a document lacks have the value given here; unknown ones are skipped, so that a
manifest of a later minor version can be read. Invariant: only names, numbers and hashes.
"""

from __future__ import annotations

import msgspec

SCHEMA = "shaderad-manifest"
SCHEMA_VERSION = 2
FILE = "manifest.json"

Place = dict[str, int | str]
"""Where a host of one target binds a resource; see places.py."""


class TargetEntry(msgspec.Struct):
    """What all code of one target was allowed to use."""

    atomics: str
    """How floats are added: ``native``, ``exchange`` or ``compare-exchange``."""
    features: list[str]
    storage_buffer_limit: int


class Part(msgspec.Struct):
    """One scalar of an element: where it is in it, and where in its bytes."""

    path: list[str | int]
    type: str
    byte_offset: int


class PointerPart(msgspec.Struct):
    """A pointer in an element, and the array it leads into."""

    path: list[str | int]
    target: str


class Field(msgspec.Struct):
    """A field of a struct, with its type as Python spells it."""

    name: str
    type: str


class Layout(msgspec.Struct, omit_defaults=True):
    """The words of one element type; see Note [Words] in ir/types.py."""

    byte_count: int
    word_bytes: int
    scalars: list[Part]
    pointers: list[PointerPart] = []
    fields: list[Field] = []
    """Of a struct."""
    element: str = ""
    """What a pointer leads to."""


class Parameter(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function, Index ones left out."""

    name: str
    type: str
    kind: str
    """``array``, ``uniform``, ``struct of arrays`` or ``constant``."""
    value: float | str | None = None
    """Of a constant; text where JSON has no number."""


class ArrayEntry(msgspec.Struct):
    """An array that the kernel binds."""

    name: str
    path: list[str]
    access: str
    type: str
    rank: int
    is_differentiable: bool
    has_launch_shape: bool


class UniformEntry(msgspec.Struct):
    """A value that is the same for the whole launch."""

    name: str
    path: list[str]
    type: str
    is_differentiable: bool


class WordEntry(msgspec.Struct, omit_defaults=True):
    """One 32-bit word of the constant buffer."""

    name: str
    kind: str
    index: int
    of: str = ""
    role: str = ""


class Parameters(msgspec.Struct):
    """The constant buffer."""

    slot: int
    name: str
    place: Place
    words: list[WordEntry]


class Member(msgspec.Struct):
    """An array in a storage buffer, in the element type that the dispatch sees."""

    name: str
    type: str


class ResourceEntry(msgspec.Struct):
    """A storage buffer."""

    slot: int
    name: str
    place: Place
    access: str
    role: str
    members: list[Member]
    fill_word: int | None
    is_covered_by_launch: bool


class SiteEntry(msgspec.Struct):
    """A place in the Python source that can report."""

    kind: str
    file: str
    """Its name without folder."""
    line: int
    name: str


class DispatchEntry(msgspec.Struct):
    """One entry point, and how to bind and dispatch it."""

    mode: str
    entry_point: str
    file: str
    slang: str
    workgroup: tuple[int, int, int]
    thread_for_each: str
    """``index``, or ``word of`` an array."""
    group_limit: int
    """Each of at most so many groups takes a tile of indices; 0: each thread one index."""
    is_single_group: bool
    features: list[str]
    compiler_options: list[str]
    strategies: dict[str, str]
    parameters: Parameters
    resources: list[ResourceEntry]
    sites: list[SiteEntry]


class NoDerivative(msgspec.Struct):
    """Why something was built without a derivative."""

    code: str | None
    reason: str
    line: int | None


class ProgramsEntry(msgspec.Struct, omit_defaults=True):
    """The dispatches of one kernel for one target."""

    primal: list[DispatchEntry]
    backward: list[DispatchEntry]
    forward: list[DispatchEntry] = []
    no_backward: NoDerivative | None = None
    no_forward: NoDerivative | None = None


class KernelEntry(msgspec.Struct):
    """One kernel."""

    name: str
    file: str
    """Of the Python source, without folder."""
    line: int
    bounds: str
    """What an index out of range does: ``raise``, ``ignore`` or ``unchecked``."""
    index_names: list[str]
    parameters: list[Parameter]
    arrays: list[ArrayEntry]
    uniforms: list[UniformEntry]
    targets: dict[str, ProgramsEntry]
