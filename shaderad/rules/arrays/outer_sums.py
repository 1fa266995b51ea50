"""Cotangents to which all iterations of a loop add -> sums after the loop.

    z_bar = sum over k of c[k]          c[k] = x[k] * g[k], both repeated along axes of z

A loop that carries the sum reads and writes all of it in each iteration. Where c is elementwise in
values of fewer axes, these are kept as rows, whose products one contraction adds after the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size
from shaderad.rules.arrays import building as b


def factors(addend: Value) -> tuple[Value, ...]:
    """The values of fewer axes in which `addend` is elementwise; empty if there are none such."""
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
    """The sum of `addend` over `count` iterations, whose factors are rows of arrays."""
    return b.sum_over(_rows(addend, dict(row_by_factor), count), [0])


def _rows(v: Value, known: dict[Value, Value], count: Size) -> Value:
    """`v` of all iterations, which come first."""
    if v not in known:
        node, shape = v.producer, (count, *v.shape)
        assert node is not None
        operands = tuple(_rows(x, known, count) for x in node.operands)
        match node:
            case arrays.Elementwise() | arrays.Reshape():
                new = replace(node, operands=operands, shape=shape)
            case arrays.Broadcast():
                new = replace(node, operands=operands, shape=shape, axes=_behind(node.axes))
            case arrays.Transpose():
                new = replace(node, operands=operands, permutation=_behind(node.permutation))
            case _:
                raise AssertionError(node)
        known[v] = new.result
    return known[v]


def _behind(axes: Sequence[int]) -> tuple[int, ...]:
    """The first axis, then `axes`, which it moves by one."""
    return (0, *(axis + 1 for axis in axes))
