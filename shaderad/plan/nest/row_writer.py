"""The work of rows -> kernels of the kernel IR."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, islice

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Access
from shaderad.plan.kernels import PlanKernel, number_writer
from shaderad.plan.nest.memory import ThreadArray
from shaderad.plan.nest.row_elements import STEP, RowElements, RowPlaces
from shaderad.plan.nest.row_steps import REGISTER, LaneSteps
from shaderad.plan.nest.row_work import RowParts, RowSharing, RowWork
from shaderad.plan.nest.statements import assigned, guarded
from shaderad.plan.nest.teams import TeamFold
from shaderad.plan.nest.vectors import ThreadElements, stores_of
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.reductions import Reduction, combined_elements, has_neutral, neutral_of
from shaderad.plan.statements import Written


@dataclass(frozen=True, slots=True)
class _Visited:
    """The places that a thread visits at once, and their elements."""

    places: RowPlaces
    elements: RowElements


class RowWriter:
    """Writes one kernel.

    Args:
        work: What it computes.
        sharing: How threads share rows.
        cut: The parts of rows; `None` for whole rows.
        is_last: True if the kernel folds the totals of parts, false if it stores them.
    """

    def __init__(
        self,
        work: RowWork,
        sharing: RowSharing,
        cut: RowParts | None = None,
        *,
        is_last: bool = False,
    ) -> None:
        self._work, self._sharing = work, sharing
        parts = None if cut is None else cut.totals
        self._source, self._target = (parts, None) if is_last else (None, parts)
        self._cut = None if is_last else cut
        length = work.length if self._source is None else self._source.shape[-1]
        available = work.reads | {v for v in (self._source,) if v is not None}
        self._writer = number_writer(self._dims(), available.__contains__)
        axes, rows = self._rows()
        longest = length if self._cut is None else self._cut.length
        self._steps = LaneSteps(
            self._writer,
            sharing,
            sizes.floor_divide(length, sharing.width),
            sizes.floor_divide(longest, sharing.width),
            None if self._cut is None else self._part,
            work.is_ordered,
        )
        self._totals = {
            node.results[0]: self._variables(f"total{k}", node) for k, node in enumerate(work.folds)
        }
        shape = (*axes, length)
        self._single = self._visited(RowPlaces(shape, self._writer, rows, sharing.width))
        block = RowPlaces(shape, self._writer, rows, sharing.width, self._steps.block)
        self._block = self._visited(block)
        self._places, self._elements = self._single.places, self._single.elements

    def _visited(self, places: RowPlaces) -> _Visited:
        work, totals = self._work, self._totals
        elements = RowElements(work, self._writer, places, totals, self._held, self._source)
        return _Visited(places, elements)

    def _dims(self) -> Shape:
        """The threads: those of a team are the innermost ones."""
        work, team = self._work, self._sharing.team
        parts = () if self._cut is None else (self._cut.count,)
        if not self._sharing.is_across:
            return (self._chosen(work.row_count), *parts, team.lanes)
        *outer, last = work.places[:-1]
        blocks = sizes.divide_up(last, team.span * self._sharing.rows)
        return (*outer, blocks, *parts, team.lanes, team.span)

    def _chosen(self, extent: Size) -> Size:
        """The outermost extent of threads: 0 if the kernel does not run."""
        return sizes.multiply(extent, self._sharing.is_chosen)

    def _rows(self) -> tuple[Shape, Sequence[Indices]]:
        """The axes of rows, and the indices of those of the thread."""
        work, sharing = self._work, self._sharing
        *own, self._lane = self._writer.own[:-1] if sharing.is_across else self._writer.own
        self._part = Position() if self._cut is None else own.pop()
        if not sharing.is_across:
            row = (Position(),) if work.row_count == 1 else tuple(own)
            return (work.row_count,), [row]
        *outer, block = own
        self._column = add(times(block, sharing.team.span), self._writer.own[-1])
        first = times(self._column, sharing.rows)
        rows = [(*outer, add(first, constant(k))) for k in range(sharing.rows)]
        return work.places[:-1], rows

    def _variables(self, name: str, node: Reduction) -> Sequence[nodes.Var]:
        """The totals of the rows of the thread."""
        count, t = self._sharing.rows, node.results[0].element
        names = [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
        return [self._writer.local(name, t) for name in names]

    @property
    def phases(self) -> Sequence[ThreadElements]:
        """The elements of each phase."""
        return [self._elements.of_phase(phase) for phase in self._phases]

    @property
    def _phases(self) -> Iterable[int]:
        count = len(self._work.folds)
        return range(count + bool(self._work.elements[-1]))

    def strided(self, *, by_rows: bool) -> int:
        """The number of accesses that lie apart in adjacent rows, or in adjacent steps."""
        terms = (self._column if by_rows else self._places.step).terms
        base = terms[0][0] if terms else None
        places = [read.at for phase in self.phases for read in phase.reads]
        stored = (v for values in self._work.elements for v in values if v in self._work.stored)
        places += (number(self._places.element(v, 0), v.shape) for v in stored)
        factors = (factor for at in places for one, factor in at.terms if one == base)
        return sum(factor not in (-1, 1) for factor in factors)

    def bound_twice(self, chosen: Sequence[bool]) -> int:
        """The number of arrays that the kernel binds twice with those loads that are chosen."""
        loads = self._by_phase(chosen)
        bound = [phase.bound(own) for phase, own in zip(self.phases, loads, strict=True)]
        by_four, by_element = (frozenset[Value]().union(*side) for side in zip(*bound, strict=True))
        return len(by_four & by_element)

    def _by_phase(self, chosen: Sequence[bool]) -> Sequence[Sequence[bool]]:
        """The loads of each phase that are chosen; none of them if `chosen` is empty."""
        rest = iter(chosen)
        return [[*islice(rest, len(elements.loads))] for elements in self.phases]

    def kernel(self, name: str, chosen: Sequence[bool]) -> PlanKernel:
        """The kernel with those loads of all phases that are chosen."""
        loads = self._by_phase(chosen)
        body: list[Stmt] = [array.zeroed() for array in self._registers.values()]
        for phase in self._phases:
            body += self._phase(phase, loads[phase])
        results = [*self._stores()]
        if results and (self._sharing.are_apart or self._sharing.team.lanes == 1):
            body += self._inside(results)
        elif results:
            body.append(self._fold(len(self._work.folds) - 1).first(self._inside(results)))
        outputs = [(f"y{k}", v, Access.OUT) for k, v in enumerate(self._stored)]
        return self._writer.finish(name, body, outputs)

    def _inside(self, body: Sequence[Stmt]) -> Sequence[Stmt]:
        """Does `body` if the thread has rows; their last group may have fewer than threads."""
        if not self._sharing.is_across:
            return body
        positions = self._writer.positions
        count = sizes.floor_divide(self._work.places[-2], self._sharing.rows)
        is_inside = c.apply(ops.LT, positions.expr(self._column), positions.size(count))
        return guarded(is_inside, body)

    @property
    def _stored(self) -> Sequence[Value]:
        if self._source is not None:
            return self._work.results
        if self._target is None:
            return self._work.writes
        return (self._target, *self._work.writes[len(self._work.results) :])

    # -- registers -----------------------------------------------------------------------------

    @cached_property
    def _registers(self) -> Mapping[Value, ThreadArray]:
        """The thread's elements of values that later phases need again."""
        count = max(1, self._sharing.registers) * self._places.count
        return {
            value: ThreadArray(self._writer, f"held{place}", value.element, count)
            for place, value in enumerate(self._work.first_phase)
        }

    def _at(self, k: int) -> Position:
        """The place of element `k` of a step in registers."""
        register = self._writer.positions.of(c.variable(REGISTER, INT))
        return add(times(register, self._places.count), constant(k))

    def _held(self, value: Value, k: int) -> Expr:
        return self._registers[value].get(self._at(k))

    def _hold(self, value: Value, own: Sequence[Expr]) -> Iterator[Stmt]:
        for k, element in enumerate(own):
            yield self._registers[value].put(self._at(k), element)

    # -- phases --------------------------------------------------------------------------------

    def _phase(self, phase: int, chosen: Sequence[bool]) -> Iterator[Stmt]:
        """Visits the elements of a row, and folds them over the team if the phase does."""
        folds = self._work.folds
        loop = self._inside([*self._loop(phase, chosen)])
        if phase == len(folds):
            yield from loop
            return
        node = folds[phase]
        totals = self._totals[node.results[0]]
        for total in totals:
            yield assigned(total, neutral_of(node))
        yield from loop
        for_all = [*self._phases][-1] > phase
        if not self._sharing.are_apart:
            yield from self._fold(phase).statements(for_all=for_all)
        if self._target is None:
            for k, total in enumerate(totals):
                yield from self._begun(node, total, k)

    def _fold(self, phase: int) -> TeamFold:
        """Folds the totals of a phase over the team."""
        node = self._work.folds[phase]
        return TeamFold(
            self._sharing.team,
            self._writer,
            self._totals[node.results[0]],
            lambda a, b: combined_elements(node, a, b),
            None if has_neutral(node) else self._steps.has_elements,
            self._lane,
        )

    def _begun(self, node: Reduction, total: nodes.Var, k: int) -> Iterator[Stmt]:
        """Combines the initial value of row `k` of the thread with its total."""
        for init in node.operands[1:]:
            at = self._places.of_row(init, k) if init.shape else ()
            written = self._written(init, at, f"{total.name}_")
            first = written.values[0]
            both = Assign(name=total.name, value=combined_elements(node, first, total))
            if not has_neutral(node):
                # A row without elements has no total.
                length = self._writer.positions.size(self._work.length)
                has_elements = c.apply(ops.GT, length, c.whole(0))
                alone = Assign(name=total.name, value=first)
                both = If(condition=has_elements, then=(both,), otherwise=(alone,))
            yield from self._inside([*written.body, both])

    def _loop(self, phase: int, chosen: Sequence[bool]) -> Iterator[Stmt]:
        """Visits the elements of a lane."""
        steps, lane = self._steps, self._lane
        if steps.are_unrolled:
            block = self._visit(self._block, phase, chosen, f"b{phase}_")
            yield from steps.unrolled(lane, block)
        if not steps.has_rest:
            return
        single = self._visit(self._single, phase, chosen, f"p{phase}_")
        if self._sharing.registers:
            yield steps.held(lane, single)
        elif self._sharing.blocks.is_rolled:
            yield self._rolled(phase, single)
        else:
            yield steps.rest(lane, single)

    def _rolled(self, phase: int, single: Sequence[Stmt]) -> Stmt:
        """Visits the elements of a lane by blocks, whose totals come before those of the lane."""
        node = self._work.folds[phase]
        total, of_block = self._totals[node.results[0]], self._totals_of_block(phase)
        before = [assigned(block, neutral_of(node)) for block in of_block]
        after = [
            Assign(name=all_.name, value=combined_elements(node, all_, block))
            for all_, block in zip(total, of_block, strict=True)
        ]
        return self._steps.rolled(self._lane, before, single, after)

    def _totals_of_block(self, phase: int) -> Sequence[nodes.Var]:
        """The variables onto which a step folds its elements."""
        node = self._work.folds[phase]
        if self._sharing.blocks.is_rolled:
            return self._variables(f"block_total{phase}", node)
        return self._totals[node.results[0]]

    def _visit(
        self, visited: _Visited, phase: int, chosen: Sequence[bool], prefix: str
    ) -> list[Stmt]:
        """The statements of a block of steps of a phase."""
        work, count = self._work, visited.places.count
        elements = visited.elements.of_phase(phase)
        fits = {*compress(self._single.elements.of_phase(phase).loads, chosen)}
        written = elements.written([sizes in fits for sizes in elements.loads], prefix)
        body = [*written.body]
        rest = iter(written.values)
        own = {value: [*islice(rest, count)] for value in visited.elements.values(phase)}
        if phase < len(work.folds):
            body += self._folded(phase, written.values[:count])
        for value, found in own.items():
            if work.first_phase.get(value) == phase:
                body += self._hold(value, found)
            if value in work.elements[phase] and value in work.stored:
                at_once = self._places.count
                for k in range(0, count, at_once):
                    places = [visited.places.element(value, j) for j in range(k, k + at_once)]
                    body += self._stores_at(value, places, found[k : k + at_once])
        return body

    def _folded(self, phase: int, values: Sequence[Expr]) -> Iterator[Stmt]:
        """Folds the elements of a step onto totals."""
        node, totals = self._work.folds[phase], self._totals_of_block(phase)
        first = self._writer.positions.expr(self._steps.first(self._lane))
        is_first = c.apply(ops.EQ, c.variable(STEP, INT), first)
        for k, total in enumerate(totals):
            own = values[k :: len(totals)]
            # Neighbours first: rounding errors of sums stay small.
            while len(own) > 1:
                pairs = zip(own[::2], own[1::2], strict=True)
                own = [combined_elements(node, *pair) for pair in pairs]
            (value,) = own
            fold = Assign(name=total.name, value=combined_elements(node, total, value))
            if has_neutral(node):
                yield fold
                continue
            begin = Assign(name=total.name, value=value)
            yield If(condition=is_first, then=(begin,), otherwise=(fold,))

    def _stores_at(
        self, value: Value, places: Sequence[Indices], own: Sequence[Expr]
    ) -> Iterator[Stmt]:
        """Stores elements of a value: at once where they are four adjacent ones."""
        name = f"y{self._stored.index(value)}"
        yield from stores_of(self._writer, name, value, places, own)

    # -- results -------------------------------------------------------------------------------

    def _stores(self) -> Iterator[Stmt]:
        """Stores the totals of a part, or what becomes of those of rows."""
        work, rows = self._work, range(self._sharing.rows)
        if self._target is not None:
            (totals,) = self._totals.values()
            shape = self._target.shape[:1]
            part = self._part
            if self._sharing.are_apart:
                part = add(times(part, self._sharing.team.lanes), self._lane)
            places = [(*self._places.in_shape(shape, k), part) for k in rows]
            yield from self._stores_at(self._target, places, totals)
            return
        for number_, value in enumerate(work.results):
            places = [self._places.of_row(value, k) for k in rows]
            written = [self._written(value, at, f"r{number_}_{k}_") for k, at in enumerate(places)]
            for one in written:
                yield from one.body
            yield from self._stores_at(value, places, [one.values[0] for one in written])

    def _written(self, value: Value, at: Indices, prefix: str) -> Written:
        """Computes an element of a value that has one for each row."""
        return self._writer.written([self._elements.of_row(value, at)], prefix)
