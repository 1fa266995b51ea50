"""Where the arrays between the steps of a workgroup lie: by thread, in group memory, in a buffer.

An array of which each thread accesses only the elements that it computes is a local array of its
own. Of the others, those with the most accesses for their size lie in group memory. If a step reads
the elements beside its own (`tiles.py`), each thread also holds its own ones, and the memory
that all access has only those that other threads read. Invariant: an array to which threads add, or
whose size is no number, lies in a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shaderad.ir.types import WORD_BYTES, Type, byte_count
from shaderad.plan.nest.loops.shares import Share, elements_per_thread, is_tiled, tile_count
from shaderad.plan.nest.memory import MemoryKind
from shaderad.plan.nest.nest import Nest

THREAD_WORDS = 256
"""Words of local arrays, of which GPUs keep those that are in use in up to 255 registers: as many
as let both directions of a small product have its weights at hand."""


@dataclass(slots=True)
class Use:
    """The accesses to an array, noted while a kernel is written on trial, and its memory."""

    element: Type
    count: int | None
    """Its elements; `None` if that is no number."""
    is_copy: bool = False
    """True for a copy that spares reads of another array."""
    nest: Nest | None = None
    """Tells which elements of the steps that access the array are a thread's; `None` before the
    first."""
    share_count: int = 0
    """The elements of each such step."""
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
        if self.nest is None:
            return 0
        return elements_per_thread(self.nest) * ((self.count or 0) // (self.share_count or 1))

    def note(self, share: Share, times: int, *, is_own: bool) -> None:
        """Notes accesses by the threads of a step that runs so many times."""
        self.is_own &= is_own and self.nest in (None, share.nest)
        if not isinstance(share.count, int):
            return
        is_tile = is_tiled(share.nest)
        self.access_count += times * share.count // (share.turns if is_tile else 1)
        if is_tile or self.nest is None or not is_tiled(self.nest):
            self.nest, self.share_count = share.nest, share.count

    def note_write(self, share: Share, *, is_own: bool) -> None:
        """Notes that the threads of a step store elements."""
        self.may_be_held &= is_own and is_tiled(share.nest)

    def note_read(self, share: Share, local: int | None, *, is_own: bool) -> None:
        """Notes that the threads of a step read an element.

        `local`: the number of the element in its tile; `None` if that may be any.
        """
        if is_own and is_tiled(share.nest):
            self.are_own_read = True
        elif local is None:
            self.read_locals = None
        elif self.read_locals is not None:
            self.read_locals.add(local)

    @property
    def tiling(self) -> Nest | None:
        """The tiles of an array that threads may hold."""
        is_alike = self.may_be_held and self.are_own_read
        is_tile = self.nest is not None and is_tiled(self.nest)
        return self.nest if is_alike and is_tile else None

    @property
    def packed_count(self) -> int:
        """Elements in the memory that all threads access, if each holds its own ones."""
        if self.tiling is None or self.read_locals is None:
            return self.count or 0
        parts, tiles = (self.count or 0) // max(1, self.share_count), tile_count(self.tiling)
        return parts * len(self.read_locals) * tiles

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


UNDECIDED: Mapping[str, Use] = MappingProxyType({})
