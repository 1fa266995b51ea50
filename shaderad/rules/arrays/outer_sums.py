"""Cotangents to which all iterations of a loop add -> sums after the loop.

    z_bar = sum over k of c[k]          c[k] = x[k] * g[k], both repeated along axes of z

A loop that carries the sum reads and writes all of it in each iteration. If c is elementwise in
values with fewer axes, the loop keeps these values as rows, and one contraction after the loop sums
their products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir import building as b
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size


def factors(addend: Value) -> tuple[Value, ...]:
    """The values with fewer axes from which `addend` is computed elementwise, if there are any."""
    leaves: dict[Value, None] = {}
    pending = [addend]
    while pending:
        v = pending.pop()
        if _axis_count(v) < _axis_count(addend):
            leaves[v] = None
        elif _is_layout(v):
            assert v.producer is not None
            pending += v.producer.operands
        else:
            return ()
    return tuple(leaves)


def _is_layout(v: Value) -> bool:
    """True if each element of `v` depends on one of each operand."""
    match v.producer:
        case arrays.Elementwise() | arrays.Broadcast() | arrays.Transpose():
            return True
        case arrays.Reshape(operands=(x,)):
            return _axis_count(x) == _axis_count(v)
        case _:
            return False


def _axis_count(v: Value) -> int:
    """The number of axes, apart from those of extent 1."""
    return sum(extent != 1 for extent in v.shape)


def total(addend: Value, row_by_factor: Mapping[Value, Value], count: Size) -> Value:
    """The sum of `addend` over `count` iterations, computed from the rows of its factors."""
    return b.sum_over(_rows(addend, dict(row_by_factor), count), [0])


def _rows(v: Value, rows_by_value: dict[Value, Value], count: Size) -> Value:
    """`v` for all iterations, which are its first axis."""
    if v not in rows_by_value:
        node, shape = v.producer, (count, *v.shape)
        assert node is not None
        operands = tuple(_rows(x, rows_by_value, count) for x in node.operands)
        match node:
            case arrays.Elementwise() | arrays.Reshape():
                new = replace(node, operands=operands, shape=shape)
            case arrays.Broadcast():
                new = replace(node, operands=operands, shape=shape, axes=_behind(node.axes))
            case arrays.Transpose():
                new = replace(node, operands=operands, permutation=_behind(node.permutation))
            case _:
                raise AssertionError(node)
        rows_by_value[v] = new.result
    return rows_by_value[v]


def _behind(axes: Sequence[int]) -> tuple[int, ...]:
    """Axis 0, then `axes` shifted by one, because a new axis comes first."""
    return (0, *(axis + 1 for axis in axes))
