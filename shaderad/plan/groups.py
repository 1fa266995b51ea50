"""Loops over small arrays -> one kernel that a single workgroup runs, with barriers between steps.

A dispatch costs more than a step over few elements. The threads of one workgroup share the elements
of each step, meet at a barrier, and go on. Loops run on the device, and those inside of them, too;
a carry has an array of two halves, which trade places. Whether this kernel runs, or a dispatch a
step, is decided when sizes are known. Invariant: both compute the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, Access, scalars
from shaderad.plan.group_arrays import GroupDecisions, NoGroup, Region
from shaderad.plan.group_memory import counted, decide
from shaderad.plan.group_tiles import tiled
from shaderad.plan.group_writer import THREADS, GroupWriter, Places, cost_of_all
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.positions import Indices, Position, add, constant, times
from shaderad.plan.reductions import (
    ReduceFields,
    Reduction,
    combined_elements,
    has_neutral,
    neutral_of,
)
from shaderad.plan.scatters import guarded
from shaderad.plan.steps import (
    Effort,
    GroupLoop,
    Repeat,
    RunGroup,
    RunKernel,
    RunPass,
    RunTiles,
    Step,
)
from shaderad.plan.storage import is_fused_node
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.scan_operators import combined

STEP_COST = 500_000
"""The cost of a step, in additions, up to which one workgroup takes less time than a dispatch."""
KERNEL_COST = 10**10
"""The cost of a whole kernel: about a second, where systems reset a device that takes some."""
FEWEST_THREADS, MOST_THREADS = 32, 256
"""Every device takes so many; on processors each costs time at a barrier."""
UNROLLED_COST = 2000
"""The cost, in additions, of elements that a sum of known length writes one after the other: reads
at constant positions take a sixth of the time."""
SCRATCH_BUFFERS = 2
"""One of scratch arrays that threads store to, one of those that they add to."""


def group_loop(step: Repeat, is_stored: IsStored, buffer_limit: int) -> GroupLoop:
    """The kernels that one workgroup may run in place of a loop."""
    return GroupLoop(
        partial(_effort, step, is_stored, buffer_limit), partial(_kernel, step, is_stored)
    )


def _effort(step: Repeat, is_stored: IsStored, buffer_limit: int) -> Effort | None:
    """The work of the kernel for all sizes; `None` where one workgroup cannot run the loop."""
    writer = Writer((sizes.symbol(THREADS),), is_stored, None)
    group = GroupWriter(writer, is_stored, GroupDecisions())
    try:
        _Group(group).outer_loop(step, _results(step))
    except NoGroup:
        return None
    bound = writer.read_count + len(step.node.results) + SCRATCH_BUFFERS
    return group.effort() if bound <= buffer_limit else None


def _kernel(
    step: Repeat, is_stored: IsStored, known: Mapping[str, int], group_bytes: int
) -> RunGroup:
    """The kernel that runs a loop.

    Args:
        step: The loop.
        is_stored: True for values that have memory before the loop.
        known: Symbols of sizes that are numbers in the kernel; its threads among them.
        group_bytes: The memory that a group has for arrays between steps.
    """
    results, decisions = _results(step), None

    def written(writer: Writer, decisions: GroupDecisions) -> GroupWriter:
        group = GroupWriter(writer, is_stored, decisions)
        _Group(group).outer_loop(step, results)
        return group

    def body(writer: Writer) -> Sequence[Stmt]:
        nonlocal decisions
        if decisions is None:
            group = written(writer, GroupDecisions())
            tiles = tiled(group.facts, known[THREADS])
            if tiles is not None:
                group = written(writer, GroupDecisions(tiled=tiles))
            decide(group.arrays.uses.values(), group_bytes)
            decisions = GroupDecisions(group.arrays.uses, tiles)
        return written(writer, decisions).finished()

    outputs = [(name, v, Access.OUT) for v, name in results.items()]
    return RunGroup(
        write_kernel("loop_in_group", (known[THREADS],), is_stored, body, outputs, known)
    )


def _results(step: Repeat) -> dict[Value, str]:
    """The array of each result of a loop."""
    return {v: f"y{k}" for k, v in enumerate(step.node.results)}


def threads_of(effort: Effort, known: Mapping[str, int]) -> int:
    """The threads of the workgroup that runs a loop; 0 if a dispatch a step takes less time."""
    known = {**known, THREADS: FEWEST_THREADS}
    if not sizes.symbols(effort.cost) <= known.keys():
        return 0
    step_count = sizes.evaluate(effort.step_count, known)
    if sizes.evaluate(effort.cost, known) > min(KERNEL_COST, STEP_COST * step_count):
        return 0
    threads, element_count = FEWEST_THREADS, sizes.evaluate(effort.element_count, known)
    while threads < MOST_THREADS and 2 * threads * step_count < element_count:
        threads *= 2
    return threads


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


class _Group:
    """The steps of one kernel, while they are written."""

    def __init__(self, writer: GroupWriter) -> None:
        self._writer = writer
        self._positions = writer.positions

    # -- loops -----------------------------------------------------------------------------

    def outer_loop(self, step: Repeat, array_by_result: Mapping[Value, str]) -> None:
        """The loop that the kernel is."""
        carry_count = step.node.carry_count
        self._loop(step, {v: array_by_result[v] for v in step.node.results[carry_count:]})
        for v in step.node.results[:carry_count]:
            self._writer.copy(v, Region(array_by_result[v]))

    def _loop(self, step: Repeat, array_by_rows: Mapping[Value, str]) -> None:
        """A loop; arrays for its rows that are not given are scratch."""
        writer, node, inputs = self._writer, step.node, step.body.inputs
        count = node.carry_count
        # The number of iterations may depend on the size of carries, of which there may be many.
        carried = [extent for v in inputs[:count] for extent in v.shape]
        writer.count_symbols |= sizes.symbols(node.count).difference(*map(sizes.symbols, carried))
        writer.outer |= zip(inputs[count:], step.reads[count:], strict=True)
        side, counter = writer.local("side", INT), writer.local("step", INT)
        following = [
            self._carry(v, first, result, side)
            for v, first, result in zip(inputs, step.reads[:count], node.results, strict=False)
        ]
        writer.body.append(Assign(name=side.name, value=c.whole(0)))
        iteration = self._positions.of(counter)
        if node.is_reversed:
            iteration = add(constant(sizes.subtract(node.count, 1)), times(iteration, -1))
        self._positions.define(step.symbol, self._positions.expr(iteration))
        carries = [*zip((v for v, _ in step.body.outputs), following, strict=False)]
        # One value may be what several carries become.
        writer.place_of |= reversed(carries)
        self._keep_rows(step, iteration, array_by_rows)
        writer.meet()
        with writer.repeated(node.count) as body:
            self._iterate(step, carries)
            other = c.apply(ops.SUB, c.whole(1), side)
            writer.body.append(Assign(name=side.name, value=other))
        stop = self._positions.size(node.count)
        writer.body.append(counted(counter, c.whole(0), stop, body))

    def _carry(self, v: Value, first: Value, result: Value, side: nodes.Var) -> Region:
        """Gives a carry an array of two halves; returns the one that an iteration writes."""
        writer, size = self._writer, sizes.product(result.shape)
        array = writer.arrays.scratch(result.element, sizes.multiply(2, size)).array
        writer.copy(first, Region(array))
        now = times(self._positions.of(side), size)
        writer.place_of |= dict.fromkeys((v, result), Region(array, now, "now"))
        return Region(array, add(constant(size), times(now, -1)), "next")

    def _keep_rows(
        self, step: Repeat, iteration: Position, array_by_rows: Mapping[Value, str]
    ) -> None:
        writer = self._writer
        for row in step.rows:
            array = array_by_rows.get(row.target, "")
            if not array:
                place = writer.arrays.scratch(row.target.element, sizes.product(row.target.shape))
                writer.place_of[row.target] = place
                array = place.array
            start = times(iteration, sizes.product(row.row.shape))
            writer.rows.setdefault(row.row, []).append(Region(array, start))

    def _iterate(self, step: Repeat, carries: Iterable[tuple[Value, Region]]) -> None:
        writer = self._writer
        stored = {v for inner in step.body.steps for v in inner.writes}
        self._copy_rows(v for v in dict.fromkeys(row.row for row in step.rows) if v not in stored)
        for inner in step.body.steps:
            self._step(inner)
        for v, place in carries:
            if writer.place_of[v] != place:
                writer.copy(v, place)
        for _, place in carries:
            writer.body += writer.arrays.next_is_now(place.array)
        writer.meet()

    def _copy_rows(self, values: Iterable[Value]) -> None:
        """Copies values, where they are rows of iterations, to the results of loops."""
        for v in values:
            for place in self._writer.rows.get(v, ()):
                self._writer.copy(v, place)

    # -- steps -----------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        match step:
            case Repeat():
                self._loop(step, {})
                self._copy_rows(step.writes)
            case RunKernel(work=work) if all(map(_is_elementwise, step.writes)):
                self._writer.compute([v for _, v in work.writes])
            case RunKernel():
                self._scatter(step.writes[0])
            case RunPass(node=arrays.Reduce() | ReduceFields() as node):
                self._reduce(node, step.results, [v for _, v in step.producer.writes[1:]])
            case RunPass(node=arrays.Scan() as node):
                self._scan(node)
                if step.results != node.results:
                    self._writer.compute(step.results)
            case RunTiles(total=Value(producer=arrays.Reduce() as node)):
                self._reduce(node, step.writes, [])
            case _:
                raise NoGroup

    def _scatter(self, result: Value) -> None:
        """Adds floats by index array, atomically, to an array that was filled before."""
        writer, node = self._writer, result.producer
        is_float = all(s == FLOAT for s in scalars(result.element))
        if not isinstance(node, arrays.ScatterAdd) or not is_float:
            raise NoGroup
        base = node.operands[0]
        sums = writer.arrays.scratch(result.element, sizes.product(base.shape))

        def fill(at: Indices) -> list[Stmt]:
            places = {base: [sums]}
            if b.is_zero(base):
                return writer.stored_at(places, at, [c.zero(base.element)])
            return writer.stores(places, at, is_copy=True)

        def add_values(at: Indices) -> list[Stmt]:
            count, width = len(node.operands[2].shape), len(node.parts[0])
            written = writer.written(
                [
                    (v, at if k == 0 else at[:count])
                    for part in node.parts
                    for k, v in enumerate(part)
                ]
            )
            body: list[Stmt] = [*written.body]
            for start in range(0, len(written.values), width):
                value, *found = written.values[start : start + width]
                inner = (*map(self._positions.of, found), *at[count:])
                place = writer.arrays.sum_index(sums, base.shape, inner)
                adding = nodes.Accumulate(buffer=sums.array, indices=(place,), value=value)
                body.append(guarded(self._positions.size, found, base.shape, adding))
            return body

        writer.each(base.shape, fill)
        writer.each(node.operands[1].shape, add_values)
        targets = [*writer.rows.get(result, ())]
        if result in writer.place_of:
            targets.append(writer.place_of[result])
        writer.place_of[result] = sums
        for target in targets:
            writer.copy(result, target)

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

    def _reduce(self, node: Reduction, results: Sequence[Value], others: Sequence[Value]) -> None:
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

    def _scan(self, node: arrays.Scan) -> None:
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

    # -- rows ------------------------------------------------------------------------------

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


def _is_elementwise(v: Value) -> bool:
    return v.producer is not None and is_fused_node(v.producer)
