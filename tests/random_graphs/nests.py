"""Steps of random graphs for all layouts of work over threads.

They have inputs of their own, because layouts depend on extents: odd ones, multiples of 4, and more
than a workgroup has threads. Minima and maxima are those of inputs, so that float32 and float64
choose the same elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shaderad as sad
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import FLOAT, INT
from shaderad.rules.arrays.subgraphs import instantiate
from shaderad.trace.calls import Form, traced_variant
from tests.random_graphs.maker import EXTENTS, M, Maker, N, Step

MOST_ADDENDS = 2**22
"""The most products of which a step adds some."""
TRACED_AT = {"n": 1009, "m": 1319}
"""Sizes for which nothing is decided that holds for a few sizes only."""
LENGTHS = (6, 64, 129, 300, 1030, 2600, 9001)
"""The elements of rows."""


def composed(maker: Maker, function: Callable[..., Any], x: Value, *others: Value) -> Value:
    """A Python function on arrays at values, or `x` if it refuses the sizes of the graph."""
    values = (x, *others)
    variant = traced_variant(function, Form(tuple(v.type for v in values), TRACED_AT))
    if not variant.serves(maker.known):
        return x
    (result,) = instantiate(variant.graph, values)
    return result


def source(maker: Maker, *shape: Size) -> Value:
    """An input, stored or computed where it is read."""
    x = maker.add_input(*shape)
    if maker.whole(0, 2):
        return x
    factor = maker.pick([v for v in maker.pool if not v.shape] or [maker.add_input()])
    return b.applied(ops.MUL, x, b.broadcast(factor, shape, ()))


def with_bias(maker: Maker, x: Value, axis: int) -> Value:
    """A sum plus a number for each place of an axis, or the sum alone."""
    if maker.whole(0, 2):
        return x
    bias = b.broadcast(maker.add_input(x.shape[axis]), x.shape, (axis,))
    return b.applied(ops.TANH, b.applied(ops.ADD, x, bias))


def permuted(maker: Maker, shape: Shape) -> Value:
    """A source of this shape, whose axes lie in memory in any order."""
    order = [int(axis) for axis in maker.rng.permutation(len(shape))]
    x = source(maker, *(shape[axis] for axis in order))
    return b.transpose(x, [order.index(axis) for axis in range(len(shape))])


def convolution(maker: Maker, x: Value) -> Value:
    """Windows of any stride, padding and dilation, in groups; or sums of windows."""
    rank, groups = maker.whole(1, 3), maker.pick((1, 1, 2, 3))
    outputs, channels = groups * maker.pick((1, 3, 4, 8)), maker.pick((1, 2, 4, 5))
    extents = (maker.pick((N, M, 7, 12, 33, 130)), maker.pick((8, 17, 20)))[:rank]
    lead = maker.pick(((), (2,), (5,)))
    kernel = [maker.whole(1, 5) for _ in range(rank)]
    shape = outputs, channels, *kernel
    ones = b.full(shape, c.number(FLOAT, 0.5))
    weights = ones if not maker.whole(0, 4) else source(maker, *shape)
    stride, dilation = maker.whole(1, 4), maker.whole(1, 3)
    padding = maker.pick((0, 2, "same", [(k, 3 - k) for k in range(rank)]))

    def convolved(*operands: Any) -> Any:
        return sad.conv(*operands, stride, padding, dilation, groups)

    image = source(maker, *lead, groups * channels, *extents)
    return with_bias(maker, composed(maker, convolved, image, weights), len(lead))


def product(maker: Maker, x: Value) -> Value:
    """A product of matrices whose axes lie in memory in any order, with a bias, in batches."""
    lead = maker.pick(((), (), (3,)))
    rows, columns = maker.pick((N, M, 3, 16, 40)), maker.pick((N, M, 1, 5, 24, 64))
    count = maker.pick((N, M, 6, 40, 129, 1100))
    shape = *lead, rows, columns, count
    if not maker.is_small(shape, MOST_ADDENDS):
        return x
    rank = len(lead)
    is_shared = bool(maker.whole(0, 2))
    right_lead, right_axes = ((), ()) if is_shared else (lead, range(rank))
    left = b.broadcast(permuted(maker, (*lead, rows, count)), shape, (*range(rank + 1), rank + 2))
    right = b.broadcast(
        permuted(maker, (*right_lead, columns, count)), shape, (*right_axes, rank + 1, rank + 2)
    )
    return with_bias(maker, b.reduce(ops.ADD, b.applied(ops.MUL, left, right)), rank + 1)


def over_axes(maker: Maker, _: Value) -> Value:
    """Totals over any axes of an array, such as its columns."""
    shape = maker.pick(((1200, 8), (3000, 3), (N, 24), (M, N), (M, 7), (5, 40, 12)))
    count = maker.whole(1, len(shape) + 1)
    axes = sorted(int(axis) for axis in maker.rng.permutation(len(shape))[:count])
    op = maker.pick((ops.ADD, ops.ADD, ops.MUL, ops.MAX))
    x = maker.add_input(*shape)
    if op == ops.ADD:
        x = b.applied(ops.MUL, x, x)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rows = b.transpose(x, [*kept, *axes])
    extents = tuple(shape[axis] for axis in axes)
    return b.reduce(op, b.reshape(rows, (*rows.shape[: len(kept)], sizes.product(extents))))


def transposed_twice(maker: Maker, _: Value) -> Value:
    """Elements of two arrays whose axes lie in memory in different orders."""
    shape = maker.pick(((33, 64), (64, 36), (3, 40, 35), (N, 40), (2, 34, 3, 32)))
    return b.applied(maker.pick((ops.ADD, ops.MUL)), permuted(maker, shape), permuted(maker, shape))


def rows_of(maker: Maker) -> Value:
    """An input of some rows, few of them if they are long."""
    length = maker.pick((*LENGTHS, N, M))
    return maker.add_input(maker.pick((1, 2, 3, 20) if length in LENGTHS[:5] else (1, 3)), length)


def chained(maker: Maker, x: Value) -> Value:
    """Elements by totals of their rows, which depend on other totals."""
    rows = rows_of(maker) if not x.shape or maker.whole(0, 2) else x

    def normalised(x: Any) -> Any:
        return (x - sad.mean(x, axis=-1, keepdims=True)) / sad.sqrt(
            sad.var(x, axis=-1, keepdims=True) + 0.5
        )

    def weighted(x: Any) -> Any:
        return sad.softmax(x) * sad.sum(x * x, axis=-1, keepdims=True)

    functions = (sad.softmax, sad.log_softmax, sad.logsumexp, normalised, weighted)
    return composed(maker, maker.pick(functions), rows)


def best(maker: Maker, x: Value) -> Value:
    """The least or largest element of rows, or elements at their places."""

    def at_least(x: Any, y: Any) -> Any:
        return sad.take_along_axis(y, sad.argmin(x, axis=-1)[..., None], axis=-1)

    def at_largest(x: Any, y: Any) -> Any:
        chosen = sad.take_along_axis(y, sad.argmax(x, axis=-1)[..., None], axis=-1)
        return chosen[..., 0] + sad.reduce(sad.min, x, axis=-1)

    def largest(x: Any, y: Any) -> Any:
        return sad.reduce(sad.max, x, axis=-1) * sad.sum(y, axis=-1)

    rows = rows_of(maker)
    function = maker.pick((at_least, at_largest, largest))
    return composed(maker, function, rows, maker.add_input(*rows.shape))


def running(maker: Maker, x: Value) -> Value:
    """Running totals along any axis, from either end, with or without an element's own."""
    is_own = not x.shape or bool(maker.whole(0, 2))
    rows = rows_of(maker) if is_own else x
    op = maker.pick((sad.add, sad.mul, sad.max) if is_own else (sad.add, sad.mul))
    axis = maker.pick((-1, -1, 0))
    exclusive, reverse = bool(maker.whole(0, 2)), bool(maker.whole(0, 2))
    init = 0.5 if op is sad.max else maker.pick((None, 0.5))  # No largest number is -infinity.

    def scanned(x: Any) -> Any:
        return sad.scan(op, x, init, axis=axis, exclusive=exclusive, reverse=reverse)

    return composed(maker, scanned, rows)


def iterated(maker: Maker, _: Value) -> Value:
    """A loop whose steps read other elements: neighbours, all of a row, or those before."""
    extent, count = maker.pick((*EXTENTS, 8, 40, 130)), maker.whole(1, 6)
    start, matrix = maker.add_input(extent), maker.add_input(extent, extent)
    k, carry, weights = (Value(t) for t in (ArrayType(INT, ()), start.type, matrix.type))
    value = carry
    for _ in range(maker.whole(1, 3)):
        value = b.applied(ops.SIN, b.applied(ops.ADD, carry, maker.pick(BODIES)(value, weights)))
    node = arrays.Loop(
        operands=(start, matrix), body=Graph((k, carry, weights), (value, carry)), count=count,
        carry_count=1, constant_count=1, is_reversed=bool(maker.whole(0, 2)),
        checkpoint=maker.pick(("all", "sqrt")),
    )  # fmt: skip
    return maker.pick(node.results)


def _neighbours(x: Value, _: Value) -> Value:
    fill = c.number(FLOAT, 0.5)
    return b.applied(ops.SUB, b.shift_left(x, fill), b.shift_right(x, fill))


def _multiplied(x: Value, weights: Value) -> Value:
    return b.reduce(ops.ADD, b.applied(ops.MUL, weights, b.broadcast(x, weights.shape, (1,))))


def _total(x: Value, _: Value) -> Value:
    return b.broadcast(b.reduce(ops.ADD, x), x.shape, ())


def _before(x: Value, _: Value) -> Value:
    return b.scan(ops.ADD, x)


BODIES = (_neighbours, _multiplied, _total, _before)
NESTS: tuple[Step, ...] = (
    convolution, convolution, convolution, product, product, over_axes, transposed_twice, chained,
    chained, best, running, running, iterated,
)  # fmt: skip
