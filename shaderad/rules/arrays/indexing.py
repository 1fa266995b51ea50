"""Derivatives of gather and scatter-add: each is the transpose of the other."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import arrays
from shaderad.ir.arrays import Value
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives


def gather(x: Value, *index: Value) -> Value:
    """Reads without reporting: the primal reported indices out of range."""
    return arrays.Gather(operands=(x, *index), is_reported=False).result


def scatter_add(base: Value, values: Value, *index: Value) -> Value:
    return arrays.ScatterAdd(operands=(base, values, *index)).result


# y[j] = x[i[j]]           y_dot[j] = x_dot[i[j]]           x_bar[i[j]] += y_bar[j]
# An index out of range reads 0 and adds nothing.


def push_gather(node: arrays.Gather, dots: Derivatives) -> Derivatives:
    dot, *_ = dots
    return (None if dot is None else gather(dot, *node.operands[1:]),)


def pull_gather(node: arrays.Gather, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    x, *index = node.operands
    return (scatter_add(b.zeros(x.type), bar, *index), *[None] * len(index))


# y = base, y[i[j]] += v[j]      y_dot = base_dot, y_dot[i[j]] += v_dot[j]
# base_bar = y_bar               v_bar[j] = y_bar[i[j]]


def push_scatter_add(node: arrays.ScatterAdd, dots: Derivatives) -> Derivatives:
    base, _, *index = node.operands
    base_dot, values_dot, *_ = dots
    if values_dot is None:
        return (base_dot,)
    start = b.zeros(base.type) if base_dot is None else base_dot
    return (scatter_add(start, values_dot, *index),)


def pull_scatter_add(
    node: arrays.ScatterAdd, bars: Derivatives, wanted: Sequence[bool]
) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    _, _, *index = node.operands
    values_bar = gather(bar, *index) if wanted[1] else None
    return (bar, values_bar, *[None] * len(index))
