"""Derivatives of elementwise and layout nodes.

Each rule is a pair: `push` takes the tangents of the operands; `pull` takes the cotangents of the
results, and a flag for each operand whose cotangent is wanted. `None` is a zero derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Value, operand_name
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape, Size
from shaderad.rules import composing as c
from shaderad.rules import expressions
from shaderad.rules.arrays import building as b

Derivatives = Sequence["Value | None"]


# y[i] = e(a[i])      y_dot[i] = push(e)(a[i], a_dot[i])      a_bar[i] = pull(e)(a[i], y_bar[i])


def push_elementwise(node: arrays.Elementwise, dots: Derivatives) -> Derivatives:
    value_by_name = _operands_by_name(node)
    tangents: dict[str, Expr | None] = {}
    for k, dot in enumerate(dots):
        if dot is not None:
            name = f"{operand_name(k)}_dot"
            value_by_name[name] = dot
            tangents[operand_name(k)] = c.variable(name, dot.element)
    y_dot = expressions.push(node.expr, tangents)
    return (None if y_dot is None else b.elementwise(y_dot, value_by_name, node.shape),)


def pull_elementwise(
    node: arrays.Elementwise,
    bars: Derivatives,
    wanted: Sequence[bool],
    *,
    may_be_discarded: bool = False,
) -> Derivatives:
    """If a `where` may discard the result, 0 times infinity is 0."""
    (bar,) = bars
    assert bar is not None
    names = [operand_name(k) for k, is_wanted in enumerate(wanted) if is_wanted]
    y_bar = c.variable("bar", bar.element)
    expr_by_name = expressions.pull(node.expr, y_bar, names)
    if may_be_discarded:
        expr_by_name = {
            name: expressions.without_unused(expr, y_bar) for name, expr in expr_by_name.items()
        }
    value_by_name = _operands_by_name(node) | {"bar": bar}
    return [
        b.elementwise(expr_by_name[name], value_by_name, node.shape)
        if name in expr_by_name
        else None
        for name in map(operand_name, range(len(wanted)))
    ]


def _operands_by_name(node: arrays.Elementwise) -> dict[str, Value]:
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
    return _linear(dots, lambda dot: _strided(arrays.Slice, dot, node, node.shape))


def pull_slice(node: arrays.Slice, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    return _linear(bars, lambda bar: _strided(arrays.Place, bar, node, node.operands[0].shape))


def push_place(node: arrays.Place, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: _strided(arrays.Place, dot, node, node.shape))


def pull_place(node: arrays.Place, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    return _linear(bars, lambda bar: _strided(arrays.Slice, bar, node, node.operands[0].shape))


def _strided(
    kind: type[arrays.Slice | arrays.Place],
    x: Value,
    node: arrays.Slice | arrays.Place,
    shape: Shape,
) -> Value:
    """A slice or its transpose, with the starts and steps of `node`."""
    return kind(operands=(x,), starts=node.starts, steps=node.steps, shape=shape).result


# y[i] = x[i + s mod n]      y_dot[i] = x_dot[i + s mod n]      x_bar[i] = y_bar[i + n - s mod n]


def push_roll(node: arrays.Roll, dots: Derivatives) -> Derivatives:
    return _linear(dots, lambda dot: b.roll(dot, node.axis, node.start))


def pull_roll(node: arrays.Roll, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
    count = node.operands[0].shape[node.axis]
    back = sizes.subtract(count, node.start)
    return _linear(bars, lambda bar: b.roll(bar, node.axis, back))


# y = [x0, x1, ..]               y_dot = [x0_dot, x1_dot, ..]        xk_bar = its slice of y_bar


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
    x_bars: list[Value | None] = []
    start: Size = 0
    for x, is_wanted in zip(node.operands, wanted, strict=True):
        extent = x.shape[node.axis]
        x_bars.append(b.piece(bar, node.axis, start, extent) if is_wanted else None)
        start = sizes.add(start, extent)
    return x_bars


def _linear(derivatives: Derivatives, change: Callable[[Value], Value]) -> Derivatives:
    """Applies a linear map to the one derivative, unless that is zero."""
    (derivative,) = derivatives
    return (None if derivative is None else change(derivative),)
