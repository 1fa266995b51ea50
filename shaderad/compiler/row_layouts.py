"""An element type and a launch shape -> the passes of a reduction or scan, for all sizes.

Formulas in the number and length of rows give the passes that run, their groups and their size
words. The host evaluates them for each call, so one program serves all shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from shaderad.compiler.launch_shapes import Cut, LaunchShape
from shaderad.ir import sizes
from shaderad.ir.sizes import Size
from shaderad.ir.types import Type, byte_count

ROWS, LENGTH = "rows", "length"
"""The number and length of rows, from which all other sizes follow."""
BLOCK = 8
"""Elements of a thread's block; all chunks except the last of a row are whole blocks."""
GROUP_LIMIT = 4096
"""Maximum groups of a pass; each loops over several chunks."""
_SHORTEST_TOGETHER = 128
"""A group works together on chunks of at least this many elements; else each thread takes one."""
_GROUP_MEMORY = 16 * 1024
"""Bytes of group memory that WebGPU guarantees."""


def width_of(state: Type) -> int:
    """Threads of a group; each has a state in group memory if `has_room`."""
    places = _GROUP_MEMORY // byte_count(state)
    return next((width for width in (64, 32, 16) if width <= places), 8)


def has_room(state: Type) -> bool:
    """True if group memory has room for one state per thread."""
    return width_of(state) * byte_count(state) <= _GROUP_MEMORY


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
class Chunks:
    """The sizes of one pass. Attributes hold names of `Formulas`."""

    is_together: bool
    """True if a group works on a chunk together; else each thread takes one."""
    is_chosen: Size
    """1 if this pass is the one that runs, else 0."""
    words: Mapping[str, str]
    """The name of the size in each word of the constant buffer."""
    chunk_count: Size
    """Chunks of a row."""
    team_count: Size
    """Chunks of all rows; each is the work of one team, which is a group or a thread."""
    group_count: Size
    team_width: int
    """The teams of one group."""
    row_length: Size
    chunk_length: Size

    def start_of(self, team: Size) -> Size:
        """The index of the first element of a team."""
        row = sizes.floor_divide(team, self.chunk_count)
        number = sizes.subtract(team, sizes.multiply(row, self.chunk_count))
        start = sizes.multiply(number, self.chunk_length)
        return sizes.add(sizes.multiply(row, self.row_length), start)

    def group_count_of(self, teams: Size) -> Size:
        """The number of groups for so many teams."""
        return sizes.minimum(sizes.divide_up(teams, self.team_width), GROUP_LIMIT)

    @property
    def are_several(self) -> Size:
        """Positive if a row has several chunks."""
        return sizes.subtract(self.chunk_count, 1)


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """One pass before it is lowered."""

    step: int
    """The index of its step in the reduction or scan."""
    chunks: Chunks
    is_needed: Size
    """The pass runs if this is positive."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The passes of a reduction or scan for all sizes.

    A step has one pass for teams that are groups and one for teams that are threads; the sizes
    select the pass that runs.
    """

    formulas: Formulas
    passes: tuple[PlannedPass, ...]
    chunk_count: Size
    """Chunks of all rows."""

    def needed(self, rows: int, length: int) -> tuple[int, ...]:
        """The indices of the passes that run for `rows` rows of `length` elements."""
        values = self.formulas.evaluate(rows, length)
        return tuple(
            k
            for k, planned in enumerate(self.passes)
            if sizes.evaluate(planned.is_needed, values) > 0
        )


@lru_cache(maxsize=64)
def reduction_layout(state: Type, shape: LaunchShape) -> RowLayout:
    """The passes of a reduction: over chunks, then over their totals."""
    formulas, cut, width = Formulas(), _cut_of(state, shape), width_of(state)
    chunks = _cut_rows(formulas, cut, width)
    totals = _rows_of_chunks(formulas, "last_", cut, width)
    return _layout(formulas, (chunks, 1), (totals, chunks[0].are_several))


@lru_cache(maxsize=64)
def scan_layout(state: Type, shape: LaunchShape) -> RowLayout:
    """The passes of a scan: chunk totals, their scan, and the scans of chunks."""
    formulas, cut, width = Formulas(), _cut_of(state, shape), width_of(state)
    chunks = _cut_rows(formulas, cut, width)
    prefixes = _rows_of_chunks(formulas, "middle_", cut, width)
    several = chunks[0].are_several
    last = (chunks, sizes.symbol(LENGTH))
    return _layout(formulas, (chunks, several), (prefixes, several), last)


def _layout(formulas: Formulas, *steps: tuple[Sequence[Chunks], Size]) -> RowLayout:
    passes = [
        PlannedPass(k, chunks, sizes.multiply(is_needed, chunks.is_chosen))
        for k, (ways, is_needed) in enumerate(steps)
        for chunks in ways
    ]
    ways, _ = steps[0]
    return RowLayout(formulas, tuple(passes), ways[0].team_count)


def _cut_of(state: Type, shape: LaunchShape) -> Cut:
    return shape.rows if has_room(state) else shape.rows_of_large_elements


# -- chunks of rows -----------------------------------------------------------------------------


def _cut_rows(formulas: Formulas, cut: Cut, width: int) -> tuple[Chunks, ...]:
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
        # An odd number of blocks, so that threads read from different sets of a cache at a time.
        blocks = sizes.add(1, sizes.multiply(2, sizes.floor_divide(blocks, 2)))
    chunk_length = formulas.define("chunk_length", sizes.multiply(BLOCK, blocks))
    # Lengths are rounded up, so there may be fewer chunks, but none is empty.
    count = sizes.maximum(1, sizes.divide_up(length, chunk_length))
    chunk_count = formulas.define("chunk_count", count)
    return _chunks(formulas, "", LENGTH, chunk_length, chunk_count, cut, width)


def _rows_of_chunks(formulas: Formulas, prefix: str, cut: Cut, width: int) -> tuple[Chunks, ...]:
    """The rows of chunk totals, one chunk per row; names of sizes begin with `prefix`."""
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
) -> tuple[Chunks, ...]:
    """The chunks for teams that are groups and for teams that are threads."""
    teams = formulas.define(f"{prefix}team_count", sizes.multiply(sizes.symbol(ROWS), chunk_count))
    words = {"row_length": row_length}
    words |= {n: f"{prefix}{n}" for n in ("chunk_length", "chunk_count", "team_count")}
    length = sizes.symbol(row_length)

    def chunks(*, is_together: bool, is_chosen: Size) -> Chunks:
        team_width = 1 if is_together else width
        groups = sizes.minimum(sizes.divide_up(teams, team_width), GROUP_LIMIT)
        return Chunks(is_together, is_chosen, words, chunk_count, teams, groups, team_width, length,
                      chunk_length)  # fmt: skip

    if not cut.is_together:
        return (chunks(is_together=False, is_chosen=1),)
    is_long = _is_more(chunk_length, _SHORTEST_TOGETHER - 1)
    together = formulas.define(f"{prefix}is_together", is_long)
    alone = sizes.subtract(1, together)
    return (
        chunks(is_together=False, is_chosen=alone),
        chunks(is_together=True, is_chosen=together),
    )


def _is_more(a: Size, b: Size) -> Size:
    """1 if ``a > b``, else 0."""
    return sizes.minimum(1, sizes.maximum(0, sizes.subtract(a, b)))
