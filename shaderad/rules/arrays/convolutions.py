"""Derivatives of convolutions, which are convolutions again, and a convolution as a sum.

A convolution and its cotangents sum products of two of `x[t]`, `w[k]` and `y_bar[p]`. Their
positions satisfy, along each spatial axis,
    spacing t = stride p + dilation k - padding.
The equation keeps its form if it is solved for p or k instead of t, so no cotangent is scattered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Convolution, Value
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape
from shaderad.rules.arrays.layout import Derivatives, gather

# y = x * w                      y_dot = x_dot * w + x * w_dot


def push_convolution(node: Convolution, dots: Derivatives) -> Derivatives:
    (x, w), (x_dot, w_dot) = node.operands, dots
    pairs = [(p, q) for p, q in ((x_dot, w), (x, w_dot)) if p is not None and q is not None]
    first, *rest = (replace(node, operands=pair).result for pair in pairs)
    return (b.add(first, *rest) if rest else first,)


# x_bar[t] = sum over o, k of y_bar[p] w[k]      stride p = spacing t - dilation k + padding
# w_bar[k] = sum over b, p of y_bar[p] x[t]      spacing t = dilation k + stride p - padding


def pull_convolution(node: Convolution, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    (bar,), (x, w) = bars, node.operands
    assert bar is not None
    return (_x_bar(node, bar, w) if wanted[0] else None,
            _w_bar(node, bar, x) if wanted[1] else None)  # fmt: skip


def _x_bar(node: Convolution, bar: Value, w: Value) -> Value:
    signs = [1 if stride > 0 else -1 for stride in node.strides]
    return Convolution(
        operands=(bar, _swapped(w)),
        extents=node.operands[0].shape[3:],
        strides=_scaled(node.spacings, signs),
        dilations=_scaled(node.dilations, [-s for s in signs]),
        spacings=_scaled(node.strides, signs),
        padding=tuple(sizes.multiply(-s, p) for s, p in zip(signs, node.padding, strict=True)),
        span=node.span,
    ).result


def _w_bar(node: Convolution, bar: Value, x: Value) -> Value:
    swapped = replace(
        node,
        operands=(_swapped(x), _swapped(bar)),
        extents=node.operands[1].shape[3:],
        strides=node.dilations,
        dilations=node.strides,
    )
    return _swapped(swapped.result)


def _scaled(numbers: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    return tuple(p * q for p, q in zip(numbers, factors, strict=True))


def _swapped(x: Value) -> Value:
    """`x` with its second and third axes swapped."""
    return b.transpose(x, [0, 2, 1, *range(3, len(x.shape))])


# -- sums of products -------------------------------------------------------------------------


def as_sum(node: Convolution) -> Value:
    """The convolution as a sum of products over the last axis; the products are not stored."""
    x, w = node.operands
    # An axis for a single group would separate the sum from the elementwise nodes after it.
    groups = () if x.shape[0] == 1 else x.shape[:1]
    channels, kernel = x.shape[2], w.shape[3:]
    rows = (*groups, x.shape[1], w.shape[1], *node.extents)
    whole = (*rows, channels, *kernel)
    summed, lead = [*range(len(rows), len(whole))], [*range(len(groups))]
    batch, output, *spatial = range(len(groups), len(rows))
    windows = _windows(node)
    windows = b.reshape(windows, (*groups, *windows.shape[1:]))
    weights = b.reshape(w, (*groups, *w.shape[1:]))
    products = b.applied(
        ops.MUL,
        b.broadcast(windows, whole, [*lead, batch, *spatial, *summed]),
        b.broadcast(weights, whole, [*lead, output, *summed]),
    )
    flat = b.reshape(products, (*rows, sizes.product((channels, *kernel))))
    return b.reshape(b.reduce(ops.ADD, flat), node.result.shape)


def _windows(node: Convolution) -> Value:
    """``x[g, b, c, t...]`` with axes g, b, p..., c, k...; 0 where t is out of range."""
    x, w = node.operands
    rank = len(node.extents)
    positions = [_position(node, (*node.extents, *w.shape[3:]), axis) for axis in range(rank)]
    read = gather(b.transpose(x, [*range(3, 3 + rank), 0, 1, 2]), *positions)
    # Its axes are p..., k..., g, b, c.
    group, batch, channel = range(2 * rank, 2 * rank + 3)
    return b.transpose(read, [group, batch, *range(rank), channel, *range(rank, 2 * rank)])


def _position(node: Convolution, whole: Shape, axis: int) -> Value:
    """Positions t for each p and k along a spatial axis, and -1 where there is none."""
    p, k = (b.iota(whole, start + axis) for start in (0, len(node.extents)))
    size = arrays.SizeOf(operands=(), size=node.padding[axis]).result
    padding = b.broadcast(size, whole, ())
    stride, dilation, spacing = node.strides[axis], node.dilations[axis], node.spacings[axis]

    def position(of: Sequence[Expr]) -> Expr:
        left = c.apply(ops.MUL, of[0], c.whole(stride))
        right = c.apply(ops.MUL, of[1], c.whole(dilation))
        t = c.apply(ops.SUB, c.apply(ops.ADD, left, right), of[2])
        if spacing == 1:
            return t
        divisor = c.whole(spacing)
        remainder = c.apply(ops.MOD, t, divisor)
        is_whole = c.apply(ops.EQ, remainder, c.whole(0))
        return c.select(is_whole, c.apply(ops.FLOOR_DIV, t, divisor), c.whole(-1))

    return b.composed(position, (p, k, padding))
