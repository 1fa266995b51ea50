"""What one dispatch binds and which words its constant buffer holds: decided once, read everywhere.

``lower`` decides; the host that dispatches (``session``), the manifest that ``build`` writes and
the loader read. Plain data: nothing here knows a runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from shaderad.diagnostics import Span
from shaderad.ir import sizes
from shaderad.ir.shown import PrintForm
from shaderad.ir.sizes import Size
from shaderad.ir.types import Type
from shaderad.lower.artifact import Program

WORKGROUP_SIZE = 64
"""Threads of a workgroup where nothing else is asked; the library's own `groupSize`."""
BOUNDS = ("raise", "ignore", "unchecked")
"""What an index out of range does: `Variant.bounds`."""
ATOMICS = ("native", "exchange", "compare-exchange")
"""How threads add to one float: `Variant.atomics`."""
CHECKS = ("nan", "writes")
"""What is looked for besides: `Variant.checks`. NaN and infinity; an Out element written twice."""
# A reducing dispatch stops growing here: 65,536 threads fill the GPUs there are, and more
# threads only mean more atomic adds at the end.
REDUCTION_GROUP_LIMIT = 1024
"""Groups of a dispatch whose threads sum something, each of which adds once."""
SERIAL_GROUP_LIMIT = 128
"""Groups of a dispatch where they run in turn and each costs something."""


class Mode(Enum):
    """Which entry point a program is."""

    PRIMAL = "primal"
    BACKWARD = "bwd"
    FORWARD = "fwd"
    WINNER = "winner"
    """First pass of the backward and forward modes of Min/Max: finds who attained each result."""
    DECODE = "decode"
    """Last pass of the primal of Min/Max: from order-preserving words to values, in place."""


class Role(Enum):
    """What a bound buffer holds. ``members`` are names of kernel buffers or uniforms."""

    INPUT = "input"  # an In array
    UNIFORM = "uniform"  # a uniform that is given as a 0-d device array
    OUTPUT = "output"  # an Out, Add, Min or Max array, written here
    RESULT = "result"  # a Min or Max array as the primal left it, read here
    COTANGENT = "cotangent"  # of an output; read (bwd)
    GRADIENT = "gradient"  # of an input or uniform; written (bwd)
    TANGENT = "tangent"  # of an input or uniform; read (fwd)
    OUTPUT_TANGENT = "output tangent"  # of an output; written (fwd)
    WINNER = "winner"  # two words for each word of a Min or Max array
    MARKS = "marks"  # a word for each storage word of an Out array: how often it was written
    REPORT = "report"  # the device's one report buffer
    PRINT = "print"  # the device's one print buffer


@dataclass(frozen=True)
class Resource:
    """One storage buffer binding.

    Several `members` share an arena: the host lays them one after the other in one buffer
    (inputs are copied there) and gives each one's word offset in its `OFFSET` word.
    """

    slot: int
    role: Role
    members: tuple[str, ...]
    fill_word: int | None = None
    """The 32-bit word the host fills the buffer with before the dispatch; `None`: leave it."""
    is_covered_by_launch: bool = False
    """Every element at an index of the launch is stored: no fill is needed where the array has
    the launch's shape."""
    types: tuple[Type, ...] = ()
    """Element type of each member as this dispatch sees it (a gradient of half may be float)."""


class WordKind(Enum):
    """What the host writes in a word of the constant buffer."""

    THREAD_COUNT = "thread count"  # product of dim
    TILE = "tile"  # indices of each group, whole workgroups: ceil(thread count / group count)
    GROUP_COUNT_X = "group count x"
    DIM = "dim"  # dim[index]
    COUNT = "count"  # elements of array `name`
    OFFSET = "offset"  # where array `name` in role `role` starts in its buffer, in storage words
    SHAPE = "shape"  # shape[index] of array `name`
    UNIFORM = "uniform"  # scalar leaf `index` of uniform `name` (see uniform_words)
    BITS = "bits"  # the constant `index`: infinities must not be literals
    LAUNCH = "launch"  # the number of this dispatch on its device
    SITE_BASE = "site base"  # where this program's report sites start in the device's table
    SIZE = "size"  # the size `name` of a pass: see lower/passes.py


@dataclass(frozen=True)
class Word:
    """One 32-bit word of the constant buffer, in order."""

    kind: WordKind
    name: str = ""
    index: int = 0
    role: Role | None = None


class SiteKind(Enum):
    """What a report is about."""

    BOUNDS = "bounds"
    LIMIT = "limit"
    ASSERT = "assert"
    DIVISION = "division"
    SHAPE = "shape"
    FINITE = "finite"
    WRITES = "writes"
    PRINT = "print"


@dataclass(frozen=True)
class Site:
    """A place in the Python source that can report, or print, at run time.

    A report record is 4 words: site id + 1 (site base added), index, length, spare. Programs with
    `checks` send longer ones (shaders/reports.slang).
    """

    kind: SiteKind
    span: Span
    name: str
    """The array's name for `BOUNDS`, the text for `ASSERT`, what is watched for `FINITE`."""
    form: PrintForm | None = None
    """Of `PRINT` alone: the text, and the types of the values in it."""


@dataclass(frozen=True)
class Addition:
    """A read whose cotangents are added to memory, which other threads may add to."""

    array: str
    span: Span
    by: str
    """Who adds once, of ``thread``, ``wave`` and ``group``."""


@dataclass(frozen=True)
class Lowered:
    """One dispatch: the program and all that a host needs to run it."""

    program: Program
    mode: Mode
    resources: tuple[Resource, ...]
    words: tuple[Word, ...]
    sites: tuple[Site, ...] = ()
    group_limit: int = 0
    """At most so many groups, each looping over a tile of indices; 0: one thread an index."""
    is_single_group: bool = False
    """Must run as one group (sums in double, for which no atomic add is had)."""
    threads_of: str = ""
    """Empty: one thread an index of ``dim``. Else: one thread a word of this array."""
    strategies: dict[str, str] = field(default_factory=dict[str, str])
    """How each gradient is summed: exclusive, uniform, scattered."""
    additions: tuple[Addition, ...] = ()
    """What scattered ones are made of."""

    @cached_property
    def has_offset(self) -> frozenset[tuple[Role, str]]:
        """Arrays that may start anywhere in the buffer that is bound for them."""
        return frozenset(
            (word.role, word.name)
            for word in self.words
            if word.kind is WordKind.OFFSET and word.role is not None
        )


@dataclass(frozen=True)
class Variant:
    """What a dispatch is specialised for, besides the kernel itself."""

    wanted: frozenset[str] = frozenset()
    """Buffers and uniforms (names) whose gradient or tangent takes part."""
    bounds: str = "raise"
    """Of `BOUNDS`."""
    launch_shaped: frozenset[str] = frozenset()
    """Out buffers that have the launch's shape."""
    checks: str = ""
    """Of `CHECKS`, or nothing."""
    device_uniforms: frozenset[str] = frozenset()
    """Uniforms given as 0-d device arrays."""
    accumulate: bool = False
    """Gradients are added to what the buffers hold instead of stored."""
    natural: frozenset[Size] = frozenset()
    """Of the sizes that `bodies/ranges.py` asks for, those that are 0 or more."""
    with_results: bool = False
    """A backward dispatch computes the results of the primal, too. They are local: `are_local`."""
    is_one_thread: bool = False
    """The dispatch has one thread at most: every Index is 0."""
    atomics: str = "native"
    """Of `ATOMICS`."""
    subgroups: bool = True
    are_waves_free: bool = True
    """Whether waves may sum wherever all their threads come; browsers must see it themselves."""
    storage_buffer_limit: int = 8
    workgroup: int = WORKGROUP_SIZE
    """Threads of a workgroup; reductions and scans of rows choose their own."""
    space: int = 0
    """The descriptor set, bind group or register space of everything that is bound."""
    first_binding: int = 0
    """The slot of the constant buffer; the others follow it."""
    is_parallel: bool = True
    """Whether the threads of a group run at once; a processor runs them in turn, and pays for
    each barrier and for each group that it starts."""
    host: str = "the device"
    """Whose limit that is, as messages call it."""
    features: frozenset[str] = frozenset()

    @property
    def adds_in_waves(self) -> bool:
        """Whether waves sum what all threads add at one address; else groups do, at barriers."""
        return self.subgroups and self.are_waves_free

    @property
    def adds_together(self) -> bool:
        """Whether one of them does: barriers cost more than they save where threads run in turn."""
        return self.adds_in_waves or self.is_parallel


def thread_groups(lowered: Lowered, threads: Size) -> Size:
    """Workgroups for that many threads."""
    if lowered.is_single_group:
        return 1
    groups = sizes.divide_up(threads, lowered.program.workgroup[0])
    return sizes.minimum(groups, lowered.group_limit) if lowered.group_limit else groups


def in_rows(groups: int, limit: int) -> tuple[int, int, int]:
    """Workgroups in x, y, z: in rows of at most `limit`."""
    return (groups, 1, 1) if groups <= limit else (limit, -(-groups // limit), 1)


def group_counts(lowered: Lowered, thread_count: int, limit: int = 65535) -> tuple[int, int, int]:
    """Workgroups in x, y, z for `thread_count` threads, in rows of at most `limit` groups."""
    return in_rows(sizes.evaluate(thread_groups(lowered, thread_count), {}), limit)
