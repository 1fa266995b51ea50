"""Array graphs run in NumPy, node by node as they are defined: the oracle of what plans compute.

An array is a value whose rows are its elements in row-major order (see cells.py), with its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import AnyArray, Cell, Value, cell, cells, combined, filled, mapped
from shaderad.interpret.expressions import evaluate as evaluate_expression
from shaderad.interpret.forms import from_host, to_host
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.interpret.reports import Report, ReportKind, Reports
from shaderad.interpret.run import Run, interpret
from shaderad.interpret.tape import Tape
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Reducer, operand_name
from shaderad.ir.types import Access, Type

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """An array while the graph runs."""

    element: Type
    shape: Shape
    value: Value


def evaluate(
    graph: Graph, inputs: Sequence[Any], size_by_name: Mapping[str, int] | None = None
) -> tuple[list[Any], list[Report]]:
    """The outputs of `graph` in float64, structs as dicts, and what a device would report.

    Args:
        graph: What to run.
        inputs: Array-likes in the order of its inputs; dicts for structs.
        size_by_name: What its symbolic sizes are.
    """
    runner = _Runner(dict(size_by_name or {}))
    given = [runner.from_host(x, v.type) for x, v in zip(inputs, graph.inputs, strict=True)]
    found = runner.graph(graph, given)
    return [to_host(held.value, held.shape) for held in found], runner.machine.reports.found


def _machine() -> Machine:
    return Machine(
        tape=Tape(is_recording=False), precision=np.float64, memory={},
        reports=Reports(), run=functions.run,
    )  # fmt: skip


@dataclass(slots=True)
class _Runner:
    """Runs nodes; all share one machine, and so one list of reports."""

    sizes: dict[str, int]
    machine: Machine = field(default_factory=_machine)

    def size(self, size: sizes.Size) -> int:
        return sizes.evaluate(size, self.sizes)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(map(self.size, shape))

    def from_host(self, data: Any, t: ArrayType) -> Held:
        shape = self.shape(t.shape)
        return Held(t.element, shape, from_host(data, t.element, shape, np.float64))

    def graph(self, graph: Graph, inputs: Sequence[Held]) -> list[Held]:
        known = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            given = [known[v] for v in node.operands]
            made = _RUN[type(node)](self, node, given)
            found = made if isinstance(made, list) else [made]
            for v, held in zip(node.results, found, strict=True):
                assert held.shape == self.shape(v.shape), f"{node}: {held.shape}, {v.type}"
                known[v] = held
        return [known[v] for v in graph.outputs]

    def filled(self, t: Type, shape: Shape, fill: Any = 0) -> Held:
        return Held(t, shape, filled(t, (prod(shape),), np.float64, fill))

    def expression(self, e: nodes.Expr, by_name: Mapping[str, Held], count: int) -> Value:
        """`e` for each of `count` elements."""
        if not count:
            return filled(e.type, (0,), np.float64)
        types = {name: held.element for name, held in by_name.items()}
        variables = {name: held.value for name, held in by_name.items()}
        frame = Frame(np.arange(count), types, variables)
        return evaluate_expression(self.machine, frame, e, all_rows(frame))

    def combine(self, op: Reducer, left: Value, right: Value, count: int) -> Value:
        """``left op right`` element by element."""
        if isinstance(op, nodes.Function):
            threads = np.arange(count)
            found = functions.run(self.machine, op, [left, right], threads).result
            assert found is not None
            return found
        numpy: Any = op.numpy
        return combined(
            lambda a, b: Cell(np.asarray(numpy(a.data, b.data), a.data.dtype)), left, right
        )


def _taken(held: Held, rows: AnyArray, shape: Shape) -> Held:
    """The elements of `held` at `rows`, which are row-major numbers."""
    flat = rows.reshape(-1)
    return Held(held.element, shape, mapped(lambda c: Cell(c.data[flat]), held.value))


def _numbers(shape: Shape) -> AnyArray:
    """The row-major number of each element."""
    return np.arange(prod(shape)).reshape(shape)


def _elementwise(r: _Runner, node: arrays.Elementwise, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    by_name = {operand_name(k): held for k, held in enumerate(given)}
    return Held(node.expr.type, shape, r.expression(node.expr, by_name, prod(shape)))


def _ints(data: AnyArray) -> Held:
    return Held(arrays.INT, data.shape, Cell(data.reshape(-1).astype(np.int32)))


def _iota(r: _Runner, node: arrays.Iota, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    steps = np.arange(shape[node.axis]).reshape(
        [-1 if k == node.axis else 1 for k in range(len(shape))]
    )
    return _ints(np.broadcast_to(steps, shape))


def _size_of(r: _Runner, node: arrays.SizeOf, given: list[Held]) -> Held:
    return _ints(np.asarray(r.size(node.size)))


# -- layout -----------------------------------------------------------------------------------


def _broadcast(r: _Runner, node: arrays.Broadcast, given: list[Held]) -> Held:
    (x,) = given
    shape = r.shape(node.shape)
    extents = [1] * len(shape)
    for axis, extent in zip(node.axes, x.shape, strict=True):
        extents[axis] = extent
    return _taken(x, np.broadcast_to(_numbers(x.shape).reshape(extents), shape), shape)


def _reshape(r: _Runner, node: arrays.Reshape, given: list[Held]) -> Held:
    return Held(given[0].element, r.shape(node.shape), given[0].value)


def _transpose(r: _Runner, node: arrays.Transpose, given: list[Held]) -> Held:
    rows = _numbers(given[0].shape).transpose(node.permutation)
    return _taken(given[0], rows, rows.shape)


def _stretch(r: _Runner, node: arrays.Slice | arrays.Place, shape: Shape) -> tuple[AnyArray, ...]:
    """The positions along each axis that a slice reads or a place writes."""
    starts = r.shape(node.starts)
    return np.ix_(
        *(s + t * np.arange(n) for s, t, n in zip(starts, node.steps, shape, strict=True))
    )


def _slice(r: _Runner, node: arrays.Slice, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    rows = _numbers(given[0].shape)[_stretch(r, node, shape)]
    return _taken(given[0], rows, shape)


def _place(r: _Runner, node: arrays.Place, given: list[Held]) -> Held:
    (x,) = given
    shape = r.shape(node.shape)
    rows = _numbers(shape)[_stretch(r, node, x.shape)].reshape(-1)
    made = r.filled(x.element, shape)
    for base, new in zip(cells(made.value), cells(x.value), strict=True):
        base.data[rows] = new.data
    return made


def _concatenate(r: _Runner, node: arrays.Concatenate, given: list[Held]) -> Held:
    starts = np.cumsum([0, *(prod(x.shape) for x in given)])
    parts = [_numbers(x.shape) + start for x, start in zip(given, starts, strict=False)]
    rows = np.concatenate(parts, axis=node.axis)
    joined = given[0].value
    for x in given[1:]:
        joined = combined(lambda a, b: Cell(np.concatenate([a.data, b.data])), joined, x.value)
    return _taken(Held(given[0].element, (), joined), rows, rows.shape)


# -- by index array ---------------------------------------------------------------------------


def _places(shape: Shape, index: Sequence[Held]) -> tuple[AnyArray, AnyArray]:
    """For each element of the index arrays and of the rest: its number, and if it is inside."""
    where = index[0].shape
    number = np.zeros(where, np.int64)
    is_inside = np.ones(where, bool)
    for held, extent in zip(index, shape, strict=False):
        position = cell(held.value).data.reshape(where).astype(np.int64)
        is_inside &= (position >= 0) & (position < extent)
        number = number * extent + position
    rest = shape[len(index) :]
    lead = (...,) + (None,) * len(rest)
    numbers = number[lead] * prod(rest) + _numbers(rest)
    return numbers, np.broadcast_to(is_inside[lead], numbers.shape)


def _gather(r: _Runner, node: arrays.Gather, given: list[Held]) -> Held:
    x, *index = given
    numbers, is_inside = _places(x.shape, index)
    if node.is_reported and not is_inside.all():
        first = int(np.flatnonzero(~is_inside.reshape(-1))[0])
        r.machine.reports.found.append(Report(ReportKind.BOUNDS, node.span, "", first))
    made = r.filled(x.element, numbers.shape)
    inside = is_inside.reshape(-1)
    for base, source in zip(cells(made.value), cells(x.value), strict=True):
        base.data[inside] = source.data[numbers.reshape(-1)[inside]]
    return made


def _scatter_add(r: _Runner, node: arrays.ScatterAdd, given: list[Held]) -> Held:
    base, values, *index = given
    numbers, is_inside = _places(base.shape, index)
    inside, flat = is_inside.reshape(-1), numbers.reshape(-1)
    made = mapped(lambda c: Cell(c.data.copy()), base.value)
    for total, new in zip(cells(made), cells(values.value), strict=True):
        np.add.at(total.data, flat[inside], new.data[inside])
    return Held(base.element, base.shape, made)


def _last_writer(r: _Runner, node: arrays.LastWriter, given: list[Held]) -> Held:
    index = cell(given[0].value).data
    found = np.full(r.size(node.count), -1)
    for j, k in enumerate(index):
        if 0 <= k < len(found):
            found[k] = j
    return _ints(found)


def _arg_sort(r: _Runner, node: arrays.ArgSort, given: list[Held]) -> Held:
    (x,) = given
    return _ints(np.argsort(cell(x.value).data.reshape(x.shape), axis=-1, kind="stable"))


# -- reductions -------------------------------------------------------------------------------


def _columns(x: Held) -> list[Value]:
    """The elements of all rows at each position of the last axis."""
    rows = _numbers(x.shape).reshape(-1, x.shape[-1]) if prod(x.shape) else np.zeros((0, 0), int)
    if not rows.size:
        return []
    return [_taken(x, rows[:, k], x.shape[:-1]).value for k in range(x.shape[-1])]


def _neutral(op: ops.Op, dtype: Any) -> Any:
    if op in (ops.MIN, ops.MAX):
        bound = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
        return bound if op == ops.MIN else lowest
    return op in (ops.MUL, ops.BIT_AND)


def _reduce(r: _Runner, node: arrays.Reduce, given: list[Held]) -> Held:
    x, *init = given
    shape = x.shape[:-1]
    columns = [*(held.value for held in init), *_columns(x)]
    if not columns:
        empty = r.filled(x.element, shape)
        if isinstance(node.op, ops.Op):
            op = node.op
            value = mapped(
                lambda c: Cell(np.full_like(c.data, _neutral(op, c.data.dtype))), empty.value
            )
            return Held(x.element, shape, value)
        assert not prod(shape), "a function reduces no empty rows"
        return empty
    total = columns[0]
    for column in columns[1:]:
        total = r.combine(node.op, total, column, prod(shape))
    return Held(x.element, shape, total)


def _scan(r: _Runner, node: arrays.Scan, given: list[Held]) -> Held:
    (x,) = given
    columns = _columns(x)
    if not columns:
        return x
    totals = [columns[0]]
    for column in columns[1:]:
        totals.append(r.combine(node.op, totals[-1], column, prod(x.shape[:-1])))
    stacked = totals[0]
    for k, total in enumerate(totals):
        stacked = total if not k else combined(
            lambda a, b: Cell(np.concatenate([a.data, b.data])), stacked, total
        )  # fmt: skip
    # The columns lie one after the other; the result has rows.
    count = prod(x.shape[:-1])
    rows = np.arange(count * x.shape[-1]).reshape(x.shape[-1], count).T
    return _taken(Held(x.element, (), stacked), rows, x.shape)


def _arg_extreme(r: _Runner, node: arrays.ArgExtreme, given: list[Held]) -> Held:
    (x,) = given
    data = cell(x.value).data.reshape(x.shape)
    if not data.size:
        return _ints(np.zeros(x.shape[:-1]))
    if data.dtype.kind == "f":
        data = np.where(np.isnan(data), np.inf if node.kind == "min" else -np.inf, data)
    return _ints((np.argmin if node.kind == "min" else np.argmax)(data, axis=-1))


# -- control flow -----------------------------------------------------------------------------


def _row(held: Held, k: int) -> Held:
    shape = held.shape[1:]
    return _taken(held, np.arange(prod(shape)) + k * prod(shape), shape)


def _loop(r: _Runner, node: arrays.Loop, given: list[Held]) -> list[Held]:
    count = r.size(node.count)
    carries = given[: node.carry_count]
    constants = given[node.carry_count :][: node.constant_count]
    xs = given[node.carry_count + node.constant_count :]
    ys: dict[int, list[Held]] = {}
    for k in reversed(range(count)) if node.is_reversed else range(count):
        rows = [_row(x, k) for x in xs]
        found = r.graph(node.body, [_ints(np.asarray(k)), *carries, *constants, *rows])
        carries, ys[k] = found[: node.carry_count], found[node.carry_count :]
    stacked: list[Held] = []
    for position, y in enumerate(node.body.outputs[node.carry_count :]):
        shape = (count, *r.shape(y.shape))
        made = r.filled(y.element, shape)
        size = prod(shape[1:])
        for k, values in ys.items():
            for base, new in zip(cells(made.value), cells(values[position].value), strict=True):
                base.data[k * size : (k + 1) * size] = new.data
        stacked.append(made)
    return [*carries, *stacked]


def _while(r: _Runner, node: arrays.WhileLoop, given: list[Held]) -> list[Held]:
    carries, constants = given[: node.carry_count], given[node.carry_count :]
    count = 0
    while True:
        (goes_on,) = r.graph(node.condition, [*carries, *constants])
        if not cell(goes_on.value).data[0]:
            break
        if count == node.limit:
            r.machine.reports.found.append(Report(ReportKind.LIMIT, node.span, str(node.limit), 0))
            break
        carries = r.graph(node.body, [*carries, *constants])
        count += 1
    return [*carries, _ints(np.asarray(count))]


# -- kernels ----------------------------------------------------------------------------------


def _run_kernel(r: _Runner, node: arrays.KernelCall, given: Sequence[Held]) -> Run:
    hosts = {n: to_host(h.value, h.shape) for n, h in zip(node.names, given, strict=False)}
    read = {b.name for b in node.kernel.buffers if b.access is Access.IN}
    return interpret(
        node.kernel,
        dim=r.shape(node.dim),
        arrays={n: x for n, x in hosts.items() if n in read},
        uniforms={n: x for n, x in hosts.items() if n not in read},
        shapes={n: r.shape(t.shape) for n, t in node.written},
    )


def _kernel_call(r: _Runner, node: arrays.KernelCall, given: list[Held]) -> list[Held]:
    outputs = _run_kernel(r, node, given).outputs
    return [r.from_host(outputs[n], t) for n, t in node.written]


def _kernel_pull(r: _Runner, node: arrays.KernelPull, given: list[Held]) -> list[Held]:
    run = _run_kernel(r, node.call, given)
    bars = given[len(node.call.names) :]
    found = run.pull({n: to_host(h.value, h.shape) for n, h in zip(node.given, bars, strict=True)})
    types = node.result_types()
    return [r.from_host(found[n], t) for n, t in zip(node.wanted, types, strict=True)]


def _kernel_push(r: _Runner, node: arrays.KernelPush, given: list[Held]) -> list[Held]:
    run = _run_kernel(r, node.call, given)
    dots = given[len(node.call.names) :]
    found = run.push({n: to_host(h.value, h.shape) for n, h in zip(node.given, dots, strict=True)})
    types = node.result_types()
    return [r.from_host(found[n], t) for n, t in zip(node.wanted, types, strict=True)]


_RUN: dict[type[arrays.Node], Callable[[_Runner, Any, list[Held]], Held | list[Held]]] = {
    arrays.Elementwise: _elementwise,
    arrays.Iota: _iota,
    arrays.SizeOf: _size_of,
    arrays.Broadcast: _broadcast,
    arrays.Reshape: _reshape,
    arrays.Transpose: _transpose,
    arrays.Slice: _slice,
    arrays.Place: _place,
    arrays.Concatenate: _concatenate,
    arrays.Gather: _gather,
    arrays.ScatterAdd: _scatter_add,
    arrays.LastWriter: _last_writer,
    arrays.ArgSort: _arg_sort,
    arrays.Reduce: _reduce,
    arrays.ArgExtreme: _arg_extreme,
    arrays.Scan: _scan,
    arrays.Loop: _loop,
    arrays.WhileLoop: _while,
    arrays.KernelCall: _kernel_call,
    arrays.KernelPull: _kernel_pull,
    arrays.KernelPush: _kernel_push,
}
