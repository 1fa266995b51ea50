"""The addends of a block of results, whose loads the threads of a workgroup share.

In ``sum_k x[m, k] * y[k, n]`` a part of an addend depends on a row or on a column alone. For some
elements of the sum at a time, threads load these parts for all rows and columns of the block into
group memory, by four, and then take from there what their tiles need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from math import prod

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order, substitute
from shaderad.ir.equality import Expressions
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, UINT, byte_count
from shaderad.ir.walk import children, map_children
from shaderad.plan.discarded import without_test
from shaderad.plan.kernels import WIDTH, four_of
from shaderad.plan.nest.memory import SharedArray, shared_array
from shaderad.plan.nest.statements import added_in_turn, counted, guarded
from shaderad.plan.nest.sums.places import Place, SumPlaces
from shaderad.plan.nest.sums.tiles import SumTile
from shaderad.plan.nest.sums.work import SumWork
from shaderad.plan.nest.vectors import ThreadReads, guarded_reads
from shaderad.plan.positions import Position, add, constant, times

ROW, COLUMN = "row", "column"
_ELEMENT = "element"
_SHARED = (FLOAT, INT, UINT)


@dataclass(frozen=True, eq=False)
class _BlockSide:
    """The rows or the columns of a block.

    Attributes:
        name: `ROW` or `COLUMN`.
        axis: Their axis of results.
        fours: Those of a block, four by four.
        parts: What depends on them alone.
        arrays: Its values in group memory: for each element, those of all fours.
        first: The number of the first of its loads, of those of all sides.
        is_by_element: True if what adjacent elements of the sum read lies side by side.
    """

    name: str
    axis: int
    fours: int
    parts: Sequence[Expr]
    arrays: Sequence[SharedArray]
    first: int
    is_by_element: bool

    @property
    def pitch(self) -> int:
        """The distance of elements in group memory, for which banks of memory differ."""
        return self.fours + 1


@dataclass(frozen=True, eq=False)
class _Load:
    """A load of a thread for a side: for each part, 4 elements of 4 results each."""

    side: _BlockSide
    is_own: Expr | None
    """True if the thread loads it; `None` if all threads do."""
    four: Position
    elements: Position
    values: Sequence[Sequence[Expr]]


class GroupAddends:
    """The addends.

    Args:
        work: The sum.
        tile: How threads share it: blocks have rows and columns.
        places: Where the thread is.
    """

    def __init__(self, work: SumWork, tile: SumTile, places: SumPlaces) -> None:
        self._work, self._tile, self._places = work, tile, places
        self._writer = places.writer
        self._threads = prod(tile.threads)
        self._depth = tile.steps[-1]
        """The elements of a sum that are loaded at a time."""
        self._axes = [axis for axis, count in enumerate(tile.threads) if count > 1]
        self._template, self._elements = guarded_reads(self._writer, work.has_memory)
        self._reads, self._rest = ThreadReads(self._writer), ThreadReads(self._writer)
        shared = Expressions()
        addend, *self._beside = map(shared.shared, self._symbolic())
        self._addend = without_test(addend)
        self.has_test = self._addend is not addend
        """True if addends have tests for discarded cotangents, which they are added without."""
        self._part_of = self._parts()
        self._sides = [*self._all_sides()]
        self._loads = [*self._all_loads()]
        every = chain.from_iterable(chain(*load.values) for load in self._loads)
        self._fours = self._reads.fours([*every])

    # -- an addend by variables for its row, its column, and its element ------------------------

    def _symbolic(self) -> Iterator[Expr]:
        """An addend, and that of a sum along columns, if there is one."""
        positions = self._writer.positions
        elements = self._elements
        at = [*self._places.own]
        for axis, name in zip(self._axes, (ROW, COLUMN), strict=True):
            at[axis] = positions.of_name(name)
        element = positions.of_name(_ELEMENT)
        *outer, _ = self._places.element((0,) * len(self._tile.steps))
        yield elements.at(self._work.addends, (*at, *outer, element))
        if self._work.column_sum is not None:
            (y,) = self._work.column_sum.operands
            yield elements.at(y, (at[-1], element))

    @property
    def beside_count(self) -> int:
        """The number of sums along columns."""
        return len(self._beside) * self._tile.held[self._axes[-1]]

    def _parts(self) -> dict[int, tuple[Expr, str]]:
        """The largest parts that depend on a row or a column alone, and which, by identities."""
        names = self._sided_names()
        found: dict[int, tuple[Expr, str]] = {}
        for e in (self._addend, *self._beside):
            sides: dict[int, frozenset[str]] = {}
            for part in in_order(e):
                own = names.get(part.name, ()) if isinstance(part, nodes.Var) else ()
                inner = (sides[id(child)] for child in children(part))
                sides[id(part)] = frozenset(own).union(*inner)
            pending = [e]
            while pending:
                part = pending.pop()
                if len(sides[id(part)]) == 1 and part.type in _SHARED:
                    (side,) = sides[id(part)]
                    found[id(part)] = part, side
                elif sides[id(part)]:
                    pending += children(part)
        return found

    def _sided_names(self) -> dict[str, Sequence[str]]:
        """The sides on which variables depend."""
        positions = self._writer.positions
        names: dict[str, Sequence[str]] = {name: (name,) for name in (ROW, COLUMN)}
        by_side = {name: self._template.of(positions.of_name(name)) for name in (ROW, COLUMN)}
        for read in by_side[ROW] | by_side[COLUMN]:
            names[read] = [side for side, reads in by_side.items() if read in reads]
        return names

    # -- loads into group memory ----------------------------------------------------------------

    def _all_sides(self) -> Iterator[_BlockSide]:
        first = 0
        for name, axis in zip((ROW, COLUMN), self._axes, strict=True):
            fours = self._tile.block(axis) // WIDTH
            parts = [part for part, side in self._part_of.values() if side == name]
            arrays = [
                shared_array(
                    self._writer, f"{name}_part{k}", four_of(part.type), self._depth * (fours + 1)
                )
                for k, part in enumerate(parts)
            ]
            is_by_element = any(map(self._is_by_element, parts))
            yield _BlockSide(name, axis, fours, parts, arrays, first, is_by_element)
            first += fours * self._depth // WIDTH

    @property
    def group_bytes(self) -> int:
        """The bytes of group memory."""
        return sum(
            self._depth * side.pitch * WIDTH * byte_count(part.type)
            for side in self._sides
            for part in side.parts
        )

    def _is_by_element(self, part: Expr) -> bool:
        base = self._writer.positions.of_name(_ELEMENT).terms[0][0]
        names = (e.name for e in in_order(part) if isinstance(e, nodes.Var))
        reads = (self._template.moved(name, {}) for name in names if name in self._template.names)
        return any(dict(read.at.terms).get(base) == 1 for read in reads)

    def _all_loads(self) -> Iterator[_Load]:
        for side in self._sides:
            count = side.fours * self._depth // WIDTH
            for start in range(0, side.first + count, self._threads):
                low, high = side.first - start, side.first + count - start
                if low < self._threads and high > 0:
                    yield self._load(side, start, max(low, 0), min(high, self._threads))

    def _load(self, side: _BlockSide, start: int, low: int, high: int) -> _Load:
        """The load of threads from `low` to below `high` for a side, in the turn from `start`."""
        places, positions = self._places, self._writer.positions
        number = add(places.thread, constant(start - side.first))
        tests: list[Expr] = []
        thread = positions.expr(places.thread)
        if low > 0:
            tests.append(c.apply(ops.GE, thread, c.whole(low)))
        if high < self._threads:
            tests.append(c.apply(ops.LT, thread, c.whole(high)))
        fast, slow = side.fours, self._depth // WIDTH
        if side.is_by_element:
            fast, slow = slow, fast
        name = f"{side.name}{start}"
        if low > 0:
            # Other threads find where they would load, too.
            number = positions.of(c.apply(ops.MAX, positions.expr(number), c.whole(0)))
        outer, inner = positions.divided(number, fast) if slow > 1 else (Position(), number)
        element, four = (inner, outer) if side.is_by_element else (outer, inner)
        four = places.named(f"{name}_four", four)
        element = times(places.named(f"{name}_element", element), WIDTH)
        results = places.of_four(side.axis, places.four(side.axis, four), f"{name}_at")
        values = [
            [self._moved(part, {side.name: at, _ELEMENT: self._element(add(element, constant(k)))})
             for k in range(WIDTH) for at in results]
            for part in side.parts
        ]  # fmt: skip
        return _Load(side, c.all_hold(tests), four, element, values)

    def _element(self, in_step: Position) -> Position:
        """The position of an element of the sum."""
        last = self._places.step(len(self._tile.steps) - 1)
        base = self._writer.positions.of_name(last.name)
        return add(times(base, self._depth), in_step)

    def _moved(self, part: Expr, by_name: Mapping[str, Position]) -> Expr:
        """A part at positions, with variables for what is loaded."""
        return substitute(part, self._names_at(self._reads, part, by_name))

    def _names_at(
        self, reads: ThreadReads, part: Expr, by_name: Mapping[str, Position]
    ) -> dict[str, Expr]:
        """Expressions for the variables of a part at positions."""
        new = {name: self._writer.positions.expr(at) for name, at in by_name.items()}
        for e in in_order(part):
            if isinstance(e, nodes.Var) and e.name in self._template.names:
                new[e.name] = reads.variable(self._template.moved(e.name, by_name))
        return new

    # -- what the kernel binds ------------------------------------------------------------------

    @property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four that it may have, the sizes that must be multiples of 4."""
        return [*self._fours.values()]

    def bound(self, chosen: Sequence[bool]) -> tuple[frozenset[Value], frozenset[Value]]:
        """Arrays that are read by four and by element, if those of `loads` are chosen."""
        by_four, by_element = self._reads.bound([*compress(self._fours, chosen)])
        _, others = self._rest.bound(())
        return by_four, by_element | others

    # -- statements -----------------------------------------------------------------------------

    def added(self, chosen: Sequence[bool], terms: Sequence[nodes.Var]) -> Iterator[Stmt]:
        """Adds the elements of one step to `terms`."""
        yield from self._shared_stores(chosen)
        yield nodes.Barrier()
        step = self._writer.local("in_step", INT)
        body = [*self._adds(self._writer.positions.of(step), terms)]
        yield counted(step, c.whole(0), c.whole(self._depth), body)
        yield nodes.Barrier()

    def _shared_stores(self, chosen: Sequence[bool]) -> Iterator[Stmt]:
        loaded = self._reads.loads([*compress(self._fours, chosen)])
        for number, load in enumerate(self._loads):
            flat = [substitute(e, loaded) for values in load.values for e in values]
            written = self._writer.written(flat, f"load{number}_t")
            stores = [*written.body]
            for k, shared in enumerate(load.side.arrays):
                for j in range(WIDTH):
                    first = (k * WIDTH + j) * WIDTH
                    four = written.values[first : first + WIDTH]
                    row = times(add(load.elements, constant(j)), load.side.pitch)
                    value = c.construct(four_of(four[0].type), four)
                    stores.append(shared.put(add(row, load.four), value))
            yield from guarded(load.is_own, stores)

    def _adds(self, step: Position, terms: Sequence[nodes.Var]) -> Iterator[Stmt]:
        taken = {side.name: self._taken(side, step) for side in self._sides}
        """For each row and column of a tile, its parts by their identities."""
        first = [e for by_place in taken.values() for parts in by_place for e in parts.values()]
        element = self._element(step)
        addends = [
            self._with_parts(self._addend, place, taken, element) for place in self._places.results
        ]
        column = self._axes[-1]
        beside = [
            self._with_parts(e, place, taken, element)
            for e in self._beside
            for k in range(self._tile.held[column])
            for place in [tuple(k if axis == column else 0 for axis in range(len(self._tile.held)))]
        ]
        rest = self._rest.loads(())
        values = [substitute(e, rest) for e in (*addends, *beside)]
        written = self._writer.written([*first, *values])
        yield from added_in_turn(written, len(first), terms)

    def _taken(self, side: _BlockSide, step: Position) -> list[dict[int, Expr]]:
        """The parts of each row or column of a tile, from group memory."""
        row = times(step, side.pitch)
        by_place: list[dict[int, Expr]] = []
        for k in range(self._tile.held[side.axis] // WIDTH):
            at = add(row, self._places.own_four(side.axis, constant(k)))
            fours = [shared.get(at) for shared in side.arrays]
            by_place += (
                {
                    id(part): c.component(four, j)
                    for part, four in zip(side.parts, fours, strict=True)
                }
                for j in range(WIDTH)
            )
        return by_place

    def _with_parts(
        self,
        e: Expr,
        place: Place,
        taken: Mapping[str, Sequence[Mapping[int, Expr]]],
        element: Position,
    ) -> Expr:
        """An addend of a result, with its parts from group memory."""
        at = self._places.result(place)
        parts: dict[int, Expr] = {}
        by_name: dict[str, Position] = {_ELEMENT: element}
        for side in self._sides:
            parts |= taken[side.name][place[side.axis]]
            by_name[side.name] = at[side.axis]
        new: dict[int, Expr] = {}
        for part in in_order(e):
            own = parts.get(id(part))
            new[id(part)] = map_children(part, lambda child: new[id(child)]) if own is None else own
        whole = new[id(e)]
        return substitute(whole, self._names_at(self._rest, whole, by_name))
