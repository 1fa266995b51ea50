"""The graphs of `manifest.json` as data: plans with sizes left open; see docs/plans.md.

Numbers that depend on sizes are expressions of bundle/size_text.py. Buffers are numbered for each
plan: its inputs first, then what it makes, results included.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shaderad.bundle.description import (
    BoundsName,
    FeatureName,
    NoDerivative,
    Place,
    SiteEntry,
)
from shaderad.bundle.field_types import Name, Number, SizeText, Slot, Threads, Word
from shaderad.lower.artifact import Access


class TreeEntry(msgspec.Struct, omit_defaults=True):
    """An argument or result: an array, or a container of arrays."""

    kind: Literal["array", "size", "number", "value", "tuple", "list", "dict", "named tuple"]
    index: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """Of an array: in `inputs` or `outputs`."""
    size: SizeText = 0
    value: Name | bool | None = None
    """Of a number: its text as Python writes it, with a point or exponent where it is a float."""
    name: Name = ""
    """Of a named tuple."""
    names: list[Name] = []
    parts: list[TreeEntry] = []


class GraphParameter(msgspec.Struct, omit_defaults=True):
    """A parameter of the Python function; one that is a value is compiled in and not passed."""

    name: Name
    tree: TreeEntry
    default: TreeEntry | None = None
    """Numbers, for a call that leaves it out."""


class GraphArray(msgspec.Struct):
    """An array that a graph takes or gives."""

    name: Name
    type: Name
    """Of an element: a key of `types`."""
    shape: list[SizeText]
    """An extent that is a number here is that number in every call."""
    is_differentiable: bool
    """Of an input: there are derivatives by it; of an output: it has some."""


class Assumptions(msgspec.Struct):
    """What must hold of the sizes of a call."""

    equal: list[tuple[SizeText, SizeText]]
    positive: list[SizeText]


class BindingEntry(msgspec.Struct):
    """A storage buffer of a program."""

    slot: Slot
    """Of the Slang text; hosts bind by `place`."""
    name: Name
    place: Place
    access: Access
    is_report: bool
    """It is the host's own, not one of the plan's."""


class WordsEntry(msgspec.Struct):
    """The constant buffer of a program: one 32-bit word each."""

    slot: Slot
    """Of the Slang text; hosts bind by `place`."""
    name: Name
    place: Place
    words: list[Name]
    """Their names; a plan's commands give the values."""


class ProgramEntry(msgspec.Struct):
    """One entry point."""

    name: Name
    """How plans speak of it."""
    kernel: Name
    """What reports call it."""
    entry_point: Name
    file: Name
    """The compiled code."""
    slang: Name
    """The text it was compiled from."""
    workgroup: tuple[Threads, Threads, Threads]
    features: list[FeatureName]
    """What the device must have."""
    compiler_options: list[Name]
    """Of HLSL: what dxc must be told."""
    parameters: WordsEntry
    resources: list[BindingEntry]
    sites: list[SiteEntry]


class LetCommand(msgspec.Struct, tag="let", tag_field="do"):
    """From here on `name` is what `size` comes to."""

    name: Name
    size: SizeText


class RunCommand(msgspec.Struct, tag="run", tag_field="do", omit_defaults=True):
    """One dispatch; none where `groups` or `if_positive` is not positive."""

    program: Name
    bind: dict[Name, Number]
    """Buffers by the names of the program's resources; reports are the host's."""
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
    """`body` as often as `count` says."""

    symbol: Name
    count: SizeText
    is_reversed: bool
    carries: list[tuple[Number, Number]]
    rows: list[Number]
    start: list[CopyCommand]
    body: list[Command]


class WhileCommand(msgspec.Struct, tag="while", tag_field="do"):
    """`body` until the device says that it is enough."""

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
    """Of an input or result; else empty."""
    byte_count: SizeText


class PlanOutput(msgspec.Struct):
    """A result of a plan: all of a buffer."""

    name: Name
    type: Name
    shape: list[SizeText]
    buffer: Number


class PlanEntry(msgspec.Struct):
    """What computes results for inputs."""

    inputs: list[Name]
    outputs: list[PlanOutput]
    aligned_inputs: list[Number]
    """Those that must start where their buffers start."""
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
    """Of the Python source, without folder."""
    line: Number
    bounds: BoundsName
    """What an index out of range does: it is reported, has no effect, or is not looked for."""
    sizes: list[Name]
    """The names of extents that a call fixes."""
    assumes: Assumptions
    parameters: list[GraphParameter]
    inputs: list[GraphArray]
    outputs: list[GraphArray]
    result: TreeEntry
    targets: dict[Name, PlansEntry]
