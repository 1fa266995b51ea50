"""The elements that a thread computes of a row, phase by phase.

What a thread has from an earlier phase, it takes from registers: totals, and elements at the places
that it visits. Invariant: a row needs no total of another row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from shaderad.ir import composing as c
from shaderad.ir import sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape
from shaderad.ir.types import INT
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, Writer, number_writer
from shaderad.plan.nest.row_work import RowWork
from shaderad.plan.nest.vectors import ThreadElements
from shaderad.plan.positions import Indices, Position, add, constant, number, times

STEP = "step"
"""The local variable with the number of the step in the row."""
Held = Callable[[Value, int], Expr]
"""Gives element `k` of a step from the registers that hold a value."""


class NotRowwiseError(Exception):
    """An element that depends on the total of another row, or on elements that others hold."""


class RowPlaces:
    """The places that a thread visits in a block of steps.

    In each step these are several places of one row, or one of several rows.

    Args:
        shape: The axes of rows, and their length.
        writer: Of the kernel.
        rows: The thread's rows, by their indices.
        width: Adjacent elements of a step; 1 if there are several rows.
        steps: The numbers of the steps of a block, relative to the first.
    """

    def __init__(
        self,
        shape: Shape,
        writer: Writer,
        rows: Sequence[Indices],
        width: int = 1,
        steps: Sequence[int] = (0,),
    ) -> None:
        self.rows, self._writer, self._width = rows, writer, width
        self._shape, self._size = shape, sizes.product(shape)
        self.step = writer.positions.of(c.variable(STEP, INT))
        self._steps, self._of_step = steps, max(width, len(rows))
        self.count = self._of_step * len(steps)
        """The elements of a block."""

    def element(self, value: Value, k: int) -> Indices:
        """The indices in `value` of element `k` of those of a block."""
        number_, k = divmod(k, self._of_step)
        row = self.rows[k if self._width == 1 else 0]
        step = add(self.step, constant(self._steps[number_]))
        at = add(times(step, self._width), constant(k if self._width > 1 else 0))
        at = Position() if self._shape[-1] == 1 else at
        return self._writer.positions.reshaped((*row, at), self._shape, value.shape)

    def of_row(self, value: Value, k: int) -> Indices:
        """The indices in `value`, which has an element for each row, of that for row `k`."""
        return self.in_shape(value.shape, k)

    def in_shape(self, shape: Shape, k: int) -> Indices:
        """The indices of row `k` in rows of this shape."""
        return self._writer.positions.reshaped(self.rows[k], self._shape[:-1], shape)

    def component(self, value: Value, at: Position) -> int | None:
        """The place in a step of element number `at`; `None` if no step visits it there."""
        if sizes.product(value.shape) != self._size:
            return None
        own = (number(self.element(value, k), value.shape) for k in range(self.count))
        return next((k for k, place in enumerate(own) if place == at), None)

    def row(self, value: Value, at: Indices) -> int | None:
        """The row of the thread whose element `at` is in `value`; `None` if it is none of them."""
        own = (self.of_row(value, k) for k in range(len(self.rows)))
        place = number(at, value.shape)
        return next((k for k, row in enumerate(own) if number(row, value.shape) == place), None)


class RowElements:
    """The elements of all phases.

    Args:
        work: The work.
        writer: Of the kernel.
        places: Those that the thread visits.
        totals: Variables for the totals of `work.folds`, for each row of the thread.
        held: Gives what registers hold.
        source: A value whose elements are folded in place of those of the only reduction.
    """

    def __init__(
        self,
        work: RowWork,
        writer: Writer,
        places: RowPlaces,
        totals: Mapping[Value, Sequence[Expr]],
        held: Held,
        source: Value | None = None,
    ) -> None:
        self._work, self._places = work, places
        self._totals, self._held = totals, held
        self._writer, self._source = writer, source
        self.of_phase = cache(self._of_phase)

    def _of_phase(self, phase: int) -> ThreadElements:
        """The elements of a phase: those of a step of each of its values."""
        values, places = self.values(phase), self._places
        return ThreadElements(
            self._writer,
            lambda v: self._is_there(v, phase),
            ((v, places.element(v, k)) for v in values for k in range(places.count)),
            lambda v, at: self._own(v, at, phase),
        )

    def values(self, phase: int) -> list[Value]:
        """The values whose elements are computed in a phase: those of its reduction first."""
        work = self._work
        if self._source is not None:
            return [self._source]
        folded = [node.operands[0] for node in work.folds[phase : phase + 1]]
        inner = work.elements[phase]
        held = (v for v, at in work.first_phase.items() if at == phase and v not in inner)
        return [*folded, *inner, *held]

    def _is_there(self, value: Value, phase: int) -> bool:
        """True if a phase need not compute `value`."""
        is_earlier = self._work.first_phase.get(value, phase) < phase
        is_read = value in self._work.reads or value is self._source
        return is_read or value in self._totals or is_earlier

    def of_row(self, value: Value, at: Indices) -> Expr:
        """An element of a value that has one for each row, after the last phase.

        Raises:
            NotRowwiseError: It depends on the total of another row.
        """

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            total = self.total(value, at)
            return self._writer.read(value, at, view) if total is None else total

        available = self._totals.keys() | self._work.reads
        return Elements(self._writer.positions, available.__contains__, read).at(value, at)

    def total(self, value: Value, at: Indices) -> Expr | None:
        """The total of the row if `value` holds totals.

        Raises:
            NotRowwiseError: The total at `at` is that of another row.
        """
        if value not in self._totals:
            return None
        row = self._places.row(value, at)
        if row is None:
            raise NotRowwiseError
        return self._totals[value][row]

    def _own(self, value: Value, at: Indices, phase: int) -> Expr | None:
        """The element of a value if the thread has it already.

        Raises:
            NotRowwiseError: Other threads have it.
        """
        total = self.total(value, at)
        if total is not None:
            return total
        if self._work.first_phase.get(value, phase) == phase:
            return None
        k = self._places.component(value, number(at, value.shape))
        if k is not None:
            return self._held(value, k)
        if value in self._work.reads:
            return None
        raise NotRowwiseError


def with_registers(work: RowWork) -> RowWork:
    """`work` with the values that threads should hold, and without elements that nobody needs.

    Raises:
        NotRowwiseError: A row depends on others.
    """
    inner = {v: phase for phase, values in enumerate(work.elements) for v in values}
    elements, later = [*work.elements], set[Value]()
    phases_by_read: defaultdict[Value, set[int]] = defaultdict(set)
    for phase in reversed(range(len(elements))):
        elements[phase] = tuple(v for v in elements[phase] if v in work.stored or v in later)
        trial = replace(work, elements=tuple(elements), first_phase=inner)
        for v in _read_again(trial, phase):
            phases_by_read[v].add(phase)
            later.update({v} & inner.keys())
    _check_rows(work)
    again = {v: min(phases) for v, phases in phases_by_read.items() if len(phases) > 1}
    kept = {v: phase for v, phase in inner.items() if v in later}
    return replace(work, elements=tuple(elements), first_phase=again | kept)


def _check_rows(work: RowWork) -> None:
    """Checks that what has an element for each row depends on the totals of that row.

    Raises:
        NotRowwiseError: It depends on others.
    """
    elements, places = _trial(work, lambda value, _: c.variable("held", value.element))
    inits = (init for node in work.folds for init in node.operands[1:] if init.shape)
    for value in (*work.results, *inits):
        elements.of_row(value, places.of_row(value, 0))


def _trial(work: RowWork, held: Held) -> tuple[RowElements, RowPlaces]:
    """The elements and places of a kernel that is not written."""
    writer = number_writer((work.row_count, 1), work.reads.__contains__)
    places = RowPlaces((work.row_count, work.length), writer, [writer.own[:1]], WIDTH)
    totals = {v: [c.variable("total", v.element)] for node in work.folds for v in node.results}
    return RowElements(work, writer, places, totals, held), places


def _read_again(work: RowWork, phase: int) -> set[Value]:
    """The values of which a phase reads what the thread may hold from earlier phases."""
    values: set[Value] = set()

    def held(value: Value, _: int) -> Expr:
        values.add(value)
        return c.variable("held", value.element)

    elements, places = _trial(work, held)
    reads = elements.of_phase(phase).reads
    own = (v for v, at, _ in reads if places.component(v, at) is not None)
    return {*values, *own}
