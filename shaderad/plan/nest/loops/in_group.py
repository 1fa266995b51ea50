"""Loops over small arrays -> one kernel that a single workgroup runs, with barriers between steps.

A dispatch costs more than a step over few elements. The threads of one workgroup share the elements
of each step, meet at a barrier, and go on. Loops run on the device, and those inside of them, too;
a carry has an array of two halves, which trade places. Whether this kernel runs, or a dispatch a
step, is decided when sizes are known. Invariant: both compute the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Assign, Stmt
from shaderad.ir.types import FLOAT, INT, Access, scalars
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.nest.loops.arrays import GroupDecisions, NoGroup, Region
from shaderad.plan.nest.loops.in_thread import iteration_of
from shaderad.plan.nest.loops.placement import decide
from shaderad.plan.nest.loops.rows import ReducedRows, ScannedRows
from shaderad.plan.nest.loops.steps import THREADS, GroupWriter
from shaderad.plan.nest.loops.tiles import tiled
from shaderad.plan.nest.statements import counted
from shaderad.plan.positions import Indices, Position, add, constant, times
from shaderad.plan.reductions import (
    ReduceFields,
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

KERNEL_COST = 10**10
"""The cost of a whole kernel: about a second, where systems reset a device that takes some."""
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


def threads_of(effort: Effort, known: Mapping[str, int], shape: LaunchShape) -> int:
    """The threads of the workgroup that runs a loop; 0 if a dispatch a step takes less time."""
    fewest, most = shape.loop_threads
    known = {**known, THREADS: fewest}
    if not sizes.symbols(effort.cost) <= known.keys():
        return 0
    step_count = sizes.evaluate(effort.step_count, known)
    if sizes.evaluate(effort.cost, known) > min(KERNEL_COST, shape.loop_step_cost * step_count):
        return 0
    threads, element_count = fewest, sizes.evaluate(effort.element_count, known)
    while threads < most and 2 * threads * step_count < element_count:
        threads *= 2
    return threads


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
        iteration = iteration_of(node, self._positions.of(counter))
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
            case RunKernel():
                elements = [v for v in step.writes if _is_elementwise(v)]
                if elements:
                    self._writer.compute(elements)
                for v in step.writes:
                    if v not in elements:
                        _add_at_indices(self._writer, v)
            case RunPass(node=arrays.Reduce() | ReduceFields() as node):
                others = [v for _, v in step.producer.writes[1:]]
                ReducedRows(self._writer, node, step.results, others).add()
            case RunPass(node=arrays.Scan() as node):
                ScannedRows(self._writer, node).add()
                if step.results != node.results:
                    self._writer.compute(step.results)
            case RunTiles():
                ReducedRows(self._writer, step.sums.work.node, step.writes, []).add()
            case _:
                raise NoGroup


def _is_elementwise(v: Value) -> bool:
    return v.producer is not None and is_fused_node(v.producer)


def _add_at_indices(writer: GroupWriter, result: Value) -> None:
    """Adds floats by index array, atomically, to an array that was filled before."""
    positions, node = writer.positions, result.producer
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
            [(v, at if k == 0 else at[:count]) for part in node.parts for k, v in enumerate(part)]
        )
        body: list[Stmt] = [*written.body]
        for start in range(0, len(written.values), width):
            value, *found = written.values[start : start + width]
            inner = (*map(positions.of, found), *at[count:])
            adding = writer.arrays.add_to(sums, base.shape, inner, value)
            body.append(guarded(positions.size, found, base.shape, [adding]))
        return body

    writer.each(base.shape, fill)
    writer.each(node.operands[1].shape, add_values)
    targets = [*writer.rows.get(result, ())]
    if result in writer.place_of:
        targets.append(writer.place_of[result])
    writer.place_of[result] = sums
    for target in targets:
        writer.copy(result, target)
