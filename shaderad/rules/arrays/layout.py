"""Derivatives of nodes by element, and of those that lay elements out anew.

Each rule is a pair: `push` takes the tangents of the operands, `pull` the cotangents of the
results and which operands want theirs. `None` is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Value, operand_name
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Size
from shaderad.rules import composing as c
from shaderad.rules import expressions
from shaderad.rules.arrays import building as b

Derivatives = Sequence["Value | None"]


# y[i] = e(a[i])      y_dot[i] = push(e)(a[i], a_dot[i])      a_bar[i] = pull(e)(a[i], y_bar[i])


def push_elementwise(node: arrays.Elementwise, dots: Derivatives) -> Derivatives:
    given = _named(node)
    tangents: dict[str, Expr | None] = {}
    for k, dot in enumerate(dots):
        if dot is not None:
            name = f"{operand_name(k)}_dot"
            given[name] = dot
            tangents[operand_name(k)] = c.variable(name, dot.element)
    found = expressions.push(node.expr, tangents)
    return (None if found is None else b.elementwise(found, given, node.shape),)


def pull_elementwise(
    node: arrays.Elementwise, bars: Derivatives, wanted: Sequence[bool]
) -> Derivatives:
    return _pull_elementwise(node, bars, wanted, lambda part, _: part)


def pull_unused(node: arrays.Elementwise, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    """The same for a node that a choice may not use: then 0 times infinity is 0."""
    return _pull_elementwise(node, bars, wanted, expressions.without_unused)


def _pull_elementwise(
    node: arrays.Elementwise,
    bars: Derivatives,
    wanted: Sequence[bool],
    finished: Callable[[Expr, Expr], Expr],
) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    names = [operand_name(k) for k, is_wanted in enumerate(wanted) if is_wanted]
    bar_expr = c.variable("bar", bar.element)
    pulled = expressions.pull(node.expr, bar_expr, names)
    found = {name: finished(part, bar_expr) for name, part in pulled.items()}
    given = _named(node) | {"bar": bar}
    return [
        b.elementwise(found[name], given, node.shape) if name in found else None
        for name in map(operand_name, range(len(wanted)))
    ]


def _named(node: arrays.Elementwise) -> dict[str, Value]:
    return {operand_name(k): x for k, x in enumerate(node.operands)}


# y = x repeated along axes      y_dot = x_dot repeated      x_bar = y_bar summed over those axes


def push_broadcast(node: arrays.Broadcast, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: b.broadcast(dot, node.shape, node.axes))


def pull_broadcast(node: arrays.Broadcast, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    (x,) = node.operands
    axis_of = dict(zip(node.axes, x.shape, strict=True))
    repeated = [
        k for k, extent in enumerate(node.shape) if k not in axis_of or axis_of[k] != extent
    ]
    return _linear(bars, lambda bar: b.reshape(b.sum_over(bar, repeated), x.shape))


def push_reshape(node: arrays.Reshape, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: b.reshape(dot, node.shape))


def pull_reshape(node: arrays.Reshape, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    return _linear(bars, lambda bar: b.reshape(bar, node.operands[0].shape))


def push_transpose(node: arrays.Transpose, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: b.transpose(dot, node.permutation))


def pull_transpose(node: arrays.Transpose, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    back = [node.permutation.index(k) for k in range(len(node.permutation))]
    return _linear(bars, lambda bar: b.transpose(bar, back))


# y[i] = x[s + t i]      y_dot[i] = x_dot[s + t i]      x_bar[s + t i] = y_bar[i], else 0


def push_slice(node: arrays.Slice, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: _slice(dot, node))


def pull_slice(node: arrays.Slice, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    return _linear(bars, lambda bar: _place(bar, node, node.operands[0]))


def push_place(node: arrays.Place, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: _place(dot, node, node.result))


def pull_place(node: arrays.Place, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    (x,) = node.operands
    return _linear(
        bars,
        lambda bar: (
            arrays.Slice(
                operands=(bar,), starts=node.starts, steps=node.steps, shape=x.shape
            ).result
        ),
    )


def _slice(x: Value, node: arrays.Slice) -> Value:
    return arrays.Slice(
        operands=(x,), starts=node.starts, steps=node.steps, shape=node.shape
    ).result


def _place(x: Value, node: arrays.Slice | arrays.Place, like: Value) -> Value:
    return arrays.Place(
        operands=(x,), starts=node.starts, steps=node.steps, shape=like.shape
    ).result


# y = x0, x1, .. in a row        y_dot = x0_dot, x1_dot, ..          xk_bar = its part of y_bar


def push_concatenate(node: arrays.Concatenate, dots: Derivatives) -> Derivatives:
    parts = [
        b.zeros(x.type) if dot is None else dot for x, dot in zip(node.operands, dots, strict=True)
    ]
    return (b.concatenate(parts, node.axis),)


def pull_concatenate(
    node: arrays.Concatenate, bars: Derivatives, wanted: Sequence[bool]
) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    found: list[Value | None] = []
    start: Size = 0
    for x, is_wanted in zip(node.operands, wanted, strict=True):
        extent = x.shape[node.axis]
        found.append(b.piece(bar, node.axis, start, extent) if is_wanted else None)
        start = sizes.add(start, extent)
    return found


def _linear(given: Derivatives, change: Callable[[Value], Value]) -> Derivatives:
    """What a node of one operand and one result that is linear makes of a derivative."""
    (one,) = given
    return (None if one is None else change(one),)
