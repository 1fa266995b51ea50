"""Reductions and scans of rows: a kernel that computes elements, and an operator -> dispatches.

Formulas over the number and length of rows give the dispatches that run, their groups and their
size words. The host evaluates them for each call: a program is the same for all shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shaderad.compiler.launch_shapes import Cut
from shaderad.ir import sizes
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import (
    Buffer,
    Function,
    Kernel,
    KernelParameter,
    Load,
    Store,
    Var,
)
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access, BufferType, Type
from shaderad.lower.bindings import LENGTH, ROWS, Lowered, Variant
from shaderad.lower.kernels import lower_around
from shaderad.lower.passes.entries import (
    Operator,
    PassEntry,
    ReductionEntry,
    ScanEntry,
    has_room,
    operator_of,
    width_of,
)

BLOCK = 8
"""Elements of a thread's block; all chunks but the last of a row are whole blocks."""
GROUP_LIMIT = 4096
"""Maximum groups of a pass; each loops over several chunks."""
_SHORTEST_TOGETHER = 128
"""A group works together on chunks of at least so many elements; else each thread takes one."""

RESULT = "result"
"""The array of results: one a row for a reduction, one an element for a scan."""
INIT = "init"
"""The array of initial values of a reduction, one a row."""
TOTALS = "chunk_totals"
"""The total of each chunk."""
CHUNK_PREFIXES = "chunk_scan"
"""The inclusive scan of a row's chunk totals."""


@dataclass(frozen=True, slots=True)
class Formulas:
    """Sizes by name; each depends only on earlier ones."""

    by_name: dict[str, Size] = field(default_factory=dict[str, Size])

    def define(self, name: str, size: Size) -> Size:
        """Names a size; returns the name as a symbol."""
        self.by_name[name] = size
        return sizes.symbol(name)

    def evaluate(self, rows: int, length: int) -> dict[str, int]:
        """The values of all names, `ROWS` and `LENGTH` included."""
        values = {ROWS: rows, LENGTH: length}
        for name, size in self.by_name.items():
            values[name] = sizes.evaluate(size, values)
        return values


@dataclass(frozen=True, slots=True)
class Pass:
    """One dispatch; its `SIZE` words name formulas."""

    lowered: Lowered
    group_count: Size
    is_needed: Size
    """The dispatch runs if this is positive."""
    chunks: Chunks
    """The teams among which its work is divided."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array that one pass writes and a later one reads."""

    name: str
    element: Type
    count: Size


@dataclass(frozen=True, slots=True)
class Passes:
    """The dispatches of one reduction or scan, in order.

    Members of their resources are the producer's buffers and uniforms, `RESULT`, `INIT` and the
    scratch arrays. Sizes are expressions of the names of `formulas`.
    """

    steps: tuple[Pass, ...]
    scratch: tuple[Scratch, ...]
    formulas: Formulas


def lower_reduce(
    producer: Kernel,
    op: Reducer | Sequence[Reducer],
    variant: Variant,
    epilogues: tuple[Function, ...] = (),
    reader: Kernel | None = None,
    *,
    has_init: bool = False,
) -> Passes:
    """The passes that reduce the last axis of the elements of `producer`.

    Args:
        producer: Its Outs are written at its own index, and have the shape of the dispatch. The
            first is the element; others are stored.
        op: The associative operator; if elements are structs, there may be one for each field.
        variant: The variant of all passes.
        epilogues: Functions of each result, its number and uniforms, by name, which are stored in
            place of it: see `result_name`.
        reader: A kernel without outputs whose parameters `epilogues` read besides the producer's.
        has_init: True if the reduction of each row starts from `INIT`.
    """
    operator = operator_of(op, _element_of(producer))
    cut, width, formulas = _cut_of(operator.state, variant), width_of(operator.state), Formulas()
    chunks = _cut_rows(formulas, cut, width)
    rows = _rows_of_chunks(formulas, "last_", cut, width)
    first = ReductionEntry(
        operator=operator,
        words=chunks.words,
        result=RESULT,
        totals=TOTALS,
        start=INIT if has_init else "",
        epilogues=epilogues,
        own_uniforms=_own_uniforms(reader),
        is_commutative=operator.is_commutative,
    )
    kernel = _with_parameters(producer, reader)
    read = _with_parameters(_read_totals(operator), _parameters_of(epilogues, kernel))
    last = replace(first, words=rows.words, totals="", own_uniforms=_own_uniforms(read))
    steps = (
        _around(kernel, first, variant, chunks, 1),
        _over_totals(read, last, variant, rows, chunks.are_several),
    )
    return Passes(steps, (Scratch(TOTALS, operator.state, chunks.team_count),), formulas)


def lower_scan(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    epilogues: tuple[Function, ...] = (),
    reader: Kernel | None = None,
    *,
    is_mirrored: bool = False,
    is_exclusive: bool = False,
) -> Passes:
    """The passes that scan the last axis of the elements of `producer`: chunk totals, their scan,
    and the scan of each chunk from its prefix.

    Args:
        producer: As for `lower_reduce`.
        op: The associative operator.
        variant: The variant of all passes.
        epilogues: At most one function of each result, applied before the result is stored; if
            there is one row, it may also take the index and uniforms, by name.
        reader: A kernel without outputs whose parameters `epilogues` read besides the producer's.
        is_mirrored: True if the only row is stored from its end.
        is_exclusive: True if the epilogue takes the result before its index, undefined at index 0.
    """
    operator = operator_of(op, _element_of(producer))
    cut, width, formulas = _cut_of(operator.state, variant), width_of(operator.state), Formulas()
    chunks = _cut_rows(formulas, cut, width)
    last = ScanEntry(
        operator=operator,
        words=chunks.words,
        result=RESULT,
        start=CHUNK_PREFIXES,
        epilogues=epilogues,
        own_uniforms=_own_uniforms(reader),
        is_mirrored=is_mirrored,
        is_exclusive=is_exclusive,
    )
    rows = _rows_of_chunks(formulas, "middle_", cut, width)
    totals = ReductionEntry(operator=operator, words=chunks.words, result=TOTALS)
    prefixes = ScanEntry(operator=operator, words=rows.words, result=CHUNK_PREFIXES)
    several = chunks.are_several
    steps = (
        _around(producer, totals, variant, chunks, several),
        _over_totals(_read_totals(operator), prefixes, variant, rows, several),
        _around(_with_parameters(producer, reader), last, variant, chunks, sizes.symbol(LENGTH)),
    )
    names = (TOTALS, CHUNK_PREFIXES)
    scratch = tuple(Scratch(name, operator.state, chunks.team_count) for name in names)
    return Passes(steps, scratch, formulas)


def _over_totals(
    read: Kernel, entry: PassEntry, variant: Variant, rows: Chunks, is_needed: Size
) -> Pass:
    """A pass whose elements are the chunk totals, as `read` computes them."""
    uniforms = variant.device_uniforms & _own_uniforms(read)
    # Scratch is read in bounds, and was checked when it was written.
    unchecked = replace(variant, bounds="unchecked", checks="", device_uniforms=uniforms)
    return _around(read, entry, unchecked, rows, is_needed)


def _own_uniforms(reader: Kernel | None) -> frozenset[str]:
    return frozenset(u.name for u in reader.uniforms) if reader else frozenset()


def _with_parameters(kernel: Kernel, reader: Kernel | None) -> Kernel:
    """`kernel` with the parameters of `reader` besides its own."""
    if reader is None:
        return kernel
    return replace(
        kernel,
        parameters=kernel.parameters + reader.parameters,
        buffers=kernel.buffers + reader.buffers,
        uniforms=kernel.uniforms + reader.uniforms,
    )


def _parameters_of(functions: Sequence[Function], kernel: Kernel) -> Kernel:
    """`kernel` with the parameters that `functions` read."""
    names = {name for f in functions for name in (*f.buffers, *(p.name for p in f.parameters))}
    return replace(
        kernel,
        parameters=tuple(p for p in kernel.parameters if p.name in names),
        buffers=tuple(b for b in kernel.buffers if b.name in names),
        uniforms=tuple(u for u in kernel.uniforms if u.name in names),
    )


def _element_of(producer: Kernel) -> Type:
    return next(b.type.element for b in producer.buffers if b.access is Access.OUT)


def _cut_of(state: Type, variant: Variant) -> Cut:
    shape = variant.shape
    return shape.rows if has_room(state) else shape.rows_of_large_elements


def _around(
    kernel: Kernel, entry: PassEntry, variant: Variant, chunks: Chunks, is_needed: Size
) -> Pass:
    """The pass with `entry` around `kernel`, which computes elements."""
    own = frozenset(b.name for b in kernel.buffers if b.access is Access.OUT)
    lowered = lower_around(kernel, replace(variant, launch_shaped=own), entry.writer)
    return Pass(lowered, chunks.group_count, is_needed, chunks)


def _read_totals(operator: Operator) -> Kernel:
    """The kernel whose elements are the chunk totals."""
    at = (Var(type=INT, name="i"),)
    types = {
        TOTALS: BufferType(Access.IN, operator.state, 1),
        "element": BufferType(Access.OUT, operator.state, 1),
    }
    load = Load(type=operator.state, buffer=TOTALS, indices=at)
    return Kernel(
        name=operator.name,
        index_names=("i",),
        parameters=tuple(KernelParameter(name=n, type=bt) for n, bt in types.items()),
        buffers=tuple(Buffer(name=n, path=(n,), type=bt) for n, bt in types.items()),
        uniforms=(),
        body=(Store(buffer="element", indices=at, value=load),),
        local_types={},
    )


# -- chunks of rows -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunks:
    """The sizes of one pass. Attributes hold names of `Formulas`."""

    words: Mapping[str, str]
    """The size of each word of the constant buffer; `is_together` exists if `Cut.is_together`."""
    chunk_count: Size
    """Chunks of a row."""
    team_count: Size
    """Chunks of all rows; a team, group or thread, works on one."""
    group_count: Size
    team_width: Size
    """The teams of one group."""
    row_length: Size
    chunk_length: Size

    def start_of(self, team: Size) -> Size:
        """The number of the element with which a team begins."""
        row = sizes.floor_divide(team, self.chunk_count)
        number = sizes.subtract(team, sizes.multiply(row, self.chunk_count))
        start = sizes.multiply(number, self.chunk_length)
        return sizes.add(sizes.multiply(row, self.row_length), start)

    def group_count_of(self, teams: Size) -> Size:
        """The groups for some of the teams."""
        return sizes.minimum(sizes.divide_up(teams, self.team_width), GROUP_LIMIT)

    @property
    def are_several(self) -> Size:
        """Positive if a row has several chunks."""
        return sizes.subtract(self.chunk_count, 1)


def _cut_rows(formulas: Formulas, cut: Cut, width: int) -> Chunks:
    """The chunks of rows; the last one of a row may be shorter."""
    rows, length = sizes.symbol(ROWS), sizes.symbol(LENGTH)
    wanted = formulas.define("wanted_chunks", sizes.divide_up(length, cut.chunk_length))
    each = sizes.floor_divide(cut.chunk_limit, sizes.maximum(rows, 1))
    allowed = formulas.define("allowed_chunks", sizes.maximum(1, each))
    fewer = sizes.minimum(wanted, allowed)
    is_long = formulas.define("is_long", _is_more(length, cut.longest_whole))
    # 1 for short rows.
    several = sizes.add(1, sizes.multiply(is_long, sizes.subtract(fewer, 1)))
    count = formulas.define("several_chunks", several)
    blocks = sizes.maximum(1, sizes.divide_up(length, sizes.multiply(BLOCK, count)))
    if not cut.is_together:
        # The elements that threads read at one time lie in different sets of a cache.
        blocks = sizes.add(1, sizes.multiply(2, sizes.floor_divide(blocks, 2)))
    chunk_length = formulas.define("chunk_length", sizes.multiply(BLOCK, blocks))
    # As lengths are rounded up, there may be fewer chunks: none is empty.
    count = sizes.maximum(1, sizes.divide_up(length, chunk_length))
    chunk_count = formulas.define("chunk_count", count)
    return _chunks(formulas, "", LENGTH, chunk_length, chunk_count, cut, width)


def _rows_of_chunks(formulas: Formulas, prefix: str, cut: Cut, width: int) -> Chunks:
    """Rows of the totals of chunks, one chunk a row; names of sizes begin with `prefix`."""
    length = sizes.maximum(1, sizes.symbol("chunk_count"))
    chunk_length = formulas.define(f"{prefix}chunk_length", length)
    chunk_count = formulas.define(f"{prefix}chunk_count", 1)
    return _chunks(formulas, prefix, "chunk_count", chunk_length, chunk_count, cut, width)


def _chunks(
    formulas: Formulas,
    prefix: str,
    row_length: str,
    chunk_length: Size,
    chunk_count: Size,
    cut: Cut,
    width: int,
) -> Chunks:
    teams = formulas.define(f"{prefix}team_count", sizes.multiply(sizes.symbol(ROWS), chunk_count))
    words = {"row_length": row_length}
    words |= {n: f"{prefix}{n}" for n in ("chunk_length", "chunk_count", "team_count")}
    alone, team_width = sizes.divide_up(teams, width), width
    if cut.is_together:
        words["is_together"] = f"{prefix}is_together"
        is_long = _is_more(chunk_length, _SHORTEST_TOGETHER - 1)
        together = formulas.define(words["is_together"], is_long)
        more = sizes.subtract(teams, alone)
        alone = sizes.add(alone, sizes.multiply(together, more))
        team_width = sizes.subtract(width, sizes.multiply(together, width - 1))
    groups = formulas.define(f"{prefix}groups", alone)
    group_count = sizes.minimum(groups, GROUP_LIMIT)
    length = sizes.symbol(row_length)
    return Chunks(words, chunk_count, teams, group_count, team_width, length, chunk_length)


def _is_more(a: Size, b: Size) -> Size:
    """1 if ``a > b``, else 0."""
    return sizes.minimum(1, sizes.maximum(0, sizes.subtract(a, b)))
