"""Reductions and scans along the last axis in NumPy, sequential along it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from shaderad.interpret.array_runner import ArrayValue, GraphRunner, ints, numbers, taken
from shaderad.interpret.cells import Cell, Value, cell, joined, mapped
from shaderad.interpret.memory import neutral
from shaderad.ir import arrays, ops
from shaderad.ir.types import Access


def _columns(x: ArrayValue) -> list[Value]:
    """For each position of the last axis the elements of all rows."""
    rows = numbers(x.shape).reshape(-1, x.shape[-1]) if prod(x.shape) else np.zeros((0, 0), int)
    if not rows.size:
        return []
    return [taken(x, rows[:, k], x.shape[:-1]).value for k in range(x.shape[-1])]


def _neutral(op: ops.Op, dtype: Any) -> Any:
    if op in (ops.MIN, ops.MAX):
        return neutral(Access.MIN if op is ops.MIN else Access.MAX, dtype)
    return op in (ops.MUL, ops.BIT_AND)


def _reduce(r: GraphRunner, node: arrays.Reduce, operands: list[ArrayValue]) -> ArrayValue:
    x, *init = operands
    shape = x.shape[:-1]
    columns = [*(start.value for start in init), *_columns(x)]
    if not columns:
        empty = r.filled(x.element, shape)
        if isinstance(node.op, ops.Op):
            op = node.op
            value = mapped(
                lambda c: Cell(np.full_like(c.data, _neutral(op, c.data.dtype))), empty.value
            )
            return ArrayValue(x.element, shape, value)
        assert not prod(shape), "a function reduces no empty rows"
        return empty
    total = columns[0]
    for column in columns[1:]:
        total = r.combine(node.op, total, column, prod(shape))
    return ArrayValue(x.element, shape, total)


def _scan(r: GraphRunner, node: arrays.Scan, operands: list[ArrayValue]) -> ArrayValue:
    (x,) = operands
    columns = _columns(x)
    if not columns:
        return x
    totals = [columns[0]]
    for column in columns[1:]:
        totals.append(r.combine(node.op, totals[-1], column, prod(x.shape[:-1])))
    # Totals lie column after column; the result has rows.
    count = prod(x.shape[:-1])
    rows = np.arange(count * x.shape[-1]).reshape(x.shape[-1], count).T
    return taken(ArrayValue(x.element, (), joined(totals)), rows, x.shape)


def _arg_extreme(r: GraphRunner, node: arrays.ArgExtreme, operands: list[ArrayValue]) -> ArrayValue:
    (x,) = operands
    data = cell(x.value).data.reshape(x.shape)
    if not data.size:
        return ints(np.zeros(x.shape[:-1]))
    # An infinity is a number: the first position that is not worse than all numbers of its row.
    best = (np.fmin if node.kind == "min" else np.fmax).reduce(data, axis=-1, keepdims=True)
    return ints(np.argmax(data == best, axis=-1))


RULES = {
    arrays.Reduce: _reduce,
    arrays.Scan: _scan,
    arrays.ArgExtreme: _arg_extreme,
}
