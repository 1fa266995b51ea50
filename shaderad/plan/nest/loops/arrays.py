"""The values of a kernel that one workgroup runs, as arrays: where their elements are, and copies.

Invariant: an element in memory that all threads access is read and stored through `load` and
`store`, which note it, so that barriers stand where they must.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shaderad.diagnostics import Span
from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Type, word_bytes
from shaderad.plan.kernels import Writer
from shaderad.plan.nest.loops.placement import UNDECIDED, Use
from shaderad.plan.nest.loops.shares import NO_SHARE, Share, exactly, is_tiled, owner, tile_count
from shaderad.plan.nest.loops.tiles import Tiled, shifted_axes
from shaderad.plan.nest.memory import MemoryKind, SharedArray, ThreadArray, shared_array
from shaderad.plan.nest.nest import Nest
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
    nest: Nest
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

    share: Share = NO_SHARE
    """The elements that are the thread's."""
    own: tuple[Indices, Shape] = ((), ())
    """The element that is being written, and the shape of the step."""
    cost: int = 0
    """The cost of an element, in additions."""
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
        self._own: dict[str, ThreadArray] = {}
        """The local arrays in which the thread has its elements, by the names of arrays."""
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
        if own is not None and place.array in self._own:
            array = self._own[place.array]
            body.append(array.put(own, element))
            element = array.get(own)
        index = self._index(place, shape, at)
        if index is not None:
            self.step.writes.add(place.elements)
            body.append(self._shared(place, element.type).put(index, element))
        return body

    def load(self, v: Value, place: Region, at: Indices) -> Expr:
        """The element of a value at `at`."""
        own = self._own_index(place, v.shape, at)
        self._note(place, v.shape, own)
        if place.array in self.uses:
            other = self._owner(v.shape, at)
            local = None if other is None else other[1]
            self.uses[place.array].note_read(self.step.share, local, is_own=own is not None)
            self.step.shifts |= shifted_axes(self.positions, *self.step.own, at, v.shape)
        if own is not None and place.array in self._own:
            return self._own[place.array].get(own)
        self.step.reads.add(place.elements)
        index = self._index(place, v.shape, at)
        assert index is not None
        return self._shared(place, v.element).get(index)

    def add_to(self, place: Region, shape: Shape, at: Indices, value: Expr) -> Stmt:
        """Adds to an element of a place, as other threads may do."""
        self.uses[place.array].is_summed = True
        self.step.writes.add(place.elements)
        return self._shared(place, value.type).add_to(add(place.start, number(at, shape)), value)

    def load_checked(self, t: Type, place: Region, at: Indices, span: Span) -> Expr:
        """The element of type `t` at any position along each axis of a place."""
        self._note(place, (), None)
        if place.array in self.uses:
            self.uses[place.array].note_read(self.step.share, None, is_own=False)
        self.step.reads.add(place.elements)
        return self._shared(place, t).get_checked(at, span)

    def _shared(self, place: Region, t: Type) -> SharedArray:
        return SharedArray(self.positions, place.array, t)

    def _owner(self, shape: Shape, at: Indices) -> tuple[Position, int] | None:
        nest = self.step.share.nest
        return owner(nest, *self._known(at, shape)) if is_tiled(nest) else None

    def _known(self, at: Indices, shape: Shape) -> tuple[Indices, Shape]:
        positions = self.positions
        return tuple(map(positions.at_known, at)), tuple(map(positions.known, shape))

    def _own_index(self, place: Region, shape: Shape, at: Indices) -> Position | None:
        """The index of an element in the thread's local array; `None` if it is not its own."""
        decided = self._decided.get(place.array)
        if decided is not None and decided.nest != self.step.share.nest:
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
        if is_tiled(share.nest) and own is not None and isinstance(size, int):
            share = replace(share, count=size)
        self.uses[place.array].note(share, self.times_known(), is_own=own is not None)

    def _index(self, place: Region, shape: Shape, at: Indices) -> Position | None:
        """The index of an element in the memory that all threads access; `None` if it has none."""
        use = self._decided.get(place.array)
        if use is not None and use.memory is MemoryKind.THREAD:
            return None
        if use is None or not use.is_held or use.tiling is None or use.read_locals is None:
            return add(place.start, number(at, shape))
        start = exactly(self.positions.at_known(place.start), use.share_count)
        other, share = owner(use.tiling, *self._known(at, shape)), self.step.share
        assert start is not None
        assert other is not None
        tile, local = other
        if is_tiled(share.nest) and tile == share.tile:
            tile = self.positions.of(self._writer.index()[0])
        if local not in use.read_locals:
            return None
        width, row = tile_count(use.tiling), sorted(use.read_locals).index(local)
        before = add(times(start, width * len(use.read_locals)), constant(width * row))
        return add(before, tile)

    # -- local arrays --------------------------------------------------------------------------

    def memory(self, array: str) -> MemoryKind:
        """The memory of an array that all threads access, or the thread's own."""
        return self._decided[array].memory if array in self._decided else MemoryKind.BUFFER

    def next_is_now(self, array: str) -> list[Stmt]:
        """Moves the thread's elements of a carry for the iteration that follows."""
        if array not in self._own:
            return []
        own, half = self._own[array], self._decided[array].thread_count // 2
        return [own.put(constant(k), own.get(constant(half + k))) for k in range(half)]

    def declarations(self) -> list[Stmt]:
        """The declarations of local arrays."""
        return [array.zeroed() for array in self._own.values()]

    # -- copies of inputs ----------------------------------------------------------------------

    def copied(self, v: Value, at: Indices) -> Expr | None:
        """A part of the thread's element of an input that a loop reads, if these have room."""
        share, count = self.step.share, self.positions.known(sizes.product(v.shape))
        if not self.is_repeated or not share.turns or not isinstance(count, int) or count == 1:
            return None
        index = share.own_index(*self._known(at, v.shape), Position())
        copy = InputCopy(v, share.nest, is_row=index is None)
        if index is None and not is_tiled(share.nest):
            part = self._part_of_row(share, v, at)
            index = None if part is None else share.index(part)
        if index is None:
            return None
        if copy not in self.copies:
            self.copies[copy] = self.scratch(v.element, count, is_copy=True).array
        place = Region(self.copies[copy])
        self._note(place, v.shape, index)
        return self._own[place.array].get(index) if place.array in self._own else None

    def _part_of_row(self, share: Share, v: Value, at: Indices) -> Position | None:
        """The position in a row of `v` where its rows belong to the elements of the share."""
        for axis in range(1, len(at)):
            rows, row = v.shape[:axis], v.shape[axis:]
            is_whole = self.positions.known(sizes.product(rows)) == share.count
            position = self.positions.at_known(number(at[:axis], rows))
            if is_whole and (position,) == share.at:
                return number(at[axis:], row)
        return None

    def fill(self, array: str, index: Position, value: Expr) -> Stmt:
        """Sets an element of the thread's in the copy of an input."""
        self._note(Region(array), (), index)
        return self._own[array].put(index, value)

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
        use, memory = self._decided.get(name), self.memory(name)
        is_held = use is not None and use.is_held
        if use is not None and (is_held or memory is MemoryKind.THREAD):
            local = f"{name}_own" if is_held else name
            self._own[name] = ThreadArray(self._writer, local, t, use.thread_count)
        if not is_copy and memory is not MemoryKind.THREAD:
            extents = (use.packed_count,) if use is not None and is_held else shape
            shared_array(self._writer, name, t, *extents, memory=memory)
        return Region(name)
