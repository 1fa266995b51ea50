"""The chunks of the rows of a reduction or scan, and the number of groups that work on them.

All sizes are formulas over the number and length of rows. The host evaluates them for each call,
so one program serves all shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shaderad.ir import sizes
from shaderad.ir.sizes import Size

ROWS = "rows"
LENGTH = "length"
BLOCK = 8
"""Elements of a thread's block; all chunks but the last of a row are whole blocks."""
GROUP_LIMIT = 4096
"""Maximum groups of a pass; each loops over several chunks."""
_SHORTEST_TOGETHER = 128
"""A group works together on chunks of at least so many elements; else each thread takes one."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Limits that decide the chunks of rows."""

    longest_whole: int
    """Longer rows are cut."""
    chunk_length: int
    """Minimum elements of a chunk, as long as `chunk_limit` is not reached."""
    chunk_limit: int
    """Maximum chunks of all rows."""
    is_together: bool
    """True if a group may work on a chunk together; else each thread takes one."""


PARALLEL = Cut(longest_whole=8192, chunk_length=1024, chunk_limit=4096, is_together=True)
"""For devices whose groups run in parallel."""
SERIAL = Cut(longest_whole=2048, chunk_length=256, chunk_limit=16384, is_together=False)
"""For processors, which run the threads of a group in turn and pay for every barrier."""


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

    words: Mapping[str, str]
    """The size of each word of the constant buffer; `is_together` exists if `Cut.is_together`."""
    chunk_count: Size
    """Chunks of a row."""
    team_count: Size
    """Chunks of all rows; a team, group or thread, works on one."""
    group_count: Size

    @property
    def are_several(self) -> Size:
        """Positive if a row has several chunks."""
        return sizes.subtract(self.chunk_count, 1)


def cut_rows(formulas: Formulas, cut: Cut, width: int, *, is_mirrored: bool = False) -> Chunks:
    """The chunks of rows; the last one of a row may be shorter, with `is_mirrored` the first."""
    rows, length = sizes.symbol(ROWS), sizes.symbol(LENGTH)
    wanted = formulas.define("wanted_chunks", sizes.divide_up(length, cut.chunk_length))
    each = sizes.floor_divide(cut.chunk_limit, sizes.maximum(rows, 1))
    allowed = formulas.define("allowed_chunks", sizes.maximum(1, each))
    fewer = sizes.minimum(wanted, allowed)
    is_long = formulas.define("is_long", is_more(length, cut.longest_whole))
    # 1 for short rows.
    several = sizes.add(1, sizes.multiply(is_long, sizes.subtract(fewer, 1)))
    count = formulas.define("several_chunks", several)
    blocks = sizes.divide_up(length, sizes.multiply(BLOCK, count))
    each = sizes.multiply(BLOCK, sizes.maximum(1, blocks))
    chunk_length = formulas.define("chunk_length", each)
    # As lengths are rounded up, there may be fewer chunks: none is empty.
    count = sizes.maximum(1, sizes.divide_up(length, chunk_length))
    chunk_count = formulas.define("chunk_count", count)
    chunks = _chunks(formulas, "", rows, LENGTH, chunk_length, chunk_count, cut, width)
    if not is_mirrored:
        return chunks
    missing = sizes.subtract(sizes.multiply(chunk_count, chunk_length), length)
    formulas.define("missing", missing)
    return replace(chunks, words={**chunks.words, "missing": "missing"})


def whole_rows(formulas: Formulas, prefix: str, length: str, cut: Cut, width: int) -> Chunks:
    """One chunk a row; names of sizes begin with `prefix`."""
    rows = sizes.symbol(ROWS)
    chunk_length = formulas.define(f"{prefix}chunk_length", sizes.maximum(1, sizes.symbol(length)))
    chunk_count = formulas.define(f"{prefix}chunk_count", 1)
    return _chunks(formulas, prefix, rows, length, chunk_length, chunk_count, cut, width)


def _chunks(
    formulas: Formulas,
    prefix: str,
    rows: Size,
    row_length: str,
    chunk_length: Size,
    chunk_count: Size,
    cut: Cut,
    width: int,
) -> Chunks:
    teams = formulas.define(f"{prefix}team_count", sizes.multiply(rows, chunk_count))
    words = {"row_length": row_length}
    words |= {n: f"{prefix}{n}" for n in ("chunk_length", "chunk_count", "team_count")}
    alone = sizes.divide_up(teams, width)
    if cut.is_together:
        words["is_together"] = f"{prefix}is_together"
        is_long = is_more(chunk_length, _SHORTEST_TOGETHER - 1)
        together = formulas.define(words["is_together"], is_long)
        more = sizes.subtract(teams, alone)
        alone = sizes.add(alone, sizes.multiply(together, more))
    groups = formulas.define(f"{prefix}groups", alone)
    return Chunks(words, chunk_count, teams, sizes.minimum(groups, GROUP_LIMIT))


def is_more(a: Size, b: Size) -> Size:
    """1 if ``a > b``, else 0."""
    return sizes.minimum(1, sizes.maximum(0, sizes.subtract(a, b)))
