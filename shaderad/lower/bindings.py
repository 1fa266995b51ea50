"""The buffers that a dispatch binds and the words of its constant buffer, as plain data.

``lower`` decides them; ``execute`` and ``bundle`` read them. No runtime appears here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from shaderad.bodies.reaches import Reach
from shaderad.bodies.scattered import GroupCopy
from shaderad.compiler.artifact import Program
from shaderad.compiler.launch_shapes import PORTABLE, LaunchShape
from shaderad.diagnostics import Span
from shaderad.ir import sizes
from shaderad.ir.nodes import Stmt
from shaderad.ir.shown import PrintForm
from shaderad.ir.sizes import Size
from shaderad.ir.tables import check_rows
from shaderad.ir.types import Type

GROUP_SIZE = 64
"""`groupSize` of the library, for modules that do not define it."""
BOUNDS = ("raise", "ignore", "unchecked")
"""Values of `Variant.bounds`: the effect of an index out of range."""
ATOMICS = ("native", "exchange", "compare-exchange")
"""Values of `Variant.atomics`: the implementation of atomic adds of floats."""
CHECKS = ("nan", "writes")
"""Values of `Variant.checks`: NaN and infinity; an Out element written twice."""


class Mode(Enum):
    """The kind of an entry point."""

    __hash__ = object.__hash__  # that of `Enum` is a Python function

    PRIMAL = "primal"
    BACKWARD = "bwd"
    FORWARD = "fwd"
    WINNER = "winner"
    """First pass of the derivatives of Min/Max: the argmin index, thread and write number."""
    DECODE = "decode"
    """Last pass of the primal of Min/Max: order-preserving words become values, in place."""


class Role(Enum):
    """The content of a bound buffer, for the kernel buffers or uniforms ``members``."""

    __hash__ = object.__hash__

    INPUT = "input"  # an In array
    SAMPLED = "sampled"  # a cube as a sampler reads it; bound as an input
    SAMPLER = "sampler"  # bound as an input
    UNIFORM = "uniform"  # a uniform that is a 0-d device array
    OUTPUT = "output"  # an Out, Add, Min or Max array, written
    RESULT = "result"  # a Min or Max array, result of the primal, read
    COTANGENT = "cotangent"  # of an output; read (bwd)
    GRADIENT = "gradient"  # of an input or uniform; written (bwd)
    TANGENT = "tangent"  # of an input or uniform; read (fwd)
    OUTPUT_TANGENT = "output tangent"  # of an output; written (fwd)
    WINNER = "winner"  # the argmin index: thread and write number, for each word of Min or Max
    SCRATCH = "scratch"  # arrays between the steps that one workgroup runs; read and written
    SCRATCH_SUMS = "scratch sums"  # scratch arrays to which threads add
    GROUP = "group"  # arrays between those steps in the memory of the workgroup; not bound
    MARKS = "marks"  # the write count of each storage word of an Out array
    REPORT = "report"  # the device's report buffer
    PRINT = "print"  # the device's print buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRow:
    """Everything that depends on the role of a buffer: names, who fills it, how long it is."""

    is_read: bool = False
    """True if no dispatch writes the buffer."""
    suffix: str = ""
    """Follows the array's name in Slang."""
    tag: str = ""
    """The last part of the name of an entry point's tag; empty if it has none."""
    arena: str = ""
    """The name of a buffer that several arrays share; empty if they never do."""
    is_always_arena: bool = False
    """True if several arrays always share it, not only if slots are scarce."""
    has_offset: bool = True
    """False if the array starts where its buffer does."""
    noun: str = ""
    """Follows the array's name in the plans of a manifest."""
    is_derivative_given: bool = False
    """True if a caller of a derivative may omit it; it is zero then."""
    words_per_word: int = 0
    """Words for each storage word of the array; 0 if the buffer holds the array itself."""


ROLES: dict[Role, RoleRow] = {
    Role.INPUT: RoleRow(is_read=True, tag="read"),
    Role.SAMPLED: RoleRow(is_read=True, has_offset=False),
    Role.SAMPLER: RoleRow(is_read=True, has_offset=False),
    Role.UNIFORM: RoleRow(is_read=True, tag="uniform", has_offset=False),
    Role.OUTPUT: RoleRow(tag="store", has_offset=False),
    Role.RESULT: RoleRow(is_read=True, suffix="_result"),
    # Arrays share buffers in this order, gradients first.
    Role.GRADIENT: RoleRow(suffix="_bar", tag="gradient", arena="gradients", noun="gradient"),
    Role.COTANGENT: RoleRow(
        is_read=True,
        suffix="_bar",
        tag="cotangent",
        arena="cotangents",
        noun="cotangent",
        is_derivative_given=True,
    ),
    Role.TANGENT: RoleRow(
        is_read=True,
        suffix="_dot",
        tag="tangent",
        arena="tangents",
        noun="tangent",
        is_derivative_given=True,
    ),
    Role.OUTPUT_TANGENT: RoleRow(
        suffix="_dot", tag="tangent_store", arena="output_tangents", noun="tangent"
    ),
    Role.WINNER: RoleRow(suffix="_winner", has_offset=False, words_per_word=2),
    Role.SCRATCH: RoleRow(arena="scratch", is_always_arena=True),
    Role.SCRATCH_SUMS: RoleRow(arena="scratch_sums", is_always_arena=True),
    Role.GROUP: RoleRow(has_offset=False),
    Role.MARKS: RoleRow(suffix="_marks", has_offset=False, words_per_word=1),
    Role.REPORT: RoleRow(),
    Role.PRINT: RoleRow(),
}
"""A row for each role."""
check_rows(ROLES, Role)


@dataclass(frozen=True)
class Resource:
    """One storage buffer binding.

    Several `members` share an arena: the host lays them out one after the other in one buffer
    (inputs are copied) and writes the word offset of each to its `OFFSET` word.
    """

    slot: int
    role: Role
    members: tuple[str, ...]
    fill_word: int | None = None
    """The 32-bit word with which the host fills the buffer before the dispatch, or `None`."""
    is_covered_by_launch: bool = False
    """True if the dispatch stores every element at an index of the launch; an array of the
    launch's shape then needs no fill."""
    types: tuple[Type, ...] = ()
    """Element type of each member in this dispatch (a gradient of half may be float)."""
    reach: Reach | None = None
    """The elements that a window of a windowed program accesses; `None` for any."""


class WordKind(Enum):
    """The content of a word of the constant buffer."""

    THREAD_COUNT = "thread count"  # product of dim; in a window, the number after the last thread
    FIRST_ITEM = "first item"  # of the window
    TILE = "tile"  # indices of each group, whole workgroups: ceil(thread count / group count)
    GROUP_COUNT_X = "group count x"
    DIM = "dim"  # dim[index]
    COUNT = "count"  # elements of array `name`
    OFFSET = "offset"  # start of array `name` in role `role` in its buffer, in storage words
    SHAPE = "shape"  # shape[index] of array `name`
    UNIFORM = "uniform"  # scalar leaf `index` of uniform `name` (see uniform_words)
    BITS = "bits"  # the constant `index`, such as the bits of an infinity
    LAUNCH = "launch"  # the number of this dispatch on its device
    SITE_BASE = "site base"  # the first report site of this program in the device's table


@dataclass(frozen=True)
class Word:
    """One 32-bit word of the constant buffer, in order."""

    kind: WordKind
    name: str = ""
    index: int = 0
    role: Role | None = None


class SiteKind(Enum):
    """The subject of a report."""

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

    A report record is 4 words: site id + 1 (site base added), index, length, spare. Records of
    programs with `checks` are longer (shaders/reports.slang).
    """

    kind: SiteKind
    span: Span
    name: str
    """The array for `BOUNDS`, the text for `ASSERT`, the watched value for `FINITE`."""
    form: PrintForm | None = None
    """For `PRINT`: the text, and the types of its values."""


@dataclass(frozen=True)
class Addition:
    """A read whose cotangents are added to memory atomically."""

    array: str
    span: Span
    by: str
    """The unit that sums before its one atomic add: ``thread``, ``wave`` or ``group``."""


@dataclass(frozen=True)
class Lowered:
    """One dispatch: the program, and the data with which a host runs it."""

    program: Program
    mode: Mode
    resources: tuple[Resource, ...]
    words: tuple[Word, ...]
    sites: tuple[Site, ...] = ()
    group_limit: int = 0
    """Maximum number of groups that each loop over a tile of indices; 0: one thread per index."""
    group_indices: int = 0
    """Minimum indices of such a group, if there are as many."""
    copies: tuple[str, ...] = ()
    """The arrays to which threads add in copies, in the memory of their group."""
    is_single_group: bool = False
    """True if it must run as one group: doubles have no atomic add."""
    threads_of: str = ""
    """The array that has one thread per word; empty: one thread per index of ``dim``."""
    strategies: dict[str, str] = field(default_factory=dict[str, str])
    """The strategy of each gradient: exclusive, uniform, scattered."""
    additions: tuple[Addition, ...] = ()
    """The reads behind scattered gradients."""
    group: tuple[int, ...] = ()
    """Threads of a workgroup along each axis of ``dim``; empty if threads are numbered in a row."""
    is_windowed: bool = False
    """True if a window of its items can run by itself, and arrays begin anywhere in bindings."""
    body: tuple[Stmt, ...] | None = field(default=None, compare=False, repr=False)
    """The statements for one index, by which its operations are counted; `None` if it has none."""
    index_names: tuple[str, ...] = field(default=(), compare=False)
    """The names of the index in `body`, one for each axis of the launch."""

    @cached_property
    def has_offset(self) -> frozenset[tuple[Role, str]]:
        """Arrays that may start anywhere in their bound buffer."""
        return frozenset(
            (word.role, word.name)
            for word in self.words
            if word.kind is WordKind.OFFSET and word.role is not None
        )


@dataclass(frozen=True)
class Variant:
    """The properties, besides the kernel, for which a dispatch is specialised."""

    wanted: frozenset[str] = frozenset()
    """Buffers and uniforms that have a gradient or tangent."""
    bounds: str = "raise"
    """One of `BOUNDS`."""
    launch_shaped: frozenset[str] = frozenset()
    """Out buffers that have the launch's shape."""
    checks: str = ""
    """One of `CHECKS`, or empty."""
    device_uniforms: frozenset[str] = frozenset()
    """Uniforms that are 0-d device arrays."""
    accumulate: bool = False
    """True if gradients are added to the buffers' content instead of stored."""
    natural: frozenset[Size] = frozenset()
    """The sizes, among those that `bodies/ranges.py` compares, that are 0 or more."""
    with_results: bool = False
    """True if a backward dispatch also writes the primal results, which are local: `are_local`."""
    absent: frozenset[str] = frozenset()
    """Results without cotangents: a backward dispatch differentiates nothing for them alone."""
    is_one_thread: bool = False
    """True if the dispatch has at most one thread: every Index is 0."""
    is_one_group: bool = False
    """True if the dispatch is one whole workgroup, whose threads meet at barriers."""
    is_windowed: bool = False
    """True if arrays may be larger than bindings, so that items run a window at a time."""
    copies: tuple[GroupCopy, ...] = ()
    """The arrays of which groups may have copies; lowering keeps those that save additions."""
    atomics: str = "native"
    """One of `ATOMICS`."""
    group_atomics: str = "exchange"
    """The same for group memory."""
    group_bytes: int = 1 << 14
    """The memory of a workgroup."""
    subgroups: bool = True
    are_waves_free: bool = True
    """True if waves may sum wherever all their threads arrive; browsers must prove that they do."""
    storage_buffer_limit: int = 8
    workgroup: int = PORTABLE.workgroup
    """Threads of a workgroup; reductions and scans of rows choose their own."""
    space: int = 0
    """The descriptor set, bind group or register space of all bindings."""
    first_binding: int = 0
    """The slot of the constant buffer; the others follow it."""
    shape: LaunchShape = PORTABLE
    """The layout of work over threads."""
    host: str = "the device"
    """The owner of `storage_buffer_limit` in messages."""
    features: frozenset[str] = frozenset()

    @property
    def adds_in_waves(self) -> bool:
        """True if waves sum additions of all threads at one address; else groups, with barriers."""
        return self.subgroups and self.are_waves_free

    @property
    def adds_together(self) -> bool:
        """True if waves or groups sum."""
        return self.adds_in_waves or self.shape.adds_at_barriers


def thread_groups(lowered: Lowered, threads: Size, dim: Sequence[Size] = ()) -> Size:
    """The number of workgroups for `threads`, in a launch with extents `dim`."""
    if lowered.is_single_group:
        return 1
    if lowered.group:
        axes = zip(dim, lowered.group, strict=True)
        return sizes.product(tuple(sizes.divide_up(extent, n) for extent, n in axes))
    indices = max(lowered.program.workgroup[0], lowered.group_indices)
    groups = sizes.divide_up(threads, indices)
    return sizes.minimum(groups, lowered.group_limit) if lowered.group_limit else groups


def in_rows(groups: int, limit: int) -> tuple[int, int, int]:
    """Workgroups in x, y, z: in rows of at most `limit`."""
    return (groups, 1, 1) if groups <= limit else (limit, -(-groups // limit), 1)
