"""The statements of a kernel that one workgroup runs: its threads share the elements of each step.

Values between steps lie in scratch arrays. Invariant: between a write and another access to the
same elements stands a barrier, and all threads arrive at every barrier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from shaderad.ir import nodes, sizes, walk
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, UINT, Access, BufferType, LocalArray, Type, word_bytes
from shaderad.plan.elements import Elements, View
from shaderad.plan.group_memory import NO_SHARE, MemoryKind, Use, counted, share_of
from shaderad.plan.kernels import IsStored, Writer
from shaderad.plan.positions import Indices, Position, add, number, times
from shaderad.plan.statements import Written
from shaderad.plan.steps import Effort
from shaderad.plan.storage import cost_of
from shaderad.rules import composing as c

THREADS = "$threads"
"""The symbol of the number of threads, which follows from other sizes."""
_USUAL: Mapping[str, int] = defaultdict(lambda: 16)
"""Sizes that are not known while accesses are counted."""
_ACCESS_COST = 4
"""The cost of a read or write, in additions."""


class NoGroup(Exception):
    """A step that one workgroup cannot run."""


class _NeedsCopy(Exception):
    """A read that reports positions out of range needs an array of the shape that it sees."""

    def __init__(self, value: Value, shape: Shape) -> None:
        self.value, self.shape = value, shape


@dataclass(frozen=True, slots=True)
class Region:
    """The memory of a value: elements of an array from `start` on."""

    array: str
    start: Position = Position()  # noqa: RUF009, a constant
    half: str = ""
    """Tells the halves of a carry's array apart."""

    @property
    def elements(self) -> tuple[str, str]:
        """Equal for places that may share elements."""
        return self.array, self.half


@dataclass(frozen=True, slots=True)
class InputCopy:
    """Elements of an input in local arrays: each thread has those of its share of a step."""

    value: Value
    share_count: Size
    is_row: bool
    """True if a row of the input belongs to an element of the step, not a column."""


Places = Mapping[Value, Sequence[Region]]
"""Where values are to be stored."""


class GroupWriter:
    """Writes the steps of one kernel.

    Args:
        writer: Of the kernel's arrays and uniforms.
        is_stored: True for values that have memory before the kernel runs.
        decided: The arrays between steps, by name, with their memory; empty on trial.
    """

    def __init__(self, writer: Writer, is_stored: IsStored, decided: Mapping[str, Use]) -> None:
        self.positions = writer.positions
        self.body: list[Stmt] = []
        self.uses: dict[str, Use] = {}
        """The accesses to arrays between steps, by name."""
        self.times: Size = 1
        """How often the steps that are being written run."""
        self._cost: Size = 0
        self._step_count: Size = 0
        self._element_count: Size = 0
        self._count_symbols: frozenset[str] = frozenset([THREADS])
        self.place_of: dict[Value, Region] = {}
        self.outer: dict[Value, Value] = {}
        """Inputs of bodies of loops -> the values around the loops."""
        self.rows: dict[Value, list[Region]] = {}
        """Rows of iterations -> where results of loops keep them."""
        self._writer = writer
        self._is_stored = is_stored
        self._decided = decided
        self._share = NO_SHARE
        """The elements of the step being written that are the thread's."""
        self._copies: dict[InputCopy, str] = {}
        """Copies of inputs -> their local arrays."""
        self._folded: Size = 1
        """The elements that the loop being written inside of a step combines."""
        self._is_repeated = False
        self._accessed: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())
        """Elements that threads read, and wrote, since the last barrier."""
        self._reads: set[tuple[str, str]] = set()
        self._writes: set[tuple[str, str]] = set()
        """Elements that the step being written reads, and writes."""
        self._seen_arrays: dict[tuple[Value, Shape], Region] = {}
        """Copies of values for reads that report, in the shape that these see."""
        self._count = 0
        self._array_count = 0

    # -- steps -----------------------------------------------------------------------------

    def each(
        self,
        shape: Shape,
        body: Callable[[Indices], Sequence[Stmt]],
        element_count: Size | None = None,
    ) -> None:
        """Adds `body` for each element of `shape`, after a barrier where it is needed.

        `element_count`: the elements that are computed if `body` has a loop over them.
        """
        size, (thread,) = sizes.product(shape), self._writer.index()
        share = share_of(self.positions, thread, size, sizes.symbol(THREADS), self.local("e", INT))
        if share.count == 0:
            return
        self._share, outer = share, self._share
        statements = self._body(body, tuple(self.positions.unravelled(share.position, shape)))
        self._share = outer
        read, written = self._accessed
        if self._reads & written or self._writes & (read | written):
            self.meet()
        self._accessed[0].update(self._reads)
        self._accessed[1].update(self._writes)
        self._note(size, cost_of_all(statements), size if element_count is None else element_count)
        self.body += share.each(self.positions, thread, statements)

    def _body(self, body: Callable[[Indices], Sequence[Stmt]], at: Indices) -> Sequence[Stmt]:
        """The statements of `body`, after the copies that they need."""
        while True:
            self._reads, self._writes = set(), set()
            try:
                return body(at)
            except _NeedsCopy as copy:
                array = self.scratch(copy.value.element, *copy.shape)
                share = self._share
                self.copy(copy.value, array)
                self._share = share
                self._seen_arrays[copy.value, copy.shape] = array

    def _note(self, size: Size, cost: int, element_count: Size) -> None:
        whole = sizes.multiply(self.times, sizes.multiply(cost, element_count))
        self._cost = sizes.add(self._cost, whole)
        self._step_count = sizes.add(self._step_count, self.times)
        elements = sizes.multiply(self.times, size)
        self._element_count = sizes.add(self._element_count, elements)

    def effort(self) -> Effort:
        """The work of all steps."""
        asked = [size for _, size in self.positions.uniforms]
        read = [extent for v in self._writer.arrays_read for extent in v.shape]
        extents = frozenset[str]().union(*map(sizes.symbols, (*asked, *read)))
        extents -= self._count_symbols
        return Effort(self._cost, self._step_count, self._element_count, extents)

    def meet(self) -> None:
        """Adds a barrier, unless no thread accessed anything since the last one."""
        if any(self._accessed):
            self.body.append(nodes.Barrier())
        self._accessed = (set(), set())

    @contextmanager
    def repeated(self, count: Size) -> Generator[list[Stmt]]:
        """A list of its own for the statements that are added meanwhile, and run `count` times."""
        outer = self.body, self._seen_arrays, self.times, self._is_repeated
        self.body, self._seen_arrays = [], {}
        self.times = sizes.multiply(self.times, count)
        self._count_symbols |= sizes.symbols(count)
        self._is_repeated |= count != 1
        yield self.body
        self.body, self._seen_arrays, self.times, self._is_repeated = outer

    @contextmanager
    def folding(self, count: Size) -> Generator[None]:
        """For the elements that a loop inside of a step combines."""
        outer, self._folded = self._folded, count
        yield
        self._folded = outer

    def choose(
        self, condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Adds the steps of one of two sides, all threads alike."""
        self.meet()
        sides: list[tuple[Stmt, ...]] = []
        accessed: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())
        for add_steps in (then, otherwise):
            with self.repeated(1) as body:
                add_steps()
            sides.append(tuple(body))
            for before, now in zip(accessed, self._accessed, strict=True):
                before.update(now)
            self._accessed = (set(), set())
        self._accessed = accessed
        self.body.append(nodes.If(condition=condition, then=sides[0], otherwise=sides[1]))

    def compute(self, values: Sequence[Value]) -> None:
        """Adds the step that computes and stores values of one shape."""
        places = {v: self.stored(v) for v in values}
        self.each(values[0].shape, lambda at: self.stores(places, at))

    def copy(self, value: Value, target: Region) -> None:
        """Adds the step that copies a value in memory."""
        self.each(value.shape, lambda at: self.stores({value: [target]}, at, is_copy=True))

    # -- statements of an element ------------------------------------------------------------

    def stores(
        self,
        places: Places,
        at: Indices,
        bound: Mapping[Value, Expr] | None = None,
        *,
        is_copy: bool = False,
    ) -> list[Stmt]:
        """Stores an element of each value, which is computed first unless it is copied."""
        computed = () if is_copy else places
        written = self.written([(v, at) for v in places], bound or {}, computed)
        return [*written.body, *self.stored_at(places, at, written.values)]

    def stored_at(self, places: Places, at: Indices, elements: Sequence[Expr]) -> list[Stmt]:
        """Stores an element of each value."""
        return [
            self._store(place, number(at, v.shape), element)
            for (v, targets), element in zip(places.items(), elements, strict=True)
            for place in targets
        ]

    def _store(self, place: Region, position: Position, element: Expr) -> Stmt:
        at = add(place.start, position)
        own = self._own(place.array, self._share.part_at(self.positions.at_known(at)))
        if own is not None:
            return Assign(name=place.array, path=own, value=element)
        index = self.index(place, position)
        return nodes.Store(buffer=place.array, indices=(index,), value=element, is_unique=True)

    def index(self, place: Region, position: Position) -> Expr:
        """The index at which an element of a place is written."""
        self._writes.add(place.elements)
        return self._inside(add(place.start, position))

    def sum_index(self, place: Region, position: Position) -> Expr:
        """The index at which threads add to an element of a place."""
        self.uses[place.array].is_summed = True
        return self.index(place, position)

    def _inside(self, position: Position) -> Expr:
        element = nodes.Cast(type=UINT, value=self.positions.expr(position))
        return nodes.KnownNumber(type=UINT, number=element, is_inside=True)

    def written(
        self,
        requests: Iterable[tuple[Value, Indices]],
        bound: Mapping[Value, Expr] | None = None,
        computed: Iterable[Value] = (),
    ) -> Written:
        """Statements after which elements of values are short expressions.

        Args:
            requests: Values and positions.
            bound: Elements of some values, at whatever position.
            computed: Values that are computed though they have a place.
        """
        known, inside = bound or {}, frozenset(computed)

        def is_available(v: Value) -> bool:
            return v in known or (v not in inside and self._has_memory(v))

        def read(v: Value, at: Indices, view: View | None) -> Expr:
            return known[v] if v in known else self._element(v, at, view)

        elements = Elements(self.positions, is_available, read)
        self._count += 1
        return self._writer.written([elements.at(*one) for one in requests], f"t{self._count}_")

    def _has_memory(self, v: Value) -> bool:
        return v in self.place_of or v in self.outer or self._is_stored(v)

    def _element(self, v: Value, at: Indices, view: View | None) -> Expr:
        """An element of a value in memory."""
        while v in self.outer:
            inner, v = v, self.outer[v]
            at = at if view is not None else self.positions.reshaped(at, inner.shape, v.shape)
        place = self.place_of.get(v)
        if view is not None:
            return self._writer.read(v, at, view) if place is None else self._checked(v, at, view)
        if place is None:
            own = self._copied(v, at)
            return self._writer.read(v, at, view) if own is None else own
        position = add(place.start, number(at, v.shape))
        own = self._own(place.array, self._share.part_at(self.positions.at_known(position)))
        if own is not None:
            return self._local(v, place.array, own)
        self._reads.add(place.elements)
        index = self._inside(position)
        return nodes.Load(type=v.element, buffer=place.array, indices=(index,))

    def _checked(self, v: Value, at: Indices, view: View) -> Expr:
        place = self._seen_arrays.get((v, view.shape))
        if place is None:
            raise _NeedsCopy(v, view.shape)
        self._own(place.array, None)
        self._reads.add(place.elements)
        self._writer.note_read((v, view.shape), "checked")
        indices = tuple(map(self.positions.expr, at))
        return nodes.Load(type=v.element, buffer=place.array, indices=indices, span=view.span)

    # -- a thread's own elements ---------------------------------------------------------------

    def _own(self, array: str, part: Position | None) -> tuple[nodes.ElementStep, ...] | None:
        """Notes an access to a part of the thread's element.

        Returns the path to it in a local array; `None` where the array is none.
        """
        use, share = self.uses.get(array), self._share
        if use is None:
            return None
        repetitions = sizes.multiply(self.times, self._folded)
        number_of_times = sizes.evaluate(self.positions.known(repetitions), _USUAL)
        use.note(share, number_of_times, is_own=part is not None)
        if part is None or self._memory(array) is not MemoryKind.THREAD:
            return None
        if self._decided[array].thread_count == 1:
            return ()
        index = self.positions.expr(share.index(part))
        known = nodes.KnownNumber(type=INT, number=index, is_inside=True)
        return (nodes.ElementStep(index=known),)

    def _memory(self, array: str) -> MemoryKind:
        return self._decided[array].memory if array in self._decided else MemoryKind.BUFFER

    def _local(self, v: Value, array: str, path: Sequence[nodes.ElementStep]) -> Expr:
        """A part of the thread's element of a value, in a local array."""
        local = c.variable(array, self._writer.local_types[array])
        for step in path:
            return nodes.Element(type=v.element, value=local, index=step.index)
        return local

    def _copied(self, v: Value, at: Indices) -> Expr | None:
        """A part of the thread's element of an input that a loop reads, if these have room."""
        share, count = self._share, self.positions.known(sizes.product(v.shape))
        if not self._is_repeated or share.turns is None or not isinstance(count, int):
            return None
        part = share.part_at(self.positions.at_known(number(at, v.shape)))
        copy = InputCopy(v, share.count, is_row=part is None)
        if part is None:
            part = self._part_of_row(v, at)
        if part is None or count == 1:
            return None
        if copy not in self._copies:
            self._copies[copy] = self.scratch(v.element, count, is_copy=True).array
        array = self._copies[copy]
        own = self._own(array, part)
        return None if own is None else self._local(v, array, own)

    def _part_of_row(self, v: Value, at: Indices) -> Position | None:
        """The position in a row of `v` where its rows belong to the elements of the share."""
        for axis in range(1, len(at)):
            rows, row = v.shape[:axis], v.shape[axis:]
            is_whole = self.positions.known(sizes.product(rows)) == self._share.count
            position = self.positions.at_known(number(at[:axis], rows))
            if is_whole and position == self._share.position:
                return number(at[axis:], row)
        return None

    def finished(self) -> list[Stmt]:
        """All statements, after the declarations of local arrays and copies of inputs."""
        body, self.body = self.body, []
        own = [name for name in self.uses if self._memory(name) is MemoryKind.THREAD]
        for name in own:
            zero = nodes.Zero(type=self._writer.local_types[name])
            self.body.append(Assign(name=name, value=zero))
        for copy, array in self._copies.items():
            if array in own:
                self._fill(copy, array)
        return [*self.body, *body]

    def _fill(self, copy: InputCopy, array: str) -> None:
        """Copies the thread's elements of an input, part by part."""
        v, count = copy.value, copy.share_count
        part_count = sizes.floor_divide(self.positions.known(sizes.product(v.shape)), count)
        j = self.local("j", INT)
        part = self.positions.of(j)

        def body(at: Indices) -> Sequence[Stmt]:
            (own,) = at
            row = add(times(own, part_count), part)
            position = row if copy.is_row else add(own, times(part, count))
            indices = tuple(self.positions.unravelled(position, v.shape))
            path = self._own(array, part)
            assert path is not None
            copied = Assign(name=array, path=path, value=self._writer.read(v, indices))
            return [counted(j, c.whole(0), self.positions.size(part_count), [copied])]

        self.each((count,), body)

    # -- memory and names ----------------------------------------------------------------------

    def stored(self, v: Value) -> list[Region]:
        """The places to which a step stores a value; the first is where others read it."""
        if v not in self.place_of:
            self.place_of[v] = self.scratch(v.element, sizes.product(v.shape))
        return [self.place_of[v], *self.rows.get(v, ())]

    def scratch(self, t: Type, *shape: Size, is_copy: bool = False) -> Region:
        """A new array between steps.

        `is_copy`: it spares reads of another array, and has no use but in a thread's memory.
        """
        if word_bytes(t) == 2:  # one buffer holds all arrays, as 32-bit words
            raise NoGroup
        self._array_count += 1
        shape = tuple(map(self.positions.known, shape))
        name, count = f"s{self._array_count}", sizes.product(shape)
        self.uses[name] = Use(t, count if isinstance(count, int) else None, is_copy)
        if self._memory(name) is MemoryKind.THREAD:
            elements = self._decided[name].thread_count
            self._writer.local_types[name] = t if elements == 1 else LocalArray(t, elements)
        elif not is_copy:
            self._add_array(name, t, shape)
        return Region(name)

    def _add_array(self, name: str, t: Type, shape: Shape) -> None:
        """Declares an array that all threads access."""
        is_shared = self._memory(name) is MemoryKind.GROUP
        access = Access.GROUP if is_shared else Access.SCRATCH
        count = self.uses[name].count if is_shared else None
        kind = BufferType(access, t, len(shape))
        buffer = nodes.Buffer(name=name, path=(name,), type=kind, count=count or 0)
        self._writer.add_scratch(buffer, shape)

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new local variable."""
        self._count += 1
        name = f"{stem}{self._count}"
        self._writer.local_types[name] = t
        return c.variable(name, t)


def cost_of_all(statements: Sequence[Stmt]) -> int:
    """The cost of statements, those in loops counted once."""
    parts = {id(part): part for part in walk.all_expressions(statements)}.values()
    reads = sum(isinstance(part, nodes.Load) for part in parts)
    writes = sum(isinstance(s, nodes.Store | nodes.Accumulate) for s in walk.statements(statements))
    return _ACCESS_COST * (reads + writes) + sum(map(cost_of, parts))
