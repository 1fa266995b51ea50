"""The plans of `manifest.json`: programs, and commands over symbolic sizes; see docs/plans.md.

Numbers that depend on sizes are expressions of size_text.py. The buffers of a plan are numbered:
inputs first, then intermediate values and results.
"""

from __future__ import annotations

import msgspec

from shaderad.bundle.format.description import (
    BindingPlace,
    FeatureName,
    Name,
    NoDerivative,
    Number,
    SiteEntry,
    SizeText,
    Slot,
    StrategyName,
    Threads,
    Word,
)
from shaderad.compiler.artifact import BindingAccess
from shaderad.ir.dimensions import Dimension
from shaderad.lower.bindings import Role


class BindingEntry(msgspec.Struct, omit_defaults=True):
    """A storage buffer, texture or sampler of a program."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    access: BindingAccess
    role: Role
    """The host provides the buffer with the role ``report``; others belong to the plan."""
    members: list[Name]
    """The arrays of the kernel in the buffer; if there are several, words hold their offsets."""
    view: Dimension | None = None
    """The shape in which the program sees a texture; a cube may also be bound as six layers."""
    is_filtered: bool = False
    """True if a sampler filters the texture, which its format must then allow."""


class ParameterWords(msgspec.Struct):
    """The constant buffer of a program; its size is rounded up to a multiple of 16 bytes."""

    slot: Slot
    """The slot in the Slang text; hosts bind by `place`."""
    name: Name
    place: BindingPlace
    words: list[Name]
    """The names of its 32-bit words; the commands of a plan supply the values."""


class ProgramEntry(msgspec.Struct, omit_defaults=True):
    """One entry point."""

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
    parameters: ParameterWords
    resources: list[BindingEntry]
    sites: list[SiteEntry]
    strategies: dict[Name, StrategyName] = {}
    """How each gradient is summed: ``exclusive`` stores, ``uniform`` sums over threads first,
    ``scattered`` adds atomically."""


class UniformWordEntry(msgspec.Struct):
    """One word of a uniform, which the caller supplies.

    Scalars are in the order of the type: half as a float, double as two words, bool as 0 or 1.
    """

    uniform: Name
    index: Number


class RunCommand(msgspec.Struct, tag="run", tag_field="do", omit_defaults=True):
    """One dispatch; skipped if `groups` or `if_positive` is not positive."""

    program: Name
    bind: dict[Name, Number]
    """The buffer of each resource of the program; the host binds reports."""
    words: list[SizeText | UniformWordEntry]
    groups: SizeText
    """Workgroups, in rows of at most ``$group_limit``."""
    if_positive: SizeText = 1


class CopyCommand(msgspec.Struct, tag="copy", tag_field="do", omit_defaults=True):
    """Copies bytes from one buffer to another."""

    source: Number
    target: Number
    byte_count: SizeText
    source_offset: SizeText = 0
    target_offset: SizeText = 0


class FillCommand(msgspec.Struct, tag="fill", tag_field="do"):
    """Fills the first bytes of a buffer with one repeated 32-bit word."""

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


Command = RunCommand | CopyCommand | FillCommand | RepeatCommand | WhileCommand


class BufferEntry(msgspec.Struct):
    """A buffer of a plan."""

    name: Name
    """The name of the input or result; empty for other buffers."""
    byte_count: SizeText


class PlanOutput(msgspec.Struct):
    """A result of a plan, which is a whole buffer."""

    name: Name
    type: Name
    shape: list[SizeText]
    buffer: Number


class PlanEntry(msgspec.Struct):
    """The commands that compute the outputs of one mode."""

    inputs: list[Name]
    """Inputs of the entry, then ``x tangent`` or ``y cotangent``, then the primal results of Min
    and Max arrays of a kernel, if a derivative reads them."""
    outputs: list[PlanOutput]
    aligned_inputs: list[Number]
    """Inputs that must begin at offset 0 of their buffers."""
    buffers: list[BufferEntry]
    commands: list[Command]


class PlansEntry(msgspec.Struct, omit_defaults=True):
    """The programs and plans of one entry for one target."""

    programs: list[ProgramEntry]
    primal: PlanEntry
    backward: PlanEntry | None = None
    forward: PlanEntry | None = None
    no_backward: NoDerivative | None = None
    no_forward: NoDerivative | None = None
    functions: Name = ""
    """The Slang module of the functions of a kernel, for other shaders to import."""
