"""Reads of single elements -> loads of four adjacent ones, of which a thread reads several.

Expressions are written with a variable in place of each read. Once all reads of a thread are known,
`loads` gives the elements that stand for the variables: components of vectors where sizes allow it.
Reads on one side of a choice stay single: beside it, their positions may be out of range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.costs import CHOICE_COST, cost_of
from shaderad.ir.dags import in_order, substitute, variables
from shaderad.ir.nodes import Expr, Stmt, Store
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, DOUBLE, Scalar, Type
from shaderad.plan.elements import Elements, Test, View, choice
from shaderad.plan.kernels import WIDTH, IsStored, Writer
from shaderad.plan.nest.guards import Guard, GuardedElements
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.statements import Written

COST_LIMIT = 256
"""The cost of the code of four elements, in additions, beyond which memory is no longer what such
a kernel waits for."""

_READ_COST = 3


def comes_by_four(element: Type) -> bool:
    """True if four elements of this type can be loaded and stored at once."""
    return isinstance(element, Scalar) and element not in (BOOL, DOUBLE)


@dataclass(frozen=True, slots=True)
class Quarter:
    """An element as a component of four adjacent ones."""

    at: Position
    """The number of the four."""
    component: int
    multiples: tuple[Size, ...]
    """Sizes that must be multiples of 4."""


def quarter_of(at: Position) -> Quarter | None:
    """The component that element number `at` is; `None` if that depends on the thread."""
    component = sizes.constant_term(at.constant) % WIDTH
    start = sizes.subtract(at.constant, component)
    parts = (start, *(factor for _, factor in at.terms))
    if any(isinstance(size, int) and size % WIDTH for size in parts):
        return None
    terms = tuple((base, sizes.floor_divide(factor, WIDTH)) for base, factor in at.terms)
    multiples = tuple(size for size in parts if not isinstance(size, int))
    return Quarter(Position(sizes.floor_divide(start, WIDTH), terms), component, multiples)


class Read(NamedTuple):
    """An element of a stored value, by its number; 0 where its guard does not hold."""

    value: Value
    at: Position
    guard: Guard = ()


NO_READS: Mapping[Read, Expr] = MappingProxyType({})


class Four(NamedTuple):
    """Four adjacent elements of a stored value, by their number."""

    value: Value
    at: Position
    guard: Guard
    """Tests that hold for all four, or for none."""


def _four_of(read: Read) -> tuple[Four, Quarter, tuple[Size, ...]] | None:
    """The four adjacent elements with that of a read, and sizes that must be multiples of 4.

    `None` if its place among them depends on the thread.
    """
    quarter = quarter_of(read.at)
    if quarter is None or not comes_by_four(read.value.element):
        return None
    multiples, tests = [sizes.product(read.value.shape), *quarter.multiples], list[Test]()
    for op, a, b in read.guard:
        of_test = quarter_of(add(a, times(b, -1)))
        if op is ops.EQ or of_test is None or of_test.component != quarter.component:
            tests.append((op, a, b))
        else:
            # Below 0 are all four, or none.
            tests.append((op, of_test.at, Position()))
            multiples += of_test.multiples
    return Four(read.value, quarter.at, (*tests,)), quarter, tuple(dict.fromkeys(multiples))


class ThreadReads:
    """The reads of a thread. `writer` writes its kernel."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._name_by_read: dict[Read, str] = {}
        self._read_by_name: dict[str, Read] = {}

    def read(self, value: Value, at: Indices, view: View | None, guard: Guard = ()) -> Expr:
        """A variable for an element of a stored value, or a read that reports where it misses."""
        if view is not None or sizes.product(value.shape) == 1:
            return self._writer.read(value, at, view)
        place = self._writer.positions.at_known(number(at, value.shape))
        return self.variable(Read(value, place, self._at_known(guard)))

    def is_zero(self, e: Expr, guard: Guard) -> bool:
        """True if `e` is a read that is 0 where a test of `guard` does not hold."""
        read = self._read_by_name.get(e.name) if isinstance(e, nodes.Var) else None
        return read is not None and read.guard[: len(guard)] == self._at_known(guard)

    def _at_known(self, guard: Guard) -> Guard:
        known = self._writer.positions.at_known
        return tuple((op, known(a), known(b)) for op, a, b in guard)

    @property
    def elements(self) -> Collection[Read]:
        """The elements that are read."""
        return self._name_by_read.keys()

    def fours(self, elements: Iterable[Expr]) -> dict[Four, tuple[Size, ...]]:
        """Adjacent elements of which `elements` use several.

        For each the sizes that must be multiples of 4 for a load of it.
        """
        beside = _on_sides(elements)
        components: defaultdict[Four, set[int]] = defaultdict(set)
        multiples: dict[Four, tuple[Size, ...]] = {}
        for read, name in self._name_by_read.items():
            found = None if name in beside else _four_of(read)
            if found is not None:
                four, quarter, multiples[found[0]] = found
                components[four].add(quarter.component)
        return {four: multiples[four] for four, found in components.items() if len(found) > 1}

    def bound(self, fours: Collection[Four]) -> tuple[frozenset[Value], frozenset[Value]]:
        """The arrays that are read by four, and those that are read by element."""
        by_four = frozenset(four.value for four in fours)
        by_element = frozenset(
            read.value
            for read in self._name_by_read
            if (found := _four_of(read)) is None or found[0] not in fours
        )
        return by_four, by_element

    @property
    def names(self) -> frozenset[str]:
        """The variables that stand for elements."""
        return frozenset(self._name_by_read.values())

    def of(self, base: Position) -> frozenset[str]:
        """The variables of reads whose position or guard depends on a base."""
        ((own, _),) = base.terms
        return frozenset(
            name
            for read, name in self._name_by_read.items()
            if any(
                own == term
                for at in (read.at, *(at for _, *both in read.guard for at in both))
                for term, _ in at.terms
            )
        )

    def outside_of_choices(self, elements: Iterable[Expr]) -> list[Read]:
        """The reads that do not stand on one side of a choice in `elements`."""
        beside = _on_sides(elements)
        return [read for read, name in self._name_by_read.items() if name not in beside]

    def moved(self, name: str, by_name: Mapping[str, Position]) -> Read:
        """The read that a variable stands for, with positions in place of variables in it."""
        read, positions = self._read_by_name[name], self._writer.positions
        guard = tuple(
            (op, positions.moved(a, by_name), positions.moved(b, by_name))
            for op, a, b in read.guard
        )
        return Read(read.value, positions.moved(read.at, by_name), guard)

    def variable(self, read: Read) -> nodes.Var:
        """A variable for a read."""
        name = self._name_by_read.setdefault(read, f"read{len(self._name_by_read)}")
        self._read_by_name[name] = read
        return c.variable(name, read.value.element)

    def loads(
        self, fours: Collection[Four], available: Mapping[Read, Expr] = NO_READS
    ) -> Mapping[str, Expr]:
        """Elements for the variables of all reads; `fours` are loaded at once.

        `available` are those of them that the thread has already.
        """
        loaded = {self._name_by_read[read]: element for read, element in available.items()}
        first: dict[Four, Read] = {}
        """A read of each four, whose guard is that of all of them."""
        for read, name in self._name_by_read.items():
            if name in loaded:
                continue
            found = _four_of(read)
            if found is not None and found[0] in fours:
                guarding = first.setdefault(found[0], read)
                load = self._guarded(guarding, self._writer.read_vector(read.value, found[1].at))
                element = c.component(substitute(load, loaded), found[1].component)
            else:
                # The position of a gather is what an earlier read gave.
                load = self._guarded(read, self._writer.read_number(read.value, read.at))
                element = substitute(load, loaded)
            loaded[name] = element
        return loaded

    def _guarded(self, read: Read, load: Expr) -> Expr:
        if not read.guard:
            return load
        tests = [self._writer.positions.test(*test) for test in read.guard]
        return choice(tests, load, c.zero(load.type))


def guarded_reads(writer: Writer, is_stored: IsStored) -> tuple[ThreadReads, GuardedElements]:
    """The reads of a thread, and elements that make these with their guards."""
    reads = ThreadReads(writer)

    def read(value: Value, at: Indices, view: View | None) -> Expr:
        return reads.read(value, at, view, elements.guard)

    elements = GuardedElements(writer.positions, is_stored, read, reads.is_zero)
    return reads, elements


def _on_sides(elements: Iterable[Expr]) -> frozenset[str]:
    """The variables on sides of choices."""
    sides: Iterator[Expr] = (
        side
        for element in elements
        for part in in_order(element)
        if isinstance(part, nodes.Conditional)
        for side in (part.if_true, part.if_false)
    )
    return frozenset[str]().union(*map(variables, sides))


def stores_of(
    writer: Writer, name: str, value: Value, places: Sequence[Indices], elements: Sequence[Expr]
) -> Iterator[Stmt]:
    """Stores elements of an output, which no other thread does; four adjacent ones at once.

    Sizes in the numbers of their places must be multiples of 4 if there are four.
    """
    first, *others = (number(at, value.shape) for at in places)
    is_whole = len(places) == WIDTH and comes_by_four(value.element)
    for start, step in ((0, 1), (WIDTH - 1, -1)) if is_whole else ():
        quarter = quarter_of(first)
        are_adjacent = all(at == add(first, constant(k * step)) for k, at in enumerate(others, 1))
        if are_adjacent and quarter is not None and quarter.component == start:
            yield writer.store_vector(name, quarter.at, elements[::step])
            return
    for at, element in zip(places, elements, strict=True):
        indices = writer.indices_in(value, at)
        yield Store(buffer=name, indices=indices, value=element, is_unique=True)


class ThreadElements:
    """The elements that a thread computes.

    Args:
        writer: Of its kernel.
        is_stored: True for values that it does not compute.
        requests: Values, and the indices of their elements.
        own: Gives elements that the thread has already, `None` for those in memory.
    """

    def __init__(
        self,
        writer: Writer,
        is_stored: IsStored,
        requests: Iterable[tuple[Value, Indices]],
        own: Callable[[Value, Indices], Expr | None] = lambda _, __: None,
    ) -> None:
        self._writer, self._reads = writer, ThreadReads(writer)

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            element = own(value, at) if view is None else None
            return self._reads.read(value, at, view) if element is None else element

        elements = Elements(writer.positions, is_stored, read)
        self._elements = [elements.at(*request) for request in requests]
        self._fours = self._reads.fours(self._elements)

    @property
    def cost(self) -> int:
        """The cost of the code, in additions."""
        parts = {id(part): part for e in self._elements for part in in_order(e)}
        return sum(map(cost_of, parts.values()))

    @property
    def code_cost(self) -> int:
        """`cost` with that of reads and choices, which take time or space in drivers."""
        parts = {id(part): part for e in self._elements for part in in_order(e)}
        choices = sum(isinstance(part, nodes.Conditional) for part in parts.values())
        return self.cost + _READ_COST * len(self.reads) + CHOICE_COST * choices

    @property
    def reads_apart(self) -> int:
        """The elements whose place among four adjacent ones depends on the thread."""
        return sum(_four_of(read) is None for read in self.reads)

    @property
    def reads(self) -> Collection[Read]:
        """The elements that it reads from memory, by their numbers."""
        return self._reads.elements

    @property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four that it may have, the sizes that must be multiples of 4."""
        return [*self._fours.values()]

    def bound(self, chosen: Sequence[bool]) -> tuple[frozenset[Value], frozenset[Value]]:
        """Arrays that are read by four and by element, if those of `loads` are chosen."""
        return self._reads.bound([*compress(self._fours, chosen)])

    def written(self, chosen: Sequence[bool], prefix: str = "t") -> Written:
        """The statements that compute them, with those of `loads` that are chosen."""
        loads = self._reads.loads([*compress(self._fours, chosen)])
        return self._writer.written([substitute(e, loads) for e in self._elements], prefix)
