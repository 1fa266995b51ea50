"""Reductions and scans along the last axis, in NumPy: one position after the other."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from shaderad.interpret.array_runner import Held, Runner, ints, numbers, taken
from shaderad.interpret.cells import Cell, Value, cell, combined, mapped
from shaderad.ir import arrays, ops


def _columns(x: Held) -> list[Value]:
    """The elements of all rows at each position of the last axis."""
    rows = numbers(x.shape).reshape(-1, x.shape[-1]) if prod(x.shape) else np.zeros((0, 0), int)
    if not rows.size:
        return []
    return [taken(x, rows[:, k], x.shape[:-1]).value for k in range(x.shape[-1])]


def _neutral(op: ops.Op, dtype: Any) -> Any:
    if op in (ops.MIN, ops.MAX):
        bound = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
        return bound if op == ops.MIN else lowest
    return op in (ops.MUL, ops.BIT_AND)


def _reduce(r: Runner, node: arrays.Reduce, given: list[Held]) -> Held:
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


def _scan(r: Runner, node: arrays.Scan, given: list[Held]) -> Held:
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
    return taken(Held(x.element, (), stacked), rows, x.shape)


def _arg_extreme(r: Runner, node: arrays.ArgExtreme, given: list[Held]) -> Held:
    (x,) = given
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
