"""The statements of a kernel that one workgroup runs: its threads share the elements of each step.

Values between steps lie in scratch arrays. Invariant: between a write and another access to the
same elements stands a barrier, and all threads arrive at every barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from shaderad.ir import composing as c
from shaderad.ir import nodes, sizes, walk
from shaderad.ir.arrays import Value
from shaderad.ir.costs import cost_of
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Type
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import IsStored, Writer
from shaderad.plan.nest.loops.arrays import (
    GroupArrays,
    GroupDecisions,
    InputCopy,
    Region,
    WrittenStep,
)
from shaderad.plan.nest.loops.shares import Share, in_turns, is_tiled, long_axes
from shaderad.plan.nest.loops.tiles import StepFacts
from shaderad.plan.nest.memory import MemoryKind
from shaderad.plan.nest.nest import AxisKind, Nest
from shaderad.plan.nest.places import Visit
from shaderad.plan.nest.statements import counted, guarded
from shaderad.plan.positions import Indices, Position, add, times
from shaderad.plan.statements import Written
from shaderad.plan.steps import Effort

THREADS = "$threads"
"""The symbol of the number of threads, which follows from other sizes."""
_ACCESS_COST = 4
"""The cost of a read or write, in additions."""


class _NeedsCopy(Exception):
    """A read that reports positions out of range needs an array of the shape that it sees."""

    def __init__(self, value: Value, shape: Shape) -> None:
        self.value, self.shape = value, shape


Accessed = tuple[set[tuple[str, str]], set[tuple[str, str]]]
"""Elements that threads read, and write."""

Places = Mapping[Value, Sequence[Region]]
"""Where values are to be stored."""


class GroupWriter:
    """Writes the steps of one kernel.

    Args:
        writer: Of the kernel's arrays and uniforms.
        is_stored: True for values that have memory before the kernel runs.
        decisions: How it is written.
    """

    def __init__(self, writer: Writer, is_stored: IsStored, decisions: GroupDecisions) -> None:
        self.positions = writer.positions
        self.arrays = GroupArrays(writer, decisions)
        self.place_of = self.arrays.place_of
        self.body: list[Stmt] = []
        self.facts: dict[int, StepFacts] = {}
        """The steps that tiles may have, by number, in the order in which they are written."""
        self._cost: Size = 0
        self._step_count: Size = 0
        self._element_count: Size = 0
        self.count_symbols: frozenset[str] = frozenset([THREADS])
        """Symbols of sizes that only count iterations."""
        self.outer: dict[Value, Value] = {}
        """Inputs of bodies of loops -> the values around the loops."""
        self.rows: dict[Value, list[Region]] = {}
        """Rows of iterations -> where results of loops keep them."""
        self._writer = writer
        self._is_stored = is_stored
        self._tiled = decisions.tiled
        self._own_tile: Sequence[Position] = ()
        """The position of the thread's tile along each axis."""
        self._first: list[Stmt] = []
        """Statements before all steps."""
        self._accessed: Accessed = (set(), set())
        """Elements that threads read, and wrote, since the last barrier."""
        self._seen_arrays: dict[tuple[Value, Shape], Region] = {}
        """Copies of values for reads that report, in the shape that these see."""
        self._count = 0
        self._step_number = 0

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
        arrays, size = self.arrays, sizes.product(shape)
        number, self._step_number = self._step_number, self._step_number + 1
        if self.positions.known(size) == 0:
            return
        outer, arrays.step = arrays.step, WrittenStep()
        if self._tiled is not None and number in self._tiled.steps:
            statements = self._visited(self._tiled.tiling, shape, body)
        else:
            nest = in_turns(*map(self.positions.known, (size, sizes.symbol(THREADS))))
            statements = self._visited(nest, shape, body)
            self._measure(number, shape, element_count)
        step, arrays.step = arrays.step, outer
        read, written = self._accessed
        if step.reads & written or step.writes & (read | written):
            self.meet()
        self._accessed[0].update(step.reads)
        self._accessed[1].update(step.writes)
        self.body += statements

    def _visited(
        self, nest: Nest, shape: Shape, body: Callable[[Indices], Sequence[Stmt]]
    ) -> Sequence[Stmt]:
        """The statements of a step, for each element that `nest` gives to the thread."""
        known = tuple(map(self.positions.known, shape))
        step, visit = self.arrays.step, self._visit(nest, known)
        statements: list[Stmt] = []
        accessed: Accessed = (set(), set())
        for at, test in visit.places():
            step.share = Share(nest, at, visit.turn, sizes.product(known))
            inner = self._body(body, self.positions.reshaped(at, visit.shape, known), shape)
            step.cost += cost_of_all(inner)
            accessed[0].update(step.reads)
            accessed[1].update(step.writes)
            statements += guarded(test, inner)
        step.reads, step.writes = accessed
        return visit.statements(statements)

    def _visit(self, nest: Nest, shape: Shape) -> Visit:
        """The visit of a thread at its elements of a step."""
        positions, (thread,) = self.positions, self._writer.index()
        if is_tiled(nest):
            own = self._own_tile or self._named_tile(nest)
            extents, counter = tuple(shape[axis] for axis in long_axes(shape)), None
        else:
            own, extents = [positions.of(thread)], (sizes.product(shape),)
            counter = self.local("e", INT)
        threads = positions.known(sizes.symbol(THREADS))
        return Visit(positions, nest, extents, thread, threads, own, counter)

    def _named_tile(self, tiling: Nest) -> Sequence[Position]:
        """The position of the thread's tile along each axis, as local variables."""
        positions, (thread,) = self.positions, self._writer.index()
        counts = tuple(tiling.extents(AxisKind.THREAD))
        along = positions.unravelled(positions.of(thread), counts)
        for k, (position, count) in enumerate(zip(along, counts, strict=True)):
            if count != 1:
                name = self.local("tile", INT)
                self._first.append(Assign(name=name.name, value=positions.expr(position)))
                along[k] = positions.of(name)
        self._own_tile = tuple(along)
        return self._own_tile

    def _body(
        self, body: Callable[[Indices], Sequence[Stmt]], at: Indices, shape: Shape
    ) -> Sequence[Stmt]:
        """The statements of `body`, after the copies that they need."""
        arrays = self.arrays
        arrays.step.own = at, shape
        while True:
            arrays.step.reads, arrays.step.writes = set(), set()
            try:
                return body(at)
            except _NeedsCopy as copy:
                array = arrays.scratch(copy.value.element, *copy.shape)
                self.copy(copy.value, array)
                self._seen_arrays[copy.value, copy.shape] = array

    def _measure(self, number: int, shape: Shape, element_count: Size | None) -> None:
        """Adds the work of a step whose threads take elements in turns."""
        arrays, size = self.arrays, sizes.product(shape)
        if element_count is None:
            known, element_count = tuple(map(self.positions.known, shape)), size
            times, shifts = arrays.times_known(), arrays.step.shifts
            self.facts[number] = StepFacts(known, arrays.step.cost, times, shifts)
        cost = sizes.multiply(arrays.step.cost, element_count)
        self._cost = sizes.add(self._cost, sizes.multiply(arrays.times, cost))
        self._step_count = sizes.add(self._step_count, arrays.times)
        elements = sizes.multiply(arrays.times, size)
        self._element_count = sizes.add(self._element_count, elements)

    def effort(self) -> Effort:
        """The work of all steps."""
        asked = [size for _, size in self.positions.uniforms]
        read = [extent for v in self._writer.arrays_read for extent in v.shape]
        extents = frozenset[str]().union(*map(sizes.symbols, (*asked, *read)))
        extents -= self.count_symbols
        return Effort(self._cost, self._step_count, self._element_count, extents)

    def meet(self) -> None:
        """Adds a barrier, unless no thread accessed anything since the last one."""
        if any(self._accessed):
            self.body.append(nodes.Barrier())
        self._accessed = (set(), set())

    @contextmanager
    def repeated(self, count: Size) -> Generator[list[Stmt]]:
        """A list of its own for the statements that are added meanwhile, and run `count` times."""
        outer = self.body, self._seen_arrays, self.arrays.times, self.arrays.is_repeated
        self.body, self._seen_arrays = [], {}
        self.arrays.times = sizes.multiply(self.arrays.times, count)
        self.arrays.is_repeated |= count != 1
        yield self.body
        self.body, self._seen_arrays, self.arrays.times, self.arrays.is_repeated = outer

    @contextmanager
    def folding(self, count: Size) -> Generator[None]:
        """For the elements that a loop inside of a step combines."""
        outer, self.arrays.folded = self.arrays.folded, count
        yield
        self.arrays.folded = outer

    def choose(
        self, condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Adds the steps of one of two sides, all threads alike."""
        self.meet()
        sides: list[tuple[Stmt, ...]] = []
        accessed: Accessed = (set(), set())
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
            statement
            for (v, targets), element in zip(places.items(), elements, strict=True)
            for place in targets
            for statement in self.arrays.store(place, v.shape, at, element)
        ]

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
        if place is not None:
            return self.arrays.load(v, place, at)
        own = self.arrays.copied(v, at)
        return self._writer.read(v, at, view) if own is None else own

    def _checked(self, v: Value, at: Indices, view: View) -> Expr:
        place = self._seen_arrays.get((v, view.shape))
        if place is None:
            raise _NeedsCopy(v, view.shape)
        self._writer.note_read((v, view.shape), "checked")
        return self.arrays.load_checked(v.element, place, at, view.span)

    # -- local variables and copies ------------------------------------------------------------

    def finished(self) -> list[Stmt]:
        """All statements, after the declarations of local arrays and copies of inputs."""
        body, self.body = self.body, self.arrays.declarations()
        for copy, array in self.arrays.copies.items():
            if self.arrays.memory(array) is MemoryKind.THREAD:
                self._fill(copy, array)
        return [*self._first, *self.body, *body]

    def _fill(self, copy: InputCopy, array: str) -> None:
        """Copies the thread's elements of an input, part by part."""
        if is_tiled(copy.nest):
            self.body += self._visited(
                copy.nest,
                copy.value.shape,
                lambda at: self.arrays.store(
                    Region(array), copy.value.shape, at, self._writer.read(copy.value, at)
                ),
            )
            return
        v, (count,) = copy.value, copy.nest.shape
        part_count = sizes.floor_divide(self.positions.known(sizes.product(v.shape)), count)
        j = self.local("j", INT)
        part = self.positions.of(j)

        def body(at: Indices) -> Sequence[Stmt]:
            (own,) = at
            row = add(times(own, part_count), part)
            position = row if copy.is_row else add(own, times(part, count))
            indices = tuple(self.positions.unravelled(position, v.shape))
            value = self._writer.read(v, indices)
            copied = self.arrays.fill(array, self.arrays.step.share.index(part), value)
            return [counted(j, c.whole(0), self.positions.size(part_count), [copied])]

        self.each((count,), body)

    def stored(self, v: Value) -> list[Region]:
        """The places to which a step stores a value; the first is where others read it."""
        if v not in self.place_of:
            self.place_of[v] = self.arrays.scratch(v.element, sizes.product(v.shape))
        return [self.place_of[v], *self.rows.get(v, ())]

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new local variable."""
        self._count += 1
        return self._writer.local(f"{stem}{self._count}", t)


def cost_of_all(statements: Sequence[Stmt]) -> int:
    """The cost of statements, those in loops counted once."""
    parts = {id(part): part for part in walk.all_expressions(statements)}.values()
    reads = sum(isinstance(part, nodes.Load) for part in parts)
    writes = sum(isinstance(s, nodes.Store | nodes.Accumulate) for s in walk.statements(statements))
    return _ACCESS_COST * (reads + writes) + sum(map(cost_of, parts))
