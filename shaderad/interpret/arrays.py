"""Runs array graphs in NumPy, node by node: the oracle of plans.

An array is a value whose rows are its elements in row-major order (see cells.py), with its shape.
All expressions of a graph share one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Shape,
    Value,
    cell,
    cells,
    combined,
    filled,
    from_host,
    joined,
    mapped,
    to_host,
    zeros,
)
from shaderad.interpret.convolutions import convolved
from shaderad.interpret.expressions import evaluate as evaluate_expression
from shaderad.interpret.machine import CallFrame, Machine, ReportKind, RunReport, neutral
from shaderad.interpret.run import interpret, new_machine, run_function
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Reducer, operand_name
from shaderad.ir.types import INT, Access, Type


def evaluate(
    graph: Graph, inputs: Sequence[Any], size_by_name: Mapping[str, int] | None = None
) -> tuple[list[Any], list[RunReport]]:
    """The outputs of `graph` in float64, structs as dicts, and the reports of the run.

    Args:
        graph: The graph.
        inputs: Array-likes in the order of its inputs; dicts for structs.
        size_by_name: Values of its symbolic sizes.
    """
    r = GraphRun(size_by_name or {})
    values = [r.from_host(x, v.type) for x, v in zip(inputs, graph.inputs, strict=True)]
    outputs = r.graph(graph, values)
    return [to_host(x.value, x.shape) for x in outputs], r.machine.reports.reports


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array while the graph runs."""

    element: Type
    shape: Shape
    value: Value

    def at(self, rows: AnyArray) -> ArrayValue:
        """The elements at `rows`, which are row-major numbers, in the shape of `rows`."""
        flat = rows.reshape(-1)
        taken = mapped(lambda c: Cell(c.data[flat]), self.value)
        return ArrayValue(self.element, rows.shape, taken)

    def put(self, rows: Any, source: ArrayValue) -> ArrayValue:
        """Replaces the elements at `rows` by those of `source`, in place; returns the array."""
        for base, new in zip(cells(self.value), cells(source.value), strict=True):
            base.data[rows] = new.data
        return self


@dataclass(slots=True)
class GraphRun:
    """A run of a graph."""

    sizes: Mapping[str, int]
    machine: Machine = field(default_factory=new_machine)

    def size(self, size: sizes.Size) -> int:
        return sizes.evaluate(size, self.sizes)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(map(self.size, shape))

    def from_host(self, data: Any, t: ArrayType) -> ArrayValue:
        shape = self.shape(t.shape)
        return ArrayValue(t.element, shape, from_host(data, t.element, shape, np.float64))

    def graph(self, graph: Graph, inputs: Sequence[ArrayValue]) -> list[ArrayValue]:
        """The outputs of `graph`."""
        array_by_value = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            results = _RULES[type(node)](self, node, *(array_by_value[v] for v in node.operands))
            results = results if isinstance(results, list) else [results]
            for v, array in zip(node.results, results, strict=True):
                assert array.shape == self.shape(v.shape), f"{node}: {array.shape}, {v.type}"
                array_by_value[v] = array
        return [array_by_value[v] for v in graph.outputs]

    def combine(self, op: Reducer, left: Value, right: Value, count: int) -> Value:
        """``left op right`` element by element."""
        if isinstance(op, nodes.Function):
            result = run_function(self.machine, op, [left, right], np.arange(count)).result
            assert result is not None
            return result
        numpy: Any = op.numpy
        return combined(
            lambda a, b: Cell(np.asarray(numpy(a.data, b.data), a.data.dtype)), left, right
        )


def _zeros(t: Type, shape: Shape) -> ArrayValue:
    return ArrayValue(t, shape, zeros(t, (prod(shape),), np.float64))


def _numbers(shape: Shape) -> AnyArray:
    """The row-major number of each element."""
    return np.arange(prod(shape)).reshape(shape)


def _ints(data: Any) -> ArrayValue:
    numbers = np.asarray(data)
    return ArrayValue(INT, numbers.shape, Cell(numbers.reshape(-1).astype(np.int32)))


def _data(x: ArrayValue) -> AnyArray:
    """The numbers of an array of scalars, in its shape."""
    return cell(x.value).data.reshape(x.shape)


# -- elementwise ------------------------------------------------------------------------------


def _elementwise(r: GraphRun, node: arrays.Elementwise, *operands: ArrayValue) -> ArrayValue:
    e, shape = node.expr, r.shape(node.shape)
    if not prod(shape):
        return _zeros(e.type, shape)
    types = {operand_name(k): x.element for k, x in enumerate(operands)}
    variables = {operand_name(k): x.value for k, x in enumerate(operands)}
    frame = CallFrame(r.machine, np.arange(prod(shape)), types, variables)
    return ArrayValue(e.type, shape, evaluate_expression(frame, e, frame.rows))


def _iota(r: GraphRun, node: arrays.Iota) -> ArrayValue:
    return _ints(np.indices(r.shape(node.shape))[node.axis])


def _size_of(r: GraphRun, node: arrays.SizeOf) -> ArrayValue:
    return _ints(r.size(node.size))


# -- layout -----------------------------------------------------------------------------------


def _broadcast(r: GraphRun, node: arrays.Broadcast, x: ArrayValue) -> ArrayValue:
    shape = r.shape(node.shape)
    extents = [1] * len(shape)
    for axis, extent in zip(node.axes, x.shape, strict=True):
        extents[axis] = extent
    return x.at(np.broadcast_to(_numbers(x.shape).reshape(extents), shape))


def _reshape(r: GraphRun, node: arrays.Reshape, x: ArrayValue) -> ArrayValue:
    return ArrayValue(x.element, r.shape(node.shape), x.value)


def _transpose(r: GraphRun, node: arrays.Transpose, x: ArrayValue) -> ArrayValue:
    return x.at(_numbers(x.shape).transpose(node.permutation))


def _stretch(r: GraphRun, node: arrays.Slice | arrays.Place, shape: Shape) -> tuple[AnyArray, ...]:
    """The positions along each axis that a slice reads or a place writes."""
    starts = r.shape(node.starts)
    return np.ix_(
        *(s + t * np.arange(n) for s, t, n in zip(starts, node.steps, shape, strict=True))
    )


def _slice(r: GraphRun, node: arrays.Slice, x: ArrayValue) -> ArrayValue:
    return x.at(_numbers(x.shape)[_stretch(r, node, r.shape(node.shape))])


def _place(r: GraphRun, node: arrays.Place, x: ArrayValue) -> ArrayValue:
    shape = r.shape(node.shape)
    rows = _numbers(shape)[_stretch(r, node, x.shape)]
    return _zeros(x.element, shape).put(rows.reshape(-1), x)


def _roll(r: GraphRun, node: arrays.Roll, x: ArrayValue) -> ArrayValue:
    return x.at(np.roll(_numbers(x.shape), -r.size(node.start), node.axis))


def _concatenate(r: GraphRun, node: arrays.Concatenate, *operands: ArrayValue) -> ArrayValue:
    starts = np.cumsum([0, *(prod(x.shape) for x in operands)])
    parts = [_numbers(x.shape) + start for x, start in zip(operands, starts, strict=False)]
    whole = ArrayValue(operands[0].element, (), joined([x.value for x in operands]))
    return whole.at(np.concatenate(parts, axis=node.axis))


# -- by index array ---------------------------------------------------------------------------


def _selected(shape: Shape, index: Sequence[ArrayValue]) -> tuple[AnyArray, AnyArray]:
    """Numbers and bounds checks of the elements that index arrays select, remaining axes last."""
    number = np.zeros(index[0].shape, np.int64)
    is_inside = np.ones(index[0].shape, bool)
    for positions, extent in zip(index, shape, strict=False):
        position = _data(positions).astype(np.int64)
        is_inside &= (position >= 0) & (position < extent)
        number = number * extent + position
    rest = shape[len(index) :]
    lead = (...,) + (None,) * len(rest)
    numbers = number[lead] * prod(rest) + _numbers(rest)
    return numbers, np.broadcast_to(is_inside[lead], numbers.shape).reshape(-1)


def _gather(r: GraphRun, node: arrays.Gather, x: ArrayValue, *index: ArrayValue) -> ArrayValue:
    numbers, is_inside = _selected(x.shape, index)
    if node.is_reported:
        r.machine.reports.add(ReportKind.BOUNDS, node.span, "", np.flatnonzero(~is_inside))
    inside = x.at(numbers.reshape(-1)[is_inside])
    return _zeros(x.element, numbers.shape).put(is_inside, inside)


def _scatter_add(
    r: GraphRun, node: arrays.ScatterAdd, base: ArrayValue, values: ArrayValue, *index: ArrayValue
) -> ArrayValue:
    numbers, is_inside = _selected(base.shape, index)
    totals = mapped(lambda c: Cell(c.data.copy()), base.value)
    for total, addend in zip(cells(totals), cells(values.value), strict=True):
        np.add.at(total.data, numbers.reshape(-1)[is_inside], addend.data[is_inside])
    return ArrayValue(base.element, base.shape, totals)


def _last_writer(r: GraphRun, node: arrays.LastWriter, index: ArrayValue) -> ArrayValue:
    writers = np.full(r.size(node.count), -1)
    for j, k in enumerate(_data(index)):
        if 0 <= k < len(writers):
            writers[k] = j
    return _ints(writers)


def _arg_sort(r: GraphRun, node: arrays.ArgSort, x: ArrayValue) -> ArrayValue:
    return _ints(np.argsort(_data(x), axis=-1, kind="stable"))


# -- reductions and scans, sequential along the last axis -------------------------------------


def _neutral(op: ops.Op, dtype: np.dtype[Any]) -> Any:
    if op in (ops.MIN, ops.MAX):
        return neutral(Access.MIN if op is ops.MIN else Access.MAX, dtype)
    return op in (ops.MUL, ops.BIT_AND)


def _reduce(r: GraphRun, node: arrays.Reduce, x: ArrayValue, *init: ArrayValue) -> ArrayValue:
    shape = x.shape[:-1]
    if prod(x.shape):
        totals = [*init, _folded(r, node.op, x)]
    elif init:
        totals = [*init]
    else:
        empty = _zeros(x.element, shape)
        if isinstance(node.op, ops.Op):
            return ArrayValue(x.element, shape, filled(empty.value, partial(_neutral, node.op)))
        assert not prod(shape), "a function reduces no empty rows"
        return empty
    return reduce(partial(_combined, r, node.op), totals)


def _folded(r: GraphRun, op: Reducer, x: ArrayValue) -> ArrayValue:
    """The total of each row, from pairs of neighbours."""
    last: list[ArrayValue] = []
    while x.shape[-1] > 1:
        numbers = _numbers(x.shape)
        if x.shape[-1] % 2:
            last.insert(0, x.at(numbers[..., -1]))
            numbers = numbers[..., :-1]
        x = _combined(r, op, x.at(numbers[..., ::2]), x.at(numbers[..., 1::2]))
    return reduce(partial(_combined, r, op), [x.at(_numbers(x.shape)[..., 0]), *last])


def _combined(r: GraphRun, op: Reducer, left: ArrayValue, right: ArrayValue) -> ArrayValue:
    """``left op right`` for two arrays of one shape."""
    value = r.combine(op, left.value, right.value, prod(left.shape))
    return ArrayValue(left.element, left.shape, value)


def _scan(r: GraphRun, node: arrays.Scan, x: ArrayValue) -> ArrayValue:
    """Hillis, Steele, *Data parallel algorithms*, CACM 29 (1986)."""
    if not prod(x.shape):
        return x
    numbers, distance = _numbers(x.shape), 1
    totals = x.at(numbers)
    while distance < x.shape[-1]:
        earlier, later = numbers[..., :-distance], numbers[..., distance:]
        longer = _combined(r, node.op, totals.at(earlier), totals.at(later))
        totals = totals.put(later.reshape(-1), longer)
        distance *= 2
    return totals


def _arg_extreme(r: GraphRun, node: arrays.ArgExtreme, x: ArrayValue) -> ArrayValue:
    data = _data(x)
    if not data.size:
        return _ints(np.zeros(x.shape[:-1]))
    # Infinities count as numbers, so the first position of the extreme is the result.
    best = (np.fmin if node.kind == "min" else np.fmax).reduce(data, axis=-1, keepdims=True)
    return _ints(np.argmax(data == best, axis=-1))


def _convolution(r: GraphRun, node: arrays.Convolution, *operands: ArrayValue) -> ArrayValue:
    x, w = map(_data, operands)
    y = convolved(node, x, w, r.shape(node.extents), r.shape(node.padding))
    return ArrayValue(node.result.element, y.shape, Cell(y.reshape(-1)))


# -- control flow -----------------------------------------------------------------------------


def _row_numbers(shape: Shape, k: int) -> AnyArray:
    """The row-major numbers of the elements of row `k`."""
    return _numbers(shape[1:]) + k * prod(shape[1:])


def _loop(r: GraphRun, node: arrays.Loop, *operands: ArrayValue) -> list[ArrayValue]:
    count = r.size(node.count)
    carries = [*operands[: node.carry_count]]
    constants = operands[node.carry_count :][: node.constant_count]
    xs = operands[node.carry_count + node.constant_count :]
    ys = [_zeros(y.element, (count, *r.shape(y.shape))) for y in node.body.outputs[len(carries) :]]
    for k in reversed(range(count)) if node.is_reversed else range(count):
        rows = [x.at(_row_numbers(x.shape, k)) for x in xs]
        outputs = r.graph(node.body, [_ints(k), *carries, *constants, *rows])
        carries = outputs[: node.carry_count]
        for y, row in zip(ys, outputs[node.carry_count :], strict=True):
            y.put(_row_numbers(y.shape, k).reshape(-1), row)
    return [*carries, *ys]


def _while(r: GraphRun, node: arrays.WhileLoop, *operands: ArrayValue) -> list[ArrayValue]:
    carries, constants = [*operands[: node.carry_count]], operands[node.carry_count :]
    count = 0
    while _data(r.graph(node.condition, [*carries, *constants])[0]):
        if count == node.limit:
            r.machine.reports.add(ReportKind.LIMIT, node.span, str(node.limit), np.zeros(1, int))
            break
        carries = r.graph(node.body, [*carries, *constants])
        count += 1
    return [*carries, _ints(count)]


def _subgraph(r: GraphRun, node: arrays.Subgraph, *operands: ArrayValue) -> list[ArrayValue]:
    return r.graph(node.body, operands)


# -- kernels ----------------------------------------------------------------------------------


def _kernel(
    r: GraphRun,
    node: arrays.KernelCall | arrays.KernelPull | arrays.KernelPush,
    *operands: ArrayValue,
) -> list[ArrayValue]:
    call = node if isinstance(node, arrays.KernelCall) else node.call
    shapes = {n: r.shape(t.shape) for n, t in call.written}
    inputs = _to_hosts(call.names, operands)
    run = interpret(call.kernel, dim=r.shape(call.dim), arrays=inputs, shapes=shapes)
    if isinstance(node, arrays.KernelCall):
        names, results = [n for n, _ in node.written], run.outputs
    else:
        derivatives = _to_hosts(node.derivative_names, operands[len(call.names) :])
        is_pull = isinstance(node, arrays.KernelPull)
        names, results = node.wanted, run.pull(derivatives) if is_pull else run.push(derivatives)
    types = node.result_types()
    effects = (r.from_host(np.zeros(0, np.int32), t) for t in types[len(names) :])
    pairs = zip(names, types, strict=False)
    return [*(r.from_host(results[n], t) for n, t in pairs), *effects]


def _to_hosts(names: Iterable[str], values: Iterable[ArrayValue]) -> dict[str, Any]:
    return {n: to_host(x.value, x.shape) for n, x in zip(names, values, strict=False)}


_RULES: dict[type[arrays.Node], Callable[..., ArrayValue | list[ArrayValue]]] = {
    arrays.Elementwise: _elementwise,
    arrays.Iota: _iota,
    arrays.SizeOf: _size_of,
    arrays.Broadcast: _broadcast,
    arrays.Reshape: _reshape,
    arrays.Transpose: _transpose,
    arrays.Slice: _slice,
    arrays.Place: _place,
    arrays.Roll: _roll,
    arrays.Concatenate: _concatenate,
    arrays.Gather: _gather,
    arrays.ScatterAdd: _scatter_add,
    arrays.LastWriter: _last_writer,
    arrays.ArgSort: _arg_sort,
    arrays.Reduce: _reduce,
    arrays.Scan: _scan,
    arrays.Convolution: _convolution,
    arrays.ArgExtreme: _arg_extreme,
    arrays.Loop: _loop,
    arrays.WhileLoop: _while,
    arrays.Subgraph: _subgraph,
    arrays.KernelCall: _kernel,
    arrays.KernelPull: _kernel,
    arrays.KernelPush: _kernel,
}
"""``(interpreter, node, *operands) -> results``."""
