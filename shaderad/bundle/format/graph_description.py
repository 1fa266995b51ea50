"""The graphs of `manifest.json` as data: plans over symbolic sizes; see docs/plans.md.

Numbers that depend on sizes are expressions of bundle/size_text.py. The buffers of a plan are
numbered: inputs first, then intermediate values and results.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shaderad.bundle.format.description import (
    BindingPlace,
    BoundsName,
    FeatureName,
    Name,
    NoDerivative,
    Number,
    SiteEntry,
    SizeText,
    Slot,
    Threads,
    Word,
)
from shaderad.compiler.artifact import BindingAccess


class TreeEntry(msgspec.Struct, omit_defaults=True):
    """An argument or result: an array, or a container of arrays."""

    kind: Literal["array", "size", "number", "value", "tuple", "list", "dict", "named tuple"]
    index: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """For an array, its position in `inputs` or `outputs`."""
    size: SizeText = 0
    value: Name | bool | None = None
    """For a number, its Python text; floats have a point or exponent."""
    name: Name = ""
    """For a named tuple, its class."""
    names: list[Name] = []
    parts: list[TreeEntry] = []


class GraphParameter(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function; values are compiled in and not passed."""

    name: Name
    tree: TreeEntry
    default: TreeEntry | None = None
    """The default: numbers for calls that omit the parameter."""


class GraphArray(msgspec.Struct):
    """An input or output array of a graph."""

    name: Name
    type: Name
    """The element type: a key of `types`."""
    shape: list[SizeText]
    """The extents; a number is the same in every call."""
    is_differentiable: bool
    """True if derivatives by this input, or of this output, are built."""


class Assumptions(msgspec.Struct):
    """Conditions on the sizes of a call."""

    equal: list[tuple[SizeText, SizeText]]
    positive: list[SizeText]


class BindingEntry(msgspec.Struct):
    """A storage buffer of a program."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    access: BindingAccess
    is_report: bool
    """True if the host provides the buffer; others belong to the plan."""


class WordsEntry(msgspec.Struct):
    """The constant buffer of a program."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    words: list[Name]
    """The names of its 32-bit words; the commands of a plan give the values."""


class ProgramEntry(msgspec.Struct):
    """One entry point of a graph."""

    name: Name
    """The name in plans."""
    kernel: Name
    """The name in reports."""
    entry_point: Name
    file: Name
    """The compiled code."""
    slang: Name
    """The Slang text of the code."""
    workgroup: tuple[Threads, Threads, Threads]
    features: list[FeatureName]
    """Features that the device must have."""
    compiler_options: list[Name]
    """HLSL: the options that dxc needs."""
    parameters: WordsEntry
    resources: list[BindingEntry]
    sites: list[SiteEntry]


class LetCommand(msgspec.Struct, tag="let", tag_field="do"):
    """Sets `name` to the value of `size` for the commands that follow."""

    name: Name
    size: SizeText


class RunCommand(msgspec.Struct, tag="run", tag_field="do", omit_defaults=True):
    """One dispatch; skipped if `groups` or `if_positive` is not positive."""

    program: Name
    bind: dict[Name, Number]
    """Buffers, by resource of the program; the host binds reports."""
    words: list[SizeText]
    groups: SizeText
    """Workgroups, in rows of at most ``$group_limit``."""
    if_positive: SizeText = 1


class CopyCommand(msgspec.Struct, tag="copy", tag_field="do", omit_defaults=True):
    """Bytes from one buffer to another."""

    source: Number
    target: Number
    byte_count: SizeText
    source_offset: SizeText = 0
    target_offset: SizeText = 0


class FillCommand(msgspec.Struct, tag="fill", tag_field="do"):
    """The first bytes of a buffer, set to one repeated 32-bit word."""

    target: Number
    word: Word
    byte_count: SizeText


class RepeatCommand(msgspec.Struct, tag="repeat", tag_field="do"):
    """Runs `body` `count` times."""

    symbol: Name
    count: SizeText
    is_reversed: bool
    carries: list[tuple[Number, Number]]
    rows: list[Number]
    start: list[CopyCommand]
    body: list[Command]


class WhileCommand(msgspec.Struct, tag="while", tag_field="do"):
    """Runs `body` until the device reports the end of the loop."""

    carries: list[tuple[Number, Number]]
    body: list[Command]
    goes_on: Number
    wants: Number
    limit: Number
    line: Number


Command = LetCommand | RunCommand | CopyCommand | FillCommand | RepeatCommand | WhileCommand


class BufferEntry(msgspec.Struct):
    """A buffer of a plan."""

    name: Name
    """The name of the input or result; empty for other buffers."""
    byte_count: SizeText


class PlanOutput(msgspec.Struct):
    """A result of a plan: a whole buffer."""

    name: Name
    type: Name
    shape: list[SizeText]
    buffer: Number


class PlanEntry(msgspec.Struct):
    """The commands that compute the outputs of one mode."""

    inputs: list[Name]
    outputs: list[PlanOutput]
    aligned_inputs: list[Number]
    """Inputs that must begin at offset 0 of their buffers."""
    buffers: list[BufferEntry]
    commands: list[Command]


class PlansEntry(msgspec.Struct, omit_defaults=True):
    """The plans of one graph for one target."""

    programs: list[ProgramEntry]
    primal: PlanEntry
    backward: PlanEntry | None = None
    forward: PlanEntry | None = None
    no_backward: NoDerivative | None = None
    no_forward: NoDerivative | None = None


class GraphEntry(msgspec.Struct):
    """One graph."""

    name: Name
    file: Name
    """The Python file, without folder."""
    line: Number
    bounds: BoundsName
    """The effect of an index out of range: reported, ignored, or not checked."""
    sizes: list[Name]
    """The names of the extents that the shapes of a call determine."""
    assumes: Assumptions
    parameters: list[GraphParameter]
    inputs: list[GraphArray]
    outputs: list[GraphArray]
    result: TreeEntry
    targets: dict[Name, PlansEntry]
