"""Where the arrays between the steps of a workgroup lie: by thread, in group memory, in a buffer.

An array of which each thread accesses only the elements that it computes is a local array of its
own. Of the others, those with the most accesses for their size lie in group memory. If a step reads
the elements beside its own (`tiles.py`), each thread also holds its own ones, and the memory
that all access has only those that other threads read. Invariant: an array to which threads add, or
whose size is no number, lies in a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import WORD_BYTES, Type, byte_count
from shaderad.plan.nest.loops.tiles import TileShare, Tiling
from shaderad.plan.positions import Indices, Position, Positions, add, number, times

THREAD_WORDS = 256
"""Words of local arrays, of which GPUs keep those that are in use in up to 255 registers: as many
as let both directions of a small product have its weights at hand."""


class MemoryKind(Enum):
    """A kind of memory."""

    THREAD = "thread"
    GROUP = "group"
    BUFFER = "buffer"


@dataclass(slots=True)
class Use:
    """The accesses to an array, noted while a kernel is written on trial, and its memory."""

    element: Type
    count: int | None
    """Its elements; `None` if that is no number."""
    is_copy: bool = False
    """True for a copy that spares reads of another array."""
    share_key: Size | Tiling | None = None
    """Tells which elements of the steps that access the array are a thread's; `None` before the
    first."""
    share_count: int = 0
    """The elements of each such step."""
    turns: int = 0
    """The number of elements of each thread."""
    is_own: bool = True
    """True if threads access only parts of the elements that they compute."""
    may_be_held: bool = True
    """True if each element is stored by the thread whose tile has it, in a step for tiles."""
    are_own_read: bool = False
    """True if steps for tiles read elements of the thread's tile."""
    read_locals: set[int] | None = field(default_factory=set[int])
    """The elements of tiles that other threads read; `None` if these may be any."""
    is_summed: bool = False
    access_count: int = 0
    memory: MemoryKind = MemoryKind.BUFFER
    is_held: bool = False
    """True if threads have their elements in local arrays, besides the memory that all access."""

    @property
    def thread_count(self) -> int:
        """The elements of one thread."""
        return self.turns * ((self.count or 0) // (self.share_count or 1))

    def note(self, share: Share | TileShare, times: int, *, is_own: bool) -> None:
        """Notes accesses by the threads of a step that runs so many times."""
        self.is_own &= is_own and self.share_key in (None, share.key)
        if not isinstance(share.count, int):
            return
        is_tile = isinstance(share, TileShare)
        self.access_count += times * share.count // (share.turns if is_tile else 1)
        if is_tile or not isinstance(self.share_key, Tiling):
            self.share_key, self.share_count = share.key, share.count
            self.turns = share.turns or 0

    def note_write(self, share: Share | TileShare, *, is_own: bool) -> None:
        """Notes that the threads of a step store elements."""
        self.may_be_held &= is_own and isinstance(share, TileShare)

    def note_read(self, share: Share | TileShare, local: int | None, *, is_own: bool) -> None:
        """Notes that the threads of a step read an element.

        `local`: the number of the element in its tile; `None` if that may be any.
        """
        if is_own and isinstance(share, TileShare):
            self.are_own_read = True
        elif local is None:
            self.read_locals = None
        elif self.read_locals is not None:
            self.read_locals.add(local)

    @property
    def tiling(self) -> Tiling | None:
        """The tiles of an array that threads may hold."""
        key = self.share_key
        is_alike = self.may_be_held and self.are_own_read
        return key if is_alike and isinstance(key, Tiling) else None

    @property
    def packed_count(self) -> int:
        """Elements in the memory that all threads access, if each holds its own ones."""
        if self.tiling is None or self.read_locals is None:
            return self.count or 0
        parts = (self.count or 0) // max(1, self.share_count)
        return parts * len(self.read_locals) * self.tiling.tile_count

    @property
    def words(self) -> int:
        """32-bit words of an element."""
        return -(-byte_count(self.element) // WORD_BYTES)

    @property
    def worth(self) -> float:
        """Accesses by word."""
        return self.access_count / max(1, (self.count or 0) * self.words)


def decide(uses: Iterable[Use], group_bytes: int) -> None:
    """Decides the memory of arrays.

    Args:
        uses: All of one kernel.
        group_bytes: The size of group memory.
    """
    left = {MemoryKind.THREAD: THREAD_WORDS, MemoryKind.GROUP: group_bytes // WORD_BYTES}
    for use in sorted(uses, key=lambda use: -use.worth):
        if use.is_summed or not use.count or not use.access_count:
            continue
        own_words = use.words * use.thread_count
        has_room = 0 < own_words <= left[MemoryKind.THREAD]
        if use.is_own and has_room:
            left[MemoryKind.THREAD] -= own_words
            use.memory = MemoryKind.THREAD
            continue
        if use.is_copy:
            continue
        use.is_held = has_room and use.tiling is not None
        if use.is_held:
            left[MemoryKind.THREAD] -= own_words
        words = use.words * (use.packed_count if use.is_held else use.count)
        if words <= left[MemoryKind.GROUP]:
            left[MemoryKind.GROUP] -= words
            use.memory = MemoryKind.GROUP


@dataclass(frozen=True, slots=True)
class Share:
    """The elements of a step that one thread computes: every so many, by the number of threads."""

    position: Position
    """The position of one of them."""
    count: Size
    """The elements of the step."""
    threads: Size
    counter: nodes.Var | None = None
    """Counts turns, or elements if `turns` is not known; `None` for a single turn."""
    turns: int | None = None
    turn: Position = Position()  # noqa: RUF009, a constant

    @property
    def key(self) -> Size:
        """Equal for steps in which elements belong to the same threads."""
        return self.count

    def own_index(self, at: Indices, shape: Shape, start: Position) -> Position | None:
        """The index in the thread's local array of an element that it owns; `None` of others.

        Args:
            at: Its position in an array.
            shape: The shape of the array.
            start: What is before the array in its memory.
        """
        part = self.part_at(add(start, number(at, shape)))
        return None if part is None else self.index(part)

    def part_at(self, position: Position) -> Position | None:
        """The n for which `position` is the n-th of those that are alike for the share.

        These are as far apart as the step has elements; `None` where it is none of them.
        """
        count = self.count
        rest = add(position, times(self.position, -1))
        factors = (rest.constant, *(factor for _, factor in rest.terms))
        if self.turns is None or not isinstance(count, int):
            return None
        if not all(isinstance(factor, int) and factor % count == 0 for factor in factors):
            return None
        terms = tuple((base, sizes.floor_divide(factor, count)) for base, factor in rest.terms)
        return Position(sizes.floor_divide(rest.constant, count), terms)

    def index(self, part: Position) -> Position:
        """The index of a part of the thread's element in its local array."""
        return add(times(part, self.turns or 0), self.turn)

    def each(self, positions: Positions, thread: Expr, body: Sequence[Stmt]) -> Sequence[Stmt]:
        """The statements that run `body` for each element."""
        if self.turns is None:
            assert self.counter is not None
            stop, step = positions.size(self.count), positions.size(self.threads)
            return [counted(self.counter, thread, stop, body, step=step)]
        assert isinstance(self.count, int)
        assert isinstance(self.threads, int)
        if self.turns * self.threads != self.count:
            inside = c.apply(ops.LT, positions.expr(self.position), c.whole(self.count))
            body = [nodes.If(condition=inside, then=tuple(body), otherwise=())]
        if self.counter is None:
            return body
        return [counted(self.counter, c.whole(0), c.whole(self.turns), body)]


def counted(
    counter: nodes.Var,
    start: Expr,
    stop: Expr,
    body: Sequence[Stmt],
    *,
    step: Expr | None = None,
    is_unrolled: bool = False,
) -> Stmt:
    """``for counter in range(start, stop, step)``."""
    return nodes.For(
        variable=counter.name, start=start, stop=stop, step=step or c.whole(1),
        is_unrolled=is_unrolled, body=tuple(body),
    )  # fmt: skip


def share_of(
    positions: Positions, thread: Expr, count: Size, threads: Size, counter: nodes.Var
) -> Share:
    """The share of a thread in a step of `count` elements; `counter` is a new variable."""
    first = positions.of(thread)
    count, threads = positions.known(count), positions.known(threads)
    if not isinstance(count, int) or not isinstance(threads, int):
        return Share(positions.of(counter), count, threads, counter)
    turns = -(-count // threads)
    if turns <= 1:
        return Share(first, count, threads, None, turns)
    turn = positions.of(counter)
    return Share(add(first, times(turn, threads)), count, threads, counter, turns, turn)


NO_SHARE = Share(Position(), 0, 0)
UNDECIDED: Mapping[str, Use] = MappingProxyType({})
