"""Layout nodes, and nodes that read or write by index array, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from shaderad.interpret.array_runner import (
    ArrayValue,
    GraphRunner,
    Shape,
    ints,
    numbers,
    put,
    taken,
)
from shaderad.interpret.cells import AnyArray, Cell, cell, cells, joined, mapped
from shaderad.interpret.reports import ReportKind, RunReport
from shaderad.ir import arrays

# -- layout -----------------------------------------------------------------------------------


def _broadcast(r: GraphRunner, node: arrays.Broadcast, operands: list[ArrayValue]) -> ArrayValue:
    (x,) = operands
    shape = r.shape(node.shape)
    extents = [1] * len(shape)
    for axis, extent in zip(node.axes, x.shape, strict=True):
        extents[axis] = extent
    return taken(x, np.broadcast_to(numbers(x.shape).reshape(extents), shape), shape)


def _reshape(r: GraphRunner, node: arrays.Reshape, operands: list[ArrayValue]) -> ArrayValue:
    return ArrayValue(operands[0].element, r.shape(node.shape), operands[0].value)


def _transpose(r: GraphRunner, node: arrays.Transpose, operands: list[ArrayValue]) -> ArrayValue:
    rows = numbers(operands[0].shape).transpose(node.permutation)
    return taken(operands[0], rows, rows.shape)


def _stretch(
    r: GraphRunner, node: arrays.Slice | arrays.Place, shape: Shape
) -> tuple[AnyArray, ...]:
    """The positions along each axis that a slice reads or a place writes."""
    starts = r.shape(node.starts)
    return np.ix_(
        *(s + t * np.arange(n) for s, t, n in zip(starts, node.steps, shape, strict=True))
    )


def _slice(r: GraphRunner, node: arrays.Slice, operands: list[ArrayValue]) -> ArrayValue:
    shape = r.shape(node.shape)
    rows = numbers(operands[0].shape)[_stretch(r, node, shape)]
    return taken(operands[0], rows, shape)


def _place(r: GraphRunner, node: arrays.Place, operands: list[ArrayValue]) -> ArrayValue:
    (x,) = operands
    shape = r.shape(node.shape)
    rows = numbers(shape)[_stretch(r, node, x.shape)].reshape(-1)
    result = r.filled(x.element, shape)
    put(result, rows, x)
    return result


def _concatenate(
    r: GraphRunner, node: arrays.Concatenate, operands: list[ArrayValue]
) -> ArrayValue:
    starts = np.cumsum([0, *(prod(x.shape) for x in operands)])
    parts = [numbers(x.shape) + start for x, start in zip(operands, starts, strict=False)]
    rows = np.concatenate(parts, axis=node.axis)
    whole = joined([x.value for x in operands])
    return taken(ArrayValue(operands[0].element, (), whole), rows, rows.shape)


# -- by index array ---------------------------------------------------------------------------


def _places(shape: Shape, index: Sequence[ArrayValue]) -> tuple[AnyArray, AnyArray]:
    """Numbers and bounds checks of the elements that index arrays select, remaining axes last."""
    selected = index[0].shape
    number = np.zeros(selected, np.int64)
    is_inside = np.ones(selected, bool)
    for positions, extent in zip(index, shape, strict=False):
        position = cell(positions.value).data.reshape(selected).astype(np.int64)
        is_inside &= (position >= 0) & (position < extent)
        number = number * extent + position
    rest = shape[len(index) :]
    lead = (...,) + (None,) * len(rest)
    element_numbers = number[lead] * prod(rest) + numbers(rest)
    return element_numbers, np.broadcast_to(is_inside[lead], element_numbers.shape)


def _gather(r: GraphRunner, node: arrays.Gather, operands: list[ArrayValue]) -> ArrayValue:
    x, *index = operands
    numbers, is_inside = _places(x.shape, index)
    if node.is_reported and not is_inside.all():
        first = int(np.flatnonzero(~is_inside.reshape(-1))[0])
        r.machine.reports.reports.append(RunReport(ReportKind.BOUNDS, node.span, "", first))
    result = r.filled(x.element, numbers.shape)
    inside = is_inside.reshape(-1)
    put(result, inside, taken(x, numbers.reshape(-1)[inside], ()))
    return result


def _scatter_add(r: GraphRunner, node: arrays.ScatterAdd, operands: list[ArrayValue]) -> ArrayValue:
    base, values, *index = operands
    numbers, is_inside = _places(base.shape, index)
    inside, flat = is_inside.reshape(-1), numbers.reshape(-1)
    totals = mapped(lambda c: Cell(c.data.copy()), base.value)
    for total, addend in zip(cells(totals), cells(values.value), strict=True):
        np.add.at(total.data, flat[inside], addend.data[inside])
    return ArrayValue(base.element, base.shape, totals)


def _last_writer(r: GraphRunner, node: arrays.LastWriter, operands: list[ArrayValue]) -> ArrayValue:
    index = cell(operands[0].value).data
    writers = np.full(r.size(node.count), -1)
    for j, k in enumerate(index):
        if 0 <= k < len(writers):
            writers[k] = j
    return ints(writers)


def _arg_sort(r: GraphRunner, node: arrays.ArgSort, operands: list[ArrayValue]) -> ArrayValue:
    (x,) = operands
    return ints(np.argsort(cell(x.value).data.reshape(x.shape), axis=-1, kind="stable"))


def _roll(r: GraphRunner, node: arrays.Roll, operands: list[ArrayValue]) -> ArrayValue:
    shape = operands[0].shape
    return taken(operands[0], np.roll(numbers(shape), -r.size(node.start), node.axis), shape)


RULES = {
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
}
