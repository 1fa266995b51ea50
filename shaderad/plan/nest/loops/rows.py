"""Reductions and scans of rows, as steps of a kernel that one workgroup runs.

A row is cut into chunks, so that all threads have work; further steps combine their totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT
from shaderad.plan.nest.loops.steps import THREADS, GroupWriter, cost_of_all
from shaderad.plan.nest.statements import counted
from shaderad.plan.positions import Indices, Position, add, constant, times
from shaderad.plan.reductions import Reduction, combined_elements, has_neutral, neutral_of
from shaderad.rules.arrays.scan_operators import combined

UNROLLED_COST = 2000
"""The cost, in additions, of elements that a sum of known length writes one after the other: reads
at constant positions take a sixth of the time."""

Element = Callable[[Position], tuple[Sequence[Stmt], Expr]]
"""Statements, and the element of a row at a position after them."""

Kept = Callable[[Position], Sequence[Stmt]]
"""Statements that keep the total of a row up to a position."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Elements of a row, from `first` up to `stop`."""

    element: Element
    first: Position
    stop: Expr
    length: Size


class _FoldedRows:
    """Writes the steps that fold rows.

    Args:
        writer: Of the kernel.
        x: The elements.
        combine: The operator.
    """

    def __init__(
        self, writer: GroupWriter, x: Value, combine: Callable[[Expr, Expr], Expr]
    ) -> None:
        self._writer, self._positions = writer, writer.positions
        self._x, self._combine = x, combine
        self._rows, self._length = x.shape[:-1], x.shape[-1]
        threads = sizes.symbol(THREADS)
        several = sizes.floor_divide(threads, sizes.maximum(1, sizes.product(self._rows)))
        several = sizes.maximum(1, sizes.minimum(several, self._length))
        # No chunk is empty, because functions have no neutral element.
        self._part = sizes.maximum(1, sizes.divide_up(self._length, several))
        count = sizes.divide_up(self._length, self._part)
        self._totals = Value(ArrayType(x.element, (*self._rows, count)))
        """The totals of chunks."""

    def _new_total(self) -> nodes.Var:
        return self._writer.local("total", self._x.element)

    def _element_of(self, x: Value, row: Sequence[Position]) -> Element:
        def element(k: Position) -> tuple[Sequence[Stmt], Expr]:
            written = self._writer.written([(x, (*row, k))])
            return written.body, written.values[0]

        return element

    def _row(self, length: Size, element: Element) -> _Run:
        """All elements of a row."""
        return _Run(element, Position(), self._positions.size(length), length)

    def _chunk(self, chunk: Position, element: Element) -> _Run:
        """The elements of a chunk."""
        first = times(chunk, self._part)
        end = self._positions.expr(add(first, constant(self._part)))
        stop = c.apply(ops.MIN, end, self._positions.size(self._length))
        return _Run(element, first, stop, self._part)

    def _fold_chunks(
        self, element_of: Callable[[Sequence[Position]], Element], neutral: Expr | None
    ) -> None:
        """Adds the step that stores the totals of chunks."""

        def total_of_chunk(at: Indices) -> list[Stmt]:
            *row, chunk = at
            total = self._new_total()
            body = self._fold(total, self._chunk(chunk, element_of(row)), neutral)
            return [*body, *self._stored(self._totals, at, total)]

        self._writer.each(self._totals.shape, total_of_chunk, sizes.product(self._x.shape))

    def _stored(self, v: Value, at: Indices, element: Expr) -> list[Stmt]:
        return self._writer.stored_at({v: self._writer.stored(v)}, at, [element])

    def _fold(
        self,
        total: nodes.Var,
        run: _Run,
        start: Expr | None = None,
        *,
        begin: Callable[[Expr], list[Stmt]] | None = None,
        kept: Kept = lambda _: (),
    ) -> list[Stmt]:
        """Combines `start` and the elements of a run in order.

        Args:
            total: The variable that holds the result.
            run: The elements, at least one where there is no `start`.
            start: What comes before them.
            begin: Sets `total`, without a `start`, from the first element.
            kept: What is done with each total, by the position of its last element.
        """
        body: list[Stmt] = []
        first = run.first
        if start is None:
            before, value = run.element(first)
            begun = begin(value) if begin else [Assign(name=total.name, value=value)]
            body += [*before, *begun, *kept(first)]
            first = add(first, constant(1))
        else:
            body.append(Assign(name=total.name, value=start))
        k = self._writer.local("k", INT)
        position, start_of_rest = self._positions.of(k), self._positions.expr(first)

        def again(position: Position) -> list[Stmt]:
            statements, value = run.element(position)
            whole = Assign(name=total.name, value=self._combine(total, value))
            return [*statements, whole, *kept(position)]

        with self._writer.folding(run.length):
            inner = again(position)
        rest = _constants(start_of_rest, run.stop)
        if rest is not None and len(rest) * cost_of_all(inner) <= UNROLLED_COST:
            return [*body, *(s for n in rest for s in again(constant(n)))]
        return [*body, counted(k, start_of_rest, run.stop, inner)]


class ReducedRows(_FoldedRows):
    """Reduces rows in chunks, whose totals a second step combines.

    Args:
        writer: Of the kernel.
        node: The reduction.
        results: The values to store: its result, or elementwise functions of that.
        others: Values of as many elements as its operand, which are stored with the elements.
    """

    def __init__(
        self,
        writer: GroupWriter,
        node: Reduction,
        results: Sequence[Value],
        others: Sequence[Value],
    ) -> None:
        super().__init__(writer, node.operands[0], partial(combined_elements, node))
        self._node, self._results = node, results
        self._neutral = neutral_of(node) if has_neutral(node) else None
        places = {v: writer.stored(v) for v in (*others, self._totals, *results)}
        self._others = {v: places[v] for v in others}

    def add(self) -> None:
        """Adds the steps."""
        count = self._positions.size(self._totals.shape[-1])
        known = c.number_of(count)
        if known is None:
            are_several = c.apply(ops.GT, count, c.whole(1))
            # The work is the same on both sides, and noted with the first.
            self._writer.choose(are_several, self._in_chunks, lambda: self._by_rows(0))
        elif known > 1:
            self._in_chunks()
        else:
            self._by_rows(sizes.product(self._x.shape))

    def _in_chunks(self) -> None:
        totals = self._totals

        def of_chunks(at: Indices) -> list[Stmt]:
            return self._result(at, self._row(totals.shape[-1], self._element_of(totals, at)))

        self._fold_chunks(self._elements_beside, self._neutral)
        self._writer.each(self._rows, of_chunks, sizes.product(totals.shape))

    def _by_rows(self, element_count: Size) -> None:
        def of_row(at: Indices) -> list[Stmt]:
            return self._result(at, self._row(self._length, self._elements_beside(at)))

        self._writer.each(self._rows, of_row, element_count)

    def _result(self, at: Indices, run: _Run) -> list[Stmt]:
        """Folds a run onto the initial value of a row, and stores the results."""
        writer, init = self._writer, self._node.operands[1:]
        start = writer.written([(v, at) for v in init])
        total = self._new_total()
        body = self._fold(total, run, start.values[0] if init else self._neutral)
        if not init and self._neutral is None:
            some = c.apply(ops.GT, run.stop, c.whole(0))
            nothing = Assign(name=total.name, value=neutral_of(self._node))
            body = [If(condition=some, then=tuple(body), otherwise=(nothing,))]
        bound: dict[Value, Expr] = {self._node.result: total}
        for v in self._results:
            place = self._positions.reshaped(at, self._rows, v.shape)
            body += writer.stores({v: writer.stored(v)}, place, bound)
        return [*start.body, *body]

    def _elements_beside(self, row: Sequence[Position]) -> Element:
        """The elements of a row, with which those of other values are stored."""
        writer, others = self._writer, self._others

        def element(k: Position) -> tuple[Sequence[Stmt], Expr]:
            inner = (*row, k)
            at = [self._positions.reshaped(inner, self._x.shape, v.shape) for v in others]
            requests = [(self._x, inner), *zip(others, at, strict=True)]
            written = writer.written(requests, {}, others)
            value, *rest = written.values
            stores = (
                writer.stored_at({v: others[v]}, place, [element])
                for v, place, element in zip(others, at, rest, strict=True)
            )
            return [*written.body, *chain.from_iterable(stores)], value

        return element


class ScannedRows(_FoldedRows):
    """Scans rows: totals of chunks, of all chunks up to each one, then the elements.

    Args:
        writer: Of the kernel.
        node: The scan.
    """

    def __init__(self, writer: GroupWriter, node: arrays.Scan) -> None:
        super().__init__(writer, node.operands[0], partial(combined, node.op))
        self._prefixes, self._result = Value(self._totals.type), node.result
        for v in (self._totals, self._prefixes, self._result):
            writer.stored(v)

    def add(self) -> None:
        """Adds the steps."""
        totals = self._totals
        self._fold_chunks(partial(self._element_of, self._x), None)
        self._writer.each(self._rows, self._prefixes_of_row, sizes.product(totals.shape))
        self._writer.each(totals.shape, self._scan_chunk, sizes.product(self._x.shape))

    def _keep(self, v: Value, row: Sequence[Position], total: nodes.Var) -> Kept:
        return lambda k: self._stored(v, (*row, k), total)

    def _prefixes_of_row(self, at: Indices) -> list[Stmt]:
        total, totals = self._new_total(), self._totals
        run = self._row(totals.shape[-1], self._element_of(totals, at))
        return self._fold(total, run, kept=self._keep(self._prefixes, at, total))

    def _scan_chunk(self, at: Indices) -> list[Stmt]:
        *row, chunk = at
        total = self._new_total()
        before = self._writer.written([(self._prefixes, (*row, add(chunk, constant(-1))))])
        run = self._chunk(chunk, self._element_of(self._x, row))

        def begin(first: Expr) -> list[Stmt]:
            is_later = c.apply(ops.GT, self._positions.expr(chunk), c.whole(0))
            whole = self._combine(before.values[0], first)
            later = (*before.body, Assign(name=total.name, value=whole))
            return [
                Assign(name=total.name, value=first),
                If(condition=is_later, then=later, otherwise=()),
            ]

        return self._fold(total, run, begin=begin, kept=self._keep(self._result, row, total))


def _constants(start: Expr, stop: Expr) -> range | None:
    """The numbers from `start` to `stop`; `None` where these are none."""
    first, last = c.number_of(start), c.number_of(stop)
    return None if first is None or last is None else range(int(first), int(last))
