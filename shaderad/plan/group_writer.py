"""The statements of a kernel that one workgroup runs: its threads share the elements of each step.

Values between steps lie in scratch arrays. Invariant: between a write and another access to the
same elements stands a barrier, and all threads arrive at every barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from shaderad.ir import nodes, sizes, walk
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, UINT, Access, BufferType, Type, word_bytes
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import IsStored, Writer
from shaderad.plan.positions import Indices, Position, add, number
from shaderad.plan.statements import Written
from shaderad.plan.storage import cost_of
from shaderad.rules import composing as c

THREADS = "$threads"
"""The symbol of the number of threads, which follows from other sizes."""
_ACCESS_COST = 4
"""The cost of a read or write, in additions."""


@dataclass(slots=True)
class Effort:
    """The steps of a kernel, as sizes."""

    cost: Size = 0
    """The cost of all steps together, in additions."""
    step_count: Size = 0
    element_count: Size = 0
    """The elements of all steps together."""


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


Places = Mapping[Value, Sequence[Region]]
"""Where values are to be stored."""


class GroupWriter:
    """Writes the steps of one kernel.

    Args:
        writer: Of the kernel's arrays and uniforms.
        is_stored: True for values that have memory before the kernel runs.
    """

    def __init__(self, writer: Writer, is_stored: IsStored) -> None:
        self.positions = writer.positions
        self.body: list[Stmt] = []
        self.times: Size = 1
        """How often the steps that are being written run."""
        self.effort = Effort()
        self.place_of: dict[Value, Region] = {}
        self.outer: dict[Value, Value] = {}
        """Inputs of bodies of loops -> the values around the loops."""
        self.rows: dict[Value, list[Region]] = {}
        """Rows of iterations -> where results of loops keep them."""
        self._writer = writer
        self._is_stored = is_stored
        self._accessed: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())
        """Elements that threads read, and wrote, since the last barrier."""
        self._reads: set[tuple[str, str]] = set()
        self._writes: set[tuple[str, str]] = set()
        """Elements that the step being written reads, and writes."""
        self._seen_arrays: dict[tuple[Value, Shape], str] = {}
        """Copies of values for reads that report, in the shape that these see."""
        self._count = 0

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
        size = sizes.product(shape)
        own = self.local("e", INT)
        at = tuple(self.positions.unravelled(self.positions.of(own), shape))
        statements = self._body(body, at)
        read, written = self._accessed
        if self._reads & written or self._writes & (read | written):
            self.meet()
        self._accessed[0].update(self._reads)
        self._accessed[1].update(self._writes)
        (thread,) = self._writer.index()
        self._note(size, _cost(statements), size if element_count is None else element_count)
        stop, step = self.positions.size(size), self.positions.size(sizes.symbol(THREADS))
        self.body.append(
            nodes.For(variable=own.name, start=thread, stop=stop, step=step, body=(*statements,))
        )

    def _body(self, body: Callable[[Indices], Sequence[Stmt]], at: Indices) -> Sequence[Stmt]:
        """The statements of `body`, after the copies that they need."""
        while True:
            self._reads, self._writes = set(), set()
            try:
                return body(at)
            except _NeedsCopy as copy:
                array = self.scratch(copy.value.element, *copy.shape)
                self.copy(copy.value, Region(array))
                self._seen_arrays[copy.value, copy.shape] = array

    def _note(self, size: Size, cost: int, element_count: Size) -> None:
        effort = self.effort
        whole = sizes.multiply(self.times, sizes.multiply(cost, element_count))
        effort.cost = sizes.add(effort.cost, whole)
        effort.step_count = sizes.add(effort.step_count, self.times)
        elements = sizes.multiply(self.times, size)
        effort.element_count = sizes.add(effort.element_count, elements)

    def meet(self) -> None:
        """Adds a barrier, unless no thread accessed anything since the last one."""
        if any(self._accessed):
            self.body.append(nodes.Barrier())
        self._accessed = (set(), set())

    @contextmanager
    def repeated(self, count: Size) -> Generator[list[Stmt]]:
        """A list of its own for the statements that are added meanwhile, and run `count` times."""
        outer = self.body, self._seen_arrays, self.times
        self.body, self._seen_arrays = [], {}
        self.times = sizes.multiply(self.times, count)
        yield self.body
        self.body, self._seen_arrays, self.times = outer

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
            nodes.Store(
                buffer=place.array,
                indices=(self.index(place, number(at, v.shape)),),
                value=element,
                is_unique=True,
            )
            for (v, targets), element in zip(places.items(), elements, strict=True)
            for place in targets
        ]

    def index(self, place: Region, position: Position) -> Expr:
        """The index at which an element of a place is written."""
        self._writes.add(place.elements)
        at = self.positions.expr(add(place.start, position))
        element = nodes.Cast(type=UINT, value=at)
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
        if place is None:
            return self._writer.read(v, at, view)
        if view is not None:
            return self._checked(v, at, view)
        self._reads.add(place.elements)
        position = self.positions.expr(add(place.start, number(at, v.shape)))
        return nodes.Load(type=v.element, buffer=place.array, indices=(position,))

    def _checked(self, v: Value, at: Indices, view: View) -> Expr:
        array = self._seen_arrays.get((v, view.shape))
        if array is None:
            raise _NeedsCopy(v, view.shape)
        self._reads.add(Region(array).elements)
        self._writer.note_read((v, view.shape), "checked")
        indices = tuple(map(self.positions.expr, at))
        return nodes.Load(type=v.element, buffer=array, indices=indices, span=view.span)

    # -- memory and names ----------------------------------------------------------------------

    def stored(self, v: Value) -> list[Region]:
        """The places to which a step stores a value; the first is where others read it."""
        if v not in self.place_of:
            self.place_of[v] = Region(self.scratch(v.element, sizes.product(v.shape)))
        return [self.place_of[v], *self.rows.get(v, ())]

    def scratch(self, t: Type, *shape: Size) -> str:
        """A new array between steps."""
        if word_bytes(t) == 2:  # one buffer holds all arrays, as 32-bit words
            raise NoGroup
        self._count += 1
        name = f"s{self._count}"
        kind = BufferType(Access.SCRATCH, t, len(shape))
        self._writer.add_scratch(nodes.Buffer(name=name, path=(name,), type=kind), shape)
        return name

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new local variable."""
        self._count += 1
        name = f"{stem}{self._count}"
        self._writer.local_types[name] = t
        return c.variable(name, t)


def _cost(statements: Sequence[Stmt]) -> int:
    """The cost of statements, those in loops counted once."""
    parts = {id(part): part for part in walk.all_expressions(statements)}.values()
    reads = sum(isinstance(part, nodes.Load) for part in parts)
    writes = sum(isinstance(s, nodes.Store | nodes.Accumulate) for s in walk.statements(statements))
    return _ACCESS_COST * (reads + writes) + sum(map(cost_of, parts))
