"""Nodes that lay elements out anew, and those that read or write by index array, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from shaderad.interpret.array_runner import Held, Runner, Shape, ints, numbers, taken
from shaderad.interpret.cells import AnyArray, Cell, cell, cells, combined, mapped
from shaderad.interpret.reports import Report, ReportKind
from shaderad.ir import arrays

# -- layout -----------------------------------------------------------------------------------


def _broadcast(r: Runner, node: arrays.Broadcast, given: list[Held]) -> Held:
    (x,) = given
    shape = r.shape(node.shape)
    extents = [1] * len(shape)
    for axis, extent in zip(node.axes, x.shape, strict=True):
        extents[axis] = extent
    return taken(x, np.broadcast_to(numbers(x.shape).reshape(extents), shape), shape)


def _reshape(r: Runner, node: arrays.Reshape, given: list[Held]) -> Held:
    return Held(given[0].element, r.shape(node.shape), given[0].value)


def _transpose(r: Runner, node: arrays.Transpose, given: list[Held]) -> Held:
    rows = numbers(given[0].shape).transpose(node.permutation)
    return taken(given[0], rows, rows.shape)


def _stretch(r: Runner, node: arrays.Slice | arrays.Place, shape: Shape) -> tuple[AnyArray, ...]:
    """The positions along each axis that a slice reads or a place writes."""
    starts = r.shape(node.starts)
    return np.ix_(
        *(s + t * np.arange(n) for s, t, n in zip(starts, node.steps, shape, strict=True))
    )


def _slice(r: Runner, node: arrays.Slice, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    rows = numbers(given[0].shape)[_stretch(r, node, shape)]
    return taken(given[0], rows, shape)


def _place(r: Runner, node: arrays.Place, given: list[Held]) -> Held:
    (x,) = given
    shape = r.shape(node.shape)
    rows = numbers(shape)[_stretch(r, node, x.shape)].reshape(-1)
    made = r.filled(x.element, shape)
    for base, new in zip(cells(made.value), cells(x.value), strict=True):
        base.data[rows] = new.data
    return made


def _concatenate(r: Runner, node: arrays.Concatenate, given: list[Held]) -> Held:
    starts = np.cumsum([0, *(prod(x.shape) for x in given)])
    parts = [numbers(x.shape) + start for x, start in zip(given, starts, strict=False)]
    rows = np.concatenate(parts, axis=node.axis)
    joined = given[0].value
    for x in given[1:]:
        joined = combined(lambda a, b: Cell(np.concatenate([a.data, b.data])), joined, x.value)
    return taken(Held(given[0].element, (), joined), rows, rows.shape)


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
    found = number[lead] * prod(rest) + numbers(rest)
    return found, np.broadcast_to(is_inside[lead], found.shape)


def _gather(r: Runner, node: arrays.Gather, given: list[Held]) -> Held:
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


def _scatter_add(r: Runner, node: arrays.ScatterAdd, given: list[Held]) -> Held:
    base, values, *index = given
    numbers, is_inside = _places(base.shape, index)
    inside, flat = is_inside.reshape(-1), numbers.reshape(-1)
    made = mapped(lambda c: Cell(c.data.copy()), base.value)
    for total, new in zip(cells(made), cells(values.value), strict=True):
        np.add.at(total.data, flat[inside], new.data[inside])
    return Held(base.element, base.shape, made)


def _last_writer(r: Runner, node: arrays.LastWriter, given: list[Held]) -> Held:
    index = cell(given[0].value).data
    found = np.full(r.size(node.count), -1)
    for j, k in enumerate(index):
        if 0 <= k < len(found):
            found[k] = j
    return ints(found)


def _arg_sort(r: Runner, node: arrays.ArgSort, given: list[Held]) -> Held:
    (x,) = given
    return ints(np.argsort(cell(x.value).data.reshape(x.shape), axis=-1, kind="stable"))


RULES = {
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
}
