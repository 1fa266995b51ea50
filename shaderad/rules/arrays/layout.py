"""Derivatives of elementwise, layout and index nodes.

`push` takes the tangents of the operands; `pull` takes the cotangents of the results, and a flag
for each operand whose cotangent is wanted. `None` is a zero derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value, operand_name
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Matrix, Type, is_float, scalar_of
from shaderad.rules import expressions

Derivatives = Sequence["Value | None"]


class NodeRule(NamedTuple):
    """The derivative of a node, in both modes."""

    push: Callable[[Any, Derivatives], Derivatives]
    pull: Callable[[Any, Derivatives, Sequence[bool]], Derivatives]


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
    """The cotangents of operands. If a `where` may discard the result, 0 times infinity is 0."""
    (bar,) = bars
    assert bar is not None
    names = [operand_name(k) for k, is_wanted in enumerate(wanted) if is_wanted]
    y_bar = c.variable("bar", bar.element)
    expr_by_name = expressions.pull(node.expr, y_bar, names)
    if may_be_discarded:
        expr_by_name = {name: without_unused(expr, y_bar) for name, expr in expr_by_name.items()}
    value_by_name = _operands_by_name(node) | {"bar": bar}
    return [
        b.elementwise(expr_by_name[name], value_by_name, node.shape)
        if name in expr_by_name
        else None
        for name in map(operand_name, range(len(wanted)))
    ]


def without_unused(part: Expr, bar: Expr) -> Expr:
    """`part`, a multiple of the cotangent `bar`, with 0 for NaN where `bar` is 0.

    ``select(bar == 0, 0, part)`` would lose the derivative by `bar`.
    """
    if not (_is_numeric(part.type) and _is_numeric(bar.type)) or c.is_zero(part):
        return part
    if isinstance(part.type, Matrix):
        bars = c.rows(bar) if bar.type == part.type else [bar] * part.type.row_count
        rows = map(without_unused, c.rows(part), bars)
        return c.construct(part.type, list(rows))
    is_nan = c.apply(ops.ISNAN, part)
    if bar.type == part.type:
        is_zero = c.apply(ops.EQ, bar, c.number(bar.type, 0))
    else:
        tests = [c.apply(ops.EQ, x, c.number(x.type, 0)) for x in c.components(bar)]
        is_zero = c.splat(is_nan.type, reduce(lambda a, b: c.apply(ops.BIT_AND, a, b), tests))
    is_unused = c.apply(ops.BIT_AND, is_nan, is_zero)
    return c.select(is_unused, c.zero(part.type), part)


def _is_numeric(t: Type) -> bool:
    scalar = scalar_of(t)
    return scalar is not None and is_float(scalar)


def _operands_by_name(node: arrays.Elementwise) -> dict[str, Value]:
    return {operand_name(k): x for k, x in enumerate(node.operands)}


# -- linear nodes ---------------------------------------------------------------------------------
# y = A x      y_dot = A x_dot      x_bar = A^T y_bar


def _linear(
    apply: Callable[[Any, Value], Value], transpose: Callable[[Any, Value], Value]
) -> NodeRule:
    """The rule of a node that is linear in its first operand, and has no derivative by others."""

    def push(node: arrays.Node, dots: Derivatives) -> Derivatives:
        dot = dots[0]
        return (None if dot is None else apply(node, dot),)

    def pull(node: arrays.Node, bars: Derivatives, _: Sequence[bool]) -> Derivatives:
        (bar,) = bars
        assert bar is not None
        return (transpose(node, bar), *[None] * (len(node.operands) - 1))

    return NodeRule(push, pull)


def _sum_of_repeated(node: arrays.Broadcast, bar: Value) -> Value:
    (x,) = node.operands
    axis_of = dict(zip(node.axes, x.shape, strict=True))
    # Only an extent that is the number 1 is repeated. Symbolic extents that differ are equal in
    # this call.
    repeated = [k for k in range(len(node.shape)) if axis_of.get(k, 1) == 1 != node.shape[k]]
    return b.reshape(b.sum_over(bar, repeated), x.shape)


def _transposed(node: arrays.Transpose, bar: Value) -> Value:
    return b.transpose(bar, [node.permutation.index(k) for k in range(len(node.permutation))])


def _rolled_back(node: arrays.Roll, bar: Value) -> Value:
    return b.roll(bar, node.axis, sizes.subtract(bar.shape[node.axis], node.start))


def _strided(
    kind: type[arrays.Slice | arrays.Place],
    x: Value,
    node: arrays.Slice | arrays.Place,
    shape: Shape,
) -> Value:
    """A slice or its transpose, with the starts and steps of `node`."""
    return kind(operands=(x,), starts=node.starts, steps=node.steps, shape=shape).result


def gather(x: Value, *index: Value, is_inside: bool = False) -> Value:
    """A gather that reports nothing, because the primal has reported indices out of range."""
    return arrays.Gather(operands=(x, *index), is_reported=False, is_inside=is_inside).result


def sum_of(a: Value, b_: Value) -> Value:
    """``a + b_``; scatter-adds are chained, so that plans can join them."""
    for scattered, other in ((b_, a), (a, b_)):
        node = scattered.producer
        if isinstance(node, arrays.ScatterAdd) and b.is_zero(node.operands[0]):
            is_alike = node.operands[1].shape == other.shape
            if is_alike or isinstance(other.producer, arrays.ScatterAdd):
                return arrays.with_operands(node, (other, *node.operands[1:])).result
    return b.add(a, b_)


def scatter_add(base: Value, values: Value, *index: Value) -> Value:
    return arrays.ScatterAdd(operands=(base, values, *index)).result


LINEAR: dict[type[arrays.Node], NodeRule] = {
    # x repeated along axes; its transpose sums over those axes
    arrays.Broadcast: _linear(
        lambda node, x: b.broadcast(x, node.shape, node.axes), _sum_of_repeated
    ),
    arrays.Reshape: _linear(
        lambda node, x: b.reshape(x, node.shape),
        lambda node, bar: b.reshape(bar, node.operands[0].shape),
    ),
    arrays.Transpose: _linear(lambda node, x: b.transpose(x, node.permutation), _transposed),
    # y[i] = x[s + t i]              x_bar[s + t i] = y_bar[i], else 0
    arrays.Slice: _linear(
        lambda node, x: _strided(arrays.Slice, x, node, node.shape),
        lambda node, bar: _strided(arrays.Place, bar, node, node.operands[0].shape),
    ),
    arrays.Place: _linear(
        lambda node, x: _strided(arrays.Place, x, node, node.shape),
        lambda node, bar: _strided(arrays.Slice, bar, node, node.operands[0].shape),
    ),
    # y[i] = x[i + s mod n]          x_bar[i] = y_bar[i + n - s mod n]
    arrays.Roll: _linear(lambda node, x: b.roll(x, node.axis, node.start), _rolled_back),
    # y[j] = x[i[j]]                 x_bar[i[j]] += y_bar[j]
    # An index out of range reads 0 and adds nothing.
    arrays.Gather: _linear(
        lambda node, x: gather(x, *node.operands[1:], is_inside=node.is_inside),
        lambda node, bar: scatter_add(b.zeros(node.operands[0].type), bar, *node.operands[1:]),
    ),
}


# y = base, y[i[j]] += v[j]      y_dot = base_dot, y_dot[i[j]] += v_dot[j]
# base_bar = y_bar               v_bar[j] = y_bar[i[j]]


def push_scatter_add(node: arrays.ScatterAdd, dots: Derivatives) -> Derivatives:
    base, _, *index = node.operands
    base_dot, values_dot, *_ = dots
    if values_dot is None:
        return (base_dot,)
    return (scatter_add(b.or_zeros(base_dot, base), values_dot, *index),)


def pull_scatter_add(
    node: arrays.ScatterAdd, bars: Derivatives, wanted: Sequence[bool]
) -> Derivatives:
    (bar,) = bars
    assert bar is not None
    _, _, *index = node.operands
    values_bar = gather(bar, *index) if wanted[1] else None
    return (bar, values_bar, *[None] * len(index))


# y = [x0, x1, ...]               y_dot = [x0_dot, x1_dot, ...]        xk_bar = its slice of y_bar


def push_concatenate(node: arrays.Concatenate, dots: Derivatives) -> Derivatives:
    return (b.concatenate(list(map(b.or_zeros, dots, node.operands)), node.axis),)


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
