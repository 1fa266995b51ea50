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
from shaderad.plan.nest.loops.memory import counted
from shaderad.plan.nest.loops.steps import THREADS, GroupWriter, Places, cost_of_all
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


class GroupRows:
    """Writes the steps of reductions and scans."""

    def __init__(self, writer: GroupWriter) -> None:
        self._writer = writer
        self._positions = writer.positions

    def reduce(self, node: Reduction, results: Sequence[Value], others: Sequence[Value]) -> None:
        """Reduces rows in chunks, whose totals a second step combines.

        Args:
            node: The reduction.
            results: The values to store: its result, or elementwise functions of that.
            others: Values of as many elements as its operand, which are stored with the elements.
        """
        writer, (x, *init) = self._writer, node.operands
        rows, length = x.shape[:-1], x.shape[-1]
        part, chunks = self._chunks(x)
        combine, empty = partial(combined_elements, node), neutral_of(node)
        neutral = empty if has_neutral(node) else None
        places = {v: writer.stored(v) for v in (*others, chunks, *results)}
        element_of = self._elements_beside(x, {v: places[v] for v in others})

        def total_of_chunk(at: Indices) -> list[Stmt]:
            *row, chunk = at
            total = writer.local("total", x.element)
            run = self._part_of(element_of(row), chunk, part, length)
            body = self._fold(combine, total, run, neutral)
            return [*body, *writer.stored_at({chunks: places[chunks]}, at, [total])]

        def result_of(at: Indices, run: _Run) -> list[Stmt]:
            start = writer.written([(v, at) for v in init])
            total = writer.local("total", x.element)
            body = self._fold(combine, total, run, start.values[0] if init else neutral)
            if not init and neutral is None:
                some = c.apply(ops.GT, run.stop, c.whole(0))
                nothing = Assign(name=total.name, value=empty)
                body = [If(condition=some, then=tuple(body), otherwise=(nothing,))]
            bound: dict[Value, Expr] = {node.result: total}
            stores = (
                writer.stores({v: places[v]}, self._positions.reshaped(at, rows, v.shape), bound)
                for v in results
            )
            return [*start.body, *body, *chain.from_iterable(stores)]

        def of_chunks(at: Indices) -> list[Stmt]:
            return result_of(
                at, _Run(self._element_of(chunks, at), Position(), count, chunks.shape[-1])
            )

        def of_row(at: Indices) -> list[Stmt]:
            end = self._positions.size(length)
            return result_of(at, _Run(element_of(at), Position(), end, length))

        def in_chunks() -> None:
            writer.each(chunks.shape, total_of_chunk, sizes.product(x.shape))
            writer.each(rows, of_chunks, sizes.product(chunks.shape))

        count = self._length(chunks)
        known = c.number_of(count)
        if known is not None:
            in_chunks() if known > 1 else writer.each(rows, of_row, sizes.product(x.shape))
            return
        are_several = c.apply(ops.GT, count, c.whole(1))
        # The work is the same on both sides, and noted with the first.
        writer.choose(are_several, in_chunks, lambda: writer.each(rows, of_row, 0))

    def scan(self, node: arrays.Scan) -> None:
        """Scans rows: totals of chunks, of all chunks up to each one, then the elements."""
        writer, (x,) = self._writer, node.operands
        part, chunks = self._chunks(x)
        prefixes = Value(chunks.type)
        places = {v: writer.stored(v) for v in (chunks, prefixes, node.result)}
        combine = partial(combined, node.op)

        def total_of_chunk(at: Indices) -> list[Stmt]:
            *row, chunk = at
            total = writer.local("total", x.element)
            run = self._part_of(self._element_of(x, row), chunk, part, x.shape[-1])
            body = self._fold(combine, total, run)
            return [*body, *writer.stored_at({chunks: places[chunks]}, at, [total])]

        def keep(v: Value, row: Sequence[Position], total: nodes.Var) -> Kept:
            return lambda k: writer.stored_at({v: places[v]}, (*row, k), [total])

        def prefixes_of_row(at: Indices) -> list[Stmt]:
            total = writer.local("total", x.element)
            run = _Run(
                self._element_of(chunks, at), Position(), self._length(chunks), chunks.shape[-1]
            )
            return self._fold(combine, total, run, kept=keep(prefixes, at, total))

        def elements(at: Indices) -> list[Stmt]:
            *row, chunk = at
            total = writer.local("total", x.element)
            before = writer.written([(prefixes, (*row, add(chunk, constant(-1))))])
            run = self._part_of(self._element_of(x, row), chunk, part, x.shape[-1])

            def begin(first: Expr) -> list[Stmt]:
                is_later = c.apply(ops.GT, self._positions.expr(chunk), c.whole(0))
                whole = combine(before.values[0], first)
                later = (*before.body, Assign(name=total.name, value=whole))
                return [
                    Assign(name=total.name, value=first),
                    If(condition=is_later, then=later, otherwise=()),
                ]

            return self._fold(combine, total, run, begin=begin, kept=keep(node.result, row, total))

        writer.each(chunks.shape, total_of_chunk, sizes.product(x.shape))
        writer.each(x.shape[:-1], prefixes_of_row, sizes.product(chunks.shape))
        writer.each(chunks.shape, elements, sizes.product(x.shape))

    # -- elements ------------------------------------------------------------------------------

    def _elements_beside(self, x: Value, stored: Places) -> Callable[[Sequence[Position]], Element]:
        """The elements of each row of `x`, with which those of other values are stored."""
        writer, others = self._writer, [*stored]

        def element_of(row: Sequence[Position]) -> Element:
            def element(k: Position) -> tuple[Sequence[Stmt], Expr]:
                inner = (*row, k)
                at = [self._positions.reshaped(inner, x.shape, v.shape) for v in others]
                requests = [(x, inner), *zip(others, at, strict=True)]
                written = writer.written(requests, {}, stored)
                value, *rest = written.values
                stores = (
                    writer.stored_at({v: stored[v]}, place, [element])
                    for v, place, element in zip(others, at, rest, strict=True)
                )
                return [*written.body, *chain.from_iterable(stores)], value

            return element

        return element_of

    def _chunks(self, x: Value) -> tuple[Size, Value]:
        """Elements of a chunk of the rows of `x`, and a value of one element a chunk.

        No chunk is empty, because functions have no neutral element.
        """
        rows, length = x.shape[:-1], x.shape[-1]
        threads = sizes.symbol(THREADS)
        several = sizes.floor_divide(threads, sizes.maximum(1, sizes.product(rows)))
        several = sizes.maximum(1, sizes.minimum(several, length))
        part = sizes.maximum(1, sizes.divide_up(length, several))
        return part, Value(ArrayType(x.element, (*rows, sizes.divide_up(length, part))))

    def _part_of(self, element: Element, chunk: Position, part: Size, length: Size) -> _Run:
        first = times(chunk, part)
        end = self._positions.expr(add(first, constant(part)))
        return _Run(element, first, c.apply(ops.MIN, end, self._positions.size(length)), part)

    def _length(self, x: Value) -> Expr:
        return self._positions.size(x.shape[-1])

    def _element_of(self, x: Value, row: Sequence[Position]) -> Element:
        def element(k: Position) -> tuple[Sequence[Stmt], Expr]:
            written = self._writer.written([(x, (*row, k))])
            return written.body, written.values[0]

        return element

    def _fold(
        self,
        combine: Callable[[Expr, Expr], Expr],
        total: nodes.Var,
        run: _Run,
        start: Expr | None = None,
        *,
        begin: Callable[[Expr], list[Stmt]] | None = None,
        kept: Kept | None = None,
    ) -> list[Stmt]:
        """Combines `start` and the elements of a run in order.

        Args:
            combine: The operator.
            total: The variable that holds the result.
            run: The elements, at least one where there is no `start`.
            start: What comes before them.
            begin: Sets `total`, without a `start`, from the first element.
            kept: What is done with each total, by the position of its last element.
        """
        body: list[Stmt] = []
        first, kept = run.first, kept or _keep_nothing
        if start is None:
            before, value = run.element(first)
            body += before
            body += begin(value) if begin else [Assign(name=total.name, value=value)]
            body += kept(first)
            first = add(first, constant(1))
        else:
            body.append(Assign(name=total.name, value=start))
        k = self._writer.local("k", INT)
        position, start_of_rest = self._positions.of(k), self._positions.expr(first)

        def again(position: Position) -> list[Stmt]:
            statements, value = run.element(position)
            whole = Assign(name=total.name, value=combine(total, value))
            return [*statements, whole, *kept(position)]

        with self._writer.folding(run.length):
            inner = again(position)
        rest = _constants(start_of_rest, run.stop)
        if rest is not None and len(rest) * cost_of_all(inner) <= UNROLLED_COST:
            return [*body, *(s for n in rest for s in again(constant(n)))]
        return [*body, counted(k, start_of_rest, run.stop, inner)]


def _constants(start: Expr, stop: Expr) -> range | None:
    """The numbers from `start` to `stop`; `None` where these are none."""
    first, last = c.number_of(start), c.number_of(stop)
    return None if first is None or last is None else range(int(first), int(last))


def _keep_nothing(_: Position) -> Sequence[Stmt]:
    return ()
