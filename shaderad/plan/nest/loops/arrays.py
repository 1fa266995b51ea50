"""The values of a kernel that one workgroup runs, as arrays: where their elements are, and copies.

Invariant: an element in memory that all threads access is read and stored through `load` and
`store`, which note it, so that barriers stand where they must.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shaderad.ir import composing as c
from shaderad.ir import nodes, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, UINT, Access, BufferType, LocalArray, Type, word_bytes
from shaderad.plan.kernels import Writer
from shaderad.plan.nest.loops.memory import NO_SHARE, UNDECIDED, MemoryKind, Share, Use
from shaderad.plan.nest.loops.tiles import Tiled, TileShare, Tiling, exactly, shifted_axes
from shaderad.plan.positions import Indices, Position, add, constant, number, times

_USUAL: Mapping[str, int] = defaultdict(lambda: 16)
"""Sizes that are not known while accesses are counted."""


class NoGroup(Exception):
    """A step that one workgroup cannot run."""


@dataclass(frozen=True, slots=True)
class Region:
    """The memory of a value: elements of an array from `start` on."""

    array: str
    start: Position = Position()  # noqa: RUF009, a constant
    half: str = ""
    """Tells the halves of a carry's array apart, ``now`` and ``next``."""

    @property
    def elements(self) -> tuple[str, str]:
        """Equal for places that may share elements."""
        return self.array, self.half


@dataclass(frozen=True, slots=True)
class InputCopy:
    """Elements of an input in local arrays: each thread has those of its share of a step."""

    value: Value
    share_key: Size | Tiling
    is_row: bool = False
    """True if a row of the input belongs to an element of the step, not a column."""


@dataclass(frozen=True, slots=True)
class GroupDecisions:
    """How a kernel is written; without any on trial."""

    uses: Mapping[str, Use] = field(default_factory=lambda: UNDECIDED)
    """The arrays between steps, by name, with their memory."""
    tiled: Tiled | None = None


@dataclass(slots=True)
class WrittenStep:
    """The step that is being written, and what it accesses."""

    share: Share | TileShare = NO_SHARE
    """The elements that are the thread's."""
    own: tuple[Indices, Shape] = ((), ())
    """The element that is being written, and the shape of the step."""
    shifts: frozenset[int] = frozenset()
    """The axes along which it reads elements beside its own."""
    reads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    writes: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Elements that it reads, and writes, where all threads access them."""


class GroupArrays:
    """The arrays of one kernel.

    Args:
        writer: Of the kernel's arrays and uniforms.
        decisions: How it is written.
    """

    def __init__(self, writer: Writer, decisions: GroupDecisions) -> None:
        self.positions = writer.positions
        self.uses: dict[str, Use] = {}
        """The accesses to arrays between steps, by name."""
        self.place_of: dict[Value, Region] = {}
        self.step = WrittenStep()
        self.times: Size = 1
        """How often the steps that are being written run."""
        self.folded: Size = 1
        """The elements that the loop being written inside of a step combines."""
        self.is_repeated = False
        self.copies: dict[InputCopy, str] = {}
        """Copies of inputs -> their local arrays."""
        self._writer = writer
        self._decided = decisions.uses
        self._count = 0

    # -- elements ------------------------------------------------------------------------------

    def store(self, place: Region, shape: Shape, at: Indices, element: Expr) -> list[Stmt]:
        """Stores the element of a value at `at`, of which `shape` is the shape."""
        own = self._own_index(place, shape, at)
        self._note(place, shape, own)
        if place.array in self.uses:
            self.uses[place.array].note_write(self.step.share, is_own=own is not None)
        body: list[Stmt] = []
        if own is not None and self._has_local(place.array):
            name = self._local_name(place.array)
            body.append(Assign(name=name, path=self._path(place.array, own), value=element))
            element = self._held(element.type, place.array, own)
        index = self._index(place, shape, at)
        if index is not None:
            self.step.writes.add(place.elements)
            body.append(
                nodes.Store(buffer=place.array, indices=(index,), value=element, is_unique=True)
            )
        return body

    def load(self, v: Value, place: Region, at: Indices) -> Expr:
        """The element of a value at `at`."""
        own = self._own_index(place, v.shape, at)
        self._note(place, v.shape, own)
        if place.array in self.uses:
            owner = self._owner(v.shape, at)
            local = None if owner is None else owner[1]
            self.uses[place.array].note_read(self.step.share, local, is_own=own is not None)
            self.step.shifts |= shifted_axes(self.positions, *self.step.own, at, v.shape)
        if own is not None and self._has_local(place.array):
            return self._held(v.element, place.array, own)
        self.step.reads.add(place.elements)
        index = self._index(place, v.shape, at)
        assert index is not None
        return nodes.Load(type=v.element, buffer=place.array, indices=(index,))

    def sum_index(self, place: Region, shape: Shape, at: Indices) -> Expr:
        """The index at which threads add to an element of a place."""
        self.uses[place.array].is_summed = True
        self.step.writes.add(place.elements)
        return self._inside(add(place.start, number(at, shape)))

    def note_elsewhere(self, place: Region) -> None:
        """Notes a read of a place at any position, by all threads."""
        self._note(place, (), None)
        if place.array in self.uses:
            self.uses[place.array].note_read(self.step.share, None, is_own=False)
        self.step.reads.add(place.elements)

    def _owner(self, shape: Shape, at: Indices) -> tuple[Position, int] | None:
        if not isinstance(self.step.share, TileShare):
            return None
        return self.step.share.tiling.owner(*self._known(at, shape))

    def _known(self, at: Indices, shape: Shape) -> tuple[Indices, Shape]:
        positions = self.positions
        return tuple(map(positions.at_known, at)), tuple(map(positions.known, shape))

    def _own_index(self, place: Region, shape: Shape, at: Indices) -> Position | None:
        """The index of an element in the thread's local array; `None` if it is not its own."""
        decided = self._decided.get(place.array)
        if decided is not None and decided.share_key != self.step.share.key:
            return None
        start = place.start
        if place.half:
            start = times(constant(sizes.product(shape)), int(place.half == "next"))
        start = self.positions.at_known(start)
        return self.step.share.own_index(*self._known(at, shape), start)

    def times_known(self) -> int:
        """How often the steps that are being written run, or a guess."""
        repetitions = sizes.multiply(self.times, self.folded)
        return sizes.evaluate(self.positions.known(repetitions), _USUAL)

    def _note(self, place: Region, shape: Shape, own: Position | None) -> None:
        """Notes an access, of elements that `own` tells to be the thread's."""
        if place.array not in self.uses:
            return
        share, size = self.step.share, self.positions.known(sizes.product(shape))
        if isinstance(share, TileShare) and own is not None and isinstance(size, int):
            share = replace(share, count=size)
        self.uses[place.array].note(share, self.times_known(), is_own=own is not None)

    def _index(self, place: Region, shape: Shape, at: Indices) -> Expr | None:
        """The index of an element in the memory that all threads access; `None` if it has none."""
        use = self._decided.get(place.array)
        if use is not None and use.memory is MemoryKind.THREAD:
            return None
        if use is None or not use.is_held or use.tiling is None or use.read_locals is None:
            return self._inside(add(place.start, number(at, shape)))
        start = exactly(self.positions.at_known(place.start), use.share_count)
        owner = use.tiling.owner(*self._known(at, shape))
        assert start is not None
        assert owner is not None
        tile, local = owner
        if isinstance(self.step.share, TileShare) and tile == self.step.share.tile:
            tile = self.positions.of(self._writer.index()[0])
        if local not in use.read_locals:
            return None
        width, row = use.tiling.tile_count, sorted(use.read_locals).index(local)
        before = add(times(start, width * len(use.read_locals)), constant(width * row))
        return self._inside(add(before, tile))

    def _inside(self, position: Position) -> Expr:
        element = nodes.Cast(type=UINT, value=self.positions.expr(position))
        return nodes.KnownNumber(type=UINT, number=element, is_inside=True)

    # -- local arrays --------------------------------------------------------------------------

    def memory(self, array: str) -> MemoryKind:
        """The memory of an array that all threads access, or the thread's own."""
        return self._decided[array].memory if array in self._decided else MemoryKind.BUFFER

    def _has_local(self, array: str) -> bool:
        use = self._decided.get(array)
        return use is not None and (use.is_held or use.memory is MemoryKind.THREAD)

    def _local_name(self, array: str) -> str:
        return array if self.memory(array) is MemoryKind.THREAD else f"{array}_own"

    def _path(self, array: str, index: Position) -> tuple[nodes.ElementStep, ...]:
        if self._decided[array].thread_count == 1:
            return ()
        e = self.positions.expr(index)
        is_number = c.number_of(e) is not None
        known = e if is_number else nodes.KnownNumber(type=INT, number=e, is_inside=True)
        return (nodes.ElementStep(index=known),)

    def _held(self, t: Type, array: str, index: Position) -> Expr:
        """An element in the thread's local array."""
        name = self._local_name(array)
        local: Expr = c.variable(name, self._writer.local_types[name])
        for step in self._path(array, index):
            local = nodes.Element(type=t, value=local, index=step.index)
        return local

    def next_is_now(self, array: str) -> list[Stmt]:
        """Moves the thread's elements of a carry for the iteration that follows."""
        if not self._has_local(array):
            return []
        use = self._decided[array]
        half = use.thread_count // 2
        return [
            Assign(name=self._local_name(array), path=self._path(array, constant(k)),
                   value=self._held(use.element, array, constant(half + k)))
            for k in range(half)
        ]  # fmt: skip

    def declarations(self) -> list[Stmt]:
        """The declarations of local arrays."""
        names = [self._local_name(name) for name in self.uses if self._has_local(name)]
        types = self._writer.local_types
        return [Assign(name=name, value=nodes.Zero(type=types[name])) for name in names]

    # -- copies of inputs ----------------------------------------------------------------------

    def copied(self, v: Value, at: Indices) -> Expr | None:
        """A part of the thread's element of an input that a loop reads, if these have room."""
        share, count = self.step.share, self.positions.known(sizes.product(v.shape))
        if not self.is_repeated or share.turns is None or not isinstance(count, int) or count == 1:
            return None
        index = share.own_index(*self._known(at, v.shape), Position())
        copy = InputCopy(v, share.key, is_row=index is None)
        if index is None and isinstance(share, Share):
            part = self._part_of_row(share, v, at)
            index = None if part is None else share.index(part)
        if index is None:
            return None
        if copy not in self.copies:
            self.copies[copy] = self.scratch(v.element, count, is_copy=True).array
        place = Region(self.copies[copy])
        self._note(place, v.shape, index)
        has_local = self._has_local(place.array)
        return self._held(v.element, place.array, index) if has_local else None

    def _part_of_row(self, share: Share, v: Value, at: Indices) -> Position | None:
        """The position in a row of `v` where its rows belong to the elements of the share."""
        for axis in range(1, len(at)):
            rows, row = v.shape[:axis], v.shape[axis:]
            is_whole = self.positions.known(sizes.product(rows)) == share.count
            position = self.positions.at_known(number(at[:axis], rows))
            if is_whole and position == share.position:
                return number(at[axis:], row)
        return None

    def fill(self, array: str, index: Position, value: Expr) -> Stmt:
        """Sets an element of the thread's in the copy of an input."""
        self._note(Region(array), (), index)
        return Assign(name=array, path=self._path(array, index), value=value)

    # -- names ---------------------------------------------------------------------------------

    def scratch(self, t: Type, *shape: Size, is_copy: bool = False) -> Region:
        """A new array between steps.

        `is_copy`: it spares reads of another array, and has no use but in a thread's memory.
        """
        if word_bytes(t) == 2:  # one buffer holds all arrays, as 32-bit words
            raise NoGroup
        self._count += 1
        shape = tuple(map(self.positions.known, shape))
        name, count = f"s{self._count}", sizes.product(shape)
        self.uses[name] = Use(t, count if isinstance(count, int) else None, is_copy)
        if self._has_local(name):
            elements = self._decided[name].thread_count
            own = t if elements == 1 else LocalArray(t, elements)
            self._writer.local_types[self._local_name(name)] = own
        if not is_copy and self.memory(name) is not MemoryKind.THREAD:
            self._add_array(name, t, shape)
        return Region(name)

    def _add_array(self, name: str, t: Type, shape: Shape) -> None:
        """Declares an array that all threads access."""
        decided = self._decided.get(name)
        if decided is not None and decided.is_held:
            shape = (decided.packed_count,)
        is_shared = self.memory(name) is MemoryKind.GROUP
        access = Access.GROUP if is_shared else Access.SCRATCH
        count = sizes.product(shape)
        kind = BufferType(access, t, len(shape))
        known = count if is_shared and isinstance(count, int) else 0
        buffer = nodes.Buffer(name=name, path=(name,), type=kind, count=known)
        self._writer.add_scratch(buffer, shape)
