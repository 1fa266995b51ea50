"""A sum over tiles -> a kernel whose threads hold the sums of a tile of results in registers.

A thread adds some adjacent elements at a time, whose code is written out, so that each of the
elements that it loads serves all addends of the tile that read it. Where sums are
long, it adds runs of them, so that rounding errors grow with the number of runs only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access
from shaderad.plan.elements import Elements
from shaderad.plan.kernels import WIDTH, PlanKernel, Writer
from shaderad.plan.nest.memory import ThreadArray
from shaderad.plan.nest.statements import assigned, counted, plus, store, zeroed
from shaderad.plan.nest.sums.addends import SumAddends
from shaderad.plan.nest.sums.groups import GroupAddends
from shaderad.plan.nest.sums.places import SumPlaces
from shaderad.plan.nest.sums.tiles import SumTile
from shaderad.plan.nest.sums.work import SumWork
from shaderad.plan.nest.teams import Team, TeamFold
from shaderad.plan.nest.vectors import ThreadElements, comes_by_four, quarter_of
from shaderad.plan.positions import Indices, Position, add, constant, number, times

PART, RESULT, COLUMN_SUM = "part", "y0", "y1"
"""Arrays of the sums of parts, of the results, and of the sums along columns."""


class SumWriter:
    """Writes one kernel.

    Args:
        work: The sum.
        tile: How threads share it.
        parts: The sums of parts, if there are any.
    """

    def __init__(self, work: SumWork, tile: SumTile, parts: Value | None) -> None:
        self._work, self._tile, self._parts = work, tile, parts
        self._places = SumPlaces(work, tile)
        self._writer = self._places.writer
        addends = GroupAddends if tile.is_grouped else SumAddends
        self._addends = addends(work, tile, self._places)
        self._stored = self._work.result if parts is None else parts
        self._t = work.addends.element
        count = len(self._places.results)
        every = count + self._addends.beside_count
        self._terms = [self._writer.local(f"sum{k}", self._t) for k in range(every)]
        """The sums; those of a run, if there are several."""
        self._starts = [*map(zeroed, self._terms)]
        """Sets the sums to 0."""
        self._totals: list[Expr] = [*self._terms]
        if tile.run_steps:
            totals = ThreadArray(self._writer, "totals", self._t, every)
            self._starts = [totals.zeroed()]
            self._totals = [totals.get(constant(k)) for k in range(every)]
        self._sums, self._beside = self._totals[:count], self._totals[count:]
        self._of_place = {
            self._places.result(place): total
            for place, total in zip(self._places.results, self._sums, strict=True)
        }
        self._results = ThreadElements(
            self._writer,
            lambda v: v is work.node.result or work.has_memory(v),
            ((work.result, at) for at in self._of_place) if parts is None else (),
            lambda v, at: self._of_place[at] if v is work.node.result else None,
        )

    # -- loads and stores of four --------------------------------------------------------------

    @property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four that it may have, the sizes that must be multiples of 4."""
        return [*self._addends.loads, *self._results.loads]

    def bound_twice(self, chosen: Sequence[bool]) -> int:
        """The number of arrays that the kernel binds twice with those loads that are chosen."""
        own, others = self._split(chosen)
        bound = [self._addends.bound(own), self._results.bound(others)]
        by_four, by_element = (
            frozenset[Value]().union(*found) for found in zip(*bound, strict=True)
        )
        if self._addends.has_test:
            return len(by_four)
        return len(by_four & by_element)

    @property
    def read_count(self) -> int:
        """The number of arrays and values that the kernel reads."""
        every = (True,) * len(self.loads)
        own, others = self._split(every)
        bound = (*self._addends.bound(own), *self._results.bound(others))
        return len(frozenset[Value]().union(*bound))

    @property
    def group_bytes(self) -> int:
        """The bytes of group memory that it needs."""
        return self._addends.group_bytes if isinstance(self._addends, GroupAddends) else 0

    def _split(self, chosen: Sequence[bool]) -> tuple[Sequence[bool], Sequence[bool]]:
        count = len(self._addends.loads)
        return chosen[:count], chosen[count:]

    # -- the kernel ----------------------------------------------------------------------------

    def kernel(self, name: str, chosen: Sequence[bool], *, by_four: bool) -> PlanKernel:
        """The kernel with those loads that are chosen; it stores by four if that is set."""
        own, others = self._split(chosen)
        body = [*self._places.before, *self._starts]
        body += self._added(own)
        body += self._folded()
        body += self._tests()
        stores = [*self._stores(others, by_four=by_four), *self._column_stores(by_four=by_four)]
        body += stores if self._tile.lanes == 1 else [self._fold(self._terms).first(stores)]
        return self._writer.finish(name, body, self._outputs())

    def _outputs(self) -> list[tuple[str, Value, Access]]:
        if self._parts is not None:
            return [(PART, self._parts, Access.OUT)]
        outputs = [(RESULT, self._work.result, Access.OUT)]
        if self._work.column_sum is not None:
            outputs.append((COLUMN_SUM, self._work.column_sum.result, Access.OUT))
        return outputs

    # -- sums ----------------------------------------------------------------------------------

    def _added(self, chosen: Sequence[bool]) -> Iterator[Stmt]:
        """Adds all elements, or those of a part, to the sums."""
        body = [*self._addends.added(chosen, self._terms)]
        for axis in reversed(self._loops):
            in_order = self._in_runs if axis == self._tile.run_axis else self._loop
            body = [in_order(axis, *self._bounds(axis), body)]
        yield from body

    def _folded(self) -> Iterator[Stmt]:
        """Adds the sums of the lanes that share a part; each then has all of them."""
        if self._tile.lanes > 1:
            if self._tile.run_steps:
                yield from map(assigned, self._terms, self._totals)
            yield from self._fold(self._terms).statements(for_all=True)
            if self._tile.run_steps:
                yield from map(_assigned, self._totals, self._terms)

    def _fold(self, totals: Sequence[nodes.Var]) -> TeamFold:
        return fold_of_lanes(self._writer, self._tile.lanes, totals, self._places.part_lane)

    def _in_runs(self, axis: int, start: Expr, stop: Expr, body: Sequence[Stmt]) -> Stmt:
        """Adds runs of steps along an axis, each to 0, then to the sums."""
        first = self._writer.local("first", INT)
        size = c.whole(self._tile.run_steps * self._lanes_along(axis))
        last = c.apply(ops.MIN, c.apply(ops.ADD, first, size), stop)
        inner = [
            *map(zeroed, self._terms),
            self._loop(axis, first, last, body),
            *map(_summed, self._totals, self._terms),
        ]
        return counted(first, start, stop, inner, size)

    def _loop(self, axis: int, start: Expr, stop: Expr, body: Sequence[Stmt]) -> Stmt:
        """Takes the steps of the lane."""
        step, lanes = self._writer.local(self._places.step(axis).name, INT), self._lanes_along(axis)
        if lanes > 1:
            start = c.apply(ops.ADD, start, self._writer.positions.expr(self._places.part_lane))
        return counted(step, start, stop, body, lanes)

    def _lanes_along(self, axis: int) -> int:
        """The lanes that take steps along an axis in turn."""
        return self._tile.lanes if axis == self._cut_axis else 1

    @property
    def _loops(self) -> list[int]:
        """The summed axes along which the thread takes several steps."""
        return [k for k, is_whole in enumerate(self._tile.are_whole) if not is_whole]

    @property
    def _cut_axis(self) -> int | None:
        """The summed axis of the outer loop, which parts divide."""
        return next(iter(self._loops), None)

    def _bounds(self, axis: int) -> tuple[Expr, Expr]:
        """The first step of a part along an axis, and the one behind its last."""
        positions, count = self._writer.positions, self._places.step_count(axis)
        if self._parts is None or axis != self._cut_axis:
            return c.whole(0), positions.size(count)
        length = sizes.divide_up(count, self._tile.part_count)
        start = times(self._places.part, length)
        end = positions.expr(add(start, constant(length)))
        return positions.expr(start), c.apply(ops.MIN, end, positions.size(count))

    # -- tests for discarded cotangents ----------------------------------------------------
    # Elements are added without their tests. These are in effect where a product is NaN, and then
    # so is its sum.

    def _tests(self) -> Iterator[Stmt]:
        """Computes the sums again, with all tests, if one of them is NaN."""
        if not self._addends.has_test:
            return
        check = self._writer.local("check", self._t)
        yield zeroed(check)
        yield from (plus(check, total) for total in self._sums)
        tested = ThreadArray(self._writer, "tested", self._t, len(self._sums))
        taken = (_assigned(total, tested.get(constant(k))) for k, total in enumerate(self._sums))
        then = (tested.zeroed(), *self._tested_sums(tested), *taken)
        yield If(condition=c.apply(ops.ISNAN, check), then=then, otherwise=())

    def _tested_sums(self, tested: ThreadArray) -> Iterator[Stmt]:
        """Computes the sums with all tests, one after the other."""
        positions, total = self._writer.positions, self._writer.local("tested_sum", self._t)
        counters = [self._writer.local(f"held{axis}", INT) for axis in range(len(self._tile.held))]
        place = Position()
        for counter, count in zip(counters, self._tile.held, strict=True):
            place = add(times(place, count), positions.of(counter))
        at = self._places.counted([positions.of(counter) for counter in counters])
        steps = [positions.of_name(self._places.step(k).name) for k in range(len(self._tile.steps))]
        elements = Elements(positions, self._work.has_memory, self._read)
        written = self._writer.written([elements.at(self._work.addends, (*at, *steps))], "tested_t")
        body: list[Stmt] = [*written.body, plus(total, written.values[0])]
        for axis in reversed(range(len(self._tile.steps))):
            step = self._writer.local(self._places.step(axis).name, INT)
            body = [counted(step, *self._tested_bounds(axis), body)]
        body = [zeroed(total), *body, tested.put(place, total)]
        for counter, count in reversed([*zip(counters, self._tile.held, strict=True)]):
            body = [counted(counter, c.whole(0), c.whole(count), body)]
        yield from body

    def _tested_bounds(self, axis: int) -> tuple[Expr, Expr]:
        """The first element of a part along a summed axis, and the one behind its last."""
        extent = self._writer.positions.size(self._work.summed[axis])
        if axis != self._cut_axis:
            return c.whole(0), extent
        size = c.whole(self._tile.steps[axis])
        first, last = (c.apply(ops.MUL, bound, size) for bound in self._bounds(axis))
        return first, last

    def _read(self, value: Value, at: Indices, view: object) -> Expr:
        del view
        if sizes.product(value.shape) == 1:
            return self._writer.read(value, at)
        return self._writer.read_number(value, number(at, value.shape))

    # -- stores --------------------------------------------------------------------------------

    def _stores(self, chosen: Sequence[bool], *, by_four: bool) -> Iterator[Stmt]:
        """Stores the sums, or what becomes of them."""
        places = [*self._of_place]
        if self._parts is None:
            written = self._results.written(chosen, "r")
            values, name, before = written.in_turn(), RESULT, ()
        else:
            values = (((), total) for total in self._sums)
            name, before = PART, (self._places.part,)
        for first in range(0, len(places), WIDTH if by_four else 1):
            group = places[first : first + WIDTH] if by_four else places[first : first + 1]
            elements: list[Expr] = []
            for _ in group:
                statements, element = next(values)
                yield from statements
                elements.append(element)
            stored = self._store(name, self._stored, (*before, *group[0]), elements)
            yield self._where(self._places.is_inside(self._places.results[first]), stored)

    def _where(self, condition: Expr | None, stored: Stmt) -> Stmt:
        return (
            stored if condition is None else If(condition=condition, then=(stored,), otherwise=())
        )

    def _store(self, name: str, array: Value, at: Indices, elements: Sequence[Expr]) -> Stmt:
        """Stores one element, or four adjacent ones."""
        if len(elements) == 1:
            return store(name, self._writer.indices_in(array, at), elements[0])
        four = quarter_of(number(at, array.shape))
        assert four is not None, "stores by four need tiles that start at multiples of 4"
        return self._writer.store_vector(name, four.at, elements)

    @property
    def store_multiples(self) -> tuple[Size, ...] | None:
        """The sizes that must be multiples of 4 for stores of four; `None` without them."""
        tile, places = self._tile, [*self._of_place]
        held = [n for n in tile.held if n > 1]
        if not held or held[-1] % WIDTH or not comes_by_four(self._stored.element):
            return None
        before = () if self._parts is None else (self._places.part,)
        shape = self._stored.shape
        fours = [number((*before, *at), shape) for at in places[:WIDTH]]
        if any(at != add(fours[0], constant(k)) for k, at in enumerate(fours)):
            return None
        four = quarter_of(fours[0])
        if four is None or four.component:
            return None
        other = self._work.column_sum
        beside = () if other is None else (sizes.product(other.result.shape),)
        return (sizes.product(shape), *four.multiples, *beside)

    def _column_stores(self, *, by_four: bool) -> Iterator[Stmt]:
        """Stores the sums along columns, in the first tile of each column."""
        if self._work.column_sum is None:
            return
        array, before, name = self._work.column_sum.result, (), COLUMN_SUM
        if self._parts is not None:
            array, name = self._parts, PART
            before = self._places.part, constant(self._work.rows[0])
        columns, width = self._places.columns, WIDTH if by_four else 1
        stores = tuple(
            self._where(
                self._places.is_column_inside(k),
                self._store(name, array, (*before, columns[k]), self._beside[k : k + width]),
            )
            for k in range(0, len(columns), width)
        )
        yield If(condition=self._places.is_first_row, then=stores, otherwise=())


def fold_of_lanes(
    writer: Writer, lanes: int, totals: Sequence[nodes.Var], lane: Position
) -> TeamFold:
    """Adds the sums of so many adjacent lanes of a wave, of which the thread is number `lane`."""
    team = Team(lanes, wave=lanes, workgroup=lanes)
    return TeamFold(team, writer, totals, lambda a, b: c.apply(ops.ADD, a, b), None, lane)


def _assigned(total: Expr, value: Expr) -> Stmt:
    """Sets a variable, or an element of an array of them."""
    if isinstance(total, nodes.Var):
        return Assign(name=total.name, value=value)
    assert isinstance(total, nodes.Element)
    assert isinstance(total.value, nodes.Var)
    return Assign(name=total.value.name, path=(nodes.ElementStep(index=total.index),), value=value)


def _summed(total: Expr, value: Expr) -> Stmt:
    return _assigned(total, c.apply(ops.ADD, total, value))
