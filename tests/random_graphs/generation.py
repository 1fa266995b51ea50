"""Random graphs over symbolic sizes.

Values stay near 1, and choices (positions, conditions) come from whole numbers alone, so that
float32 and float64 take the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

import shaderad as sad
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.sizes import Size
from shaderad.ir.types import DOUBLE, FLOAT, HALF, INT, Scalar, Struct, Vector
from shaderad.rules.arrays.scan_operators import fold_by_bin
from shaderad.rules.arrays.subgraphs import instantiate
from shaderad.rules.batching import batched
from tests.random_graphs.maker import (
    EXTENTS,
    LARGEST_RANK,
    Maker,
    Step,
    bounded,
    numbers,
)
from tests.random_graphs.nests import MOST_ADDENDS, NESTS

SIZES = (0, 1, 2, 3, 5, 8, 65, 300)


@dataclass(frozen=True)
class Case:
    """A graph, and the sizes at which it runs."""

    graph: Graph
    sizes: dict[str, int]
    seed: int


def case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    known = {name: int(SIZES[rng.integers(len(SIZES))]) for name in "nm"}
    return Case(Maker(rng, STEPS, known).graph(), known, seed)


# -- steps ------------------------------------------------------------------------------------


def unary(maker: Maker, x: Value) -> Value:
    return b.applied(maker.pick((ops.SIN, ops.COS, ops.TANH, ops.NEG, ops.EXP)), x)


def binary(maker: Maker, x: Value) -> Value:
    return b.applied(maker.pick((ops.ADD, ops.SUB, ops.MUL)), x, maker.alike(x))


def chosen(maker: Maker, x: Value) -> Value:
    """One side of a condition by position, evaluated alone."""
    if not x.shape:
        return x
    names = {"a": x, "b": maker.alike(x), "i": numbers(x.shape, maker.axis(x), 3, 0)}
    test = c.apply(ops.GT, c.variable("i", INT), c.whole(0))
    expr = nodes.Conditional(type=FLOAT, condition=test, if_true=c.variable("a", FLOAT),
                             if_false=c.variable("b", FLOAT))  # fmt: skip
    return b.elementwise(expr, names, x.shape)


def in_struct(maker: Maker, x: Value) -> Value:
    """Through an array of structs of a vector and a scalar, reduced or scanned field by field."""
    t = Struct("Pair", (("v", Vector(FLOAT, 2)), ("s", FLOAT)))
    other = maker.alike(x)
    parts = {"a": x, "b": other}
    first = c.construct(Vector(FLOAT, 2), [c.variable("a", FLOAT), c.variable("b", FLOAT)])
    pair = b.elementwise(c.construct(t, [first, c.variable("b", FLOAT)]), parts, x.shape)
    if x.shape and maker.whole(0, 2):
        pair = b.scan(ops.ADD, pair)
    p = c.variable("p", t)
    total = c.apply(ops.ADD, c.component(c.field(p, "v"), 1), c.field(p, "s"))
    return b.elementwise(total, {"p": pair}, x.shape)


def transposed(_: Maker, x: Value) -> Value:
    return b.transpose(x, [*range(1, len(x.shape)), 0]) if x.shape else x


def reshaped(maker: Maker, x: Value) -> Value:
    """As one column, as one row of all, or with extents in another order."""
    count = sizes.product(x.shape)
    return b.reshape(x, maker.pick(((count, 1), (count,), (1, *x.shape), x.shape[::-1])))


def sliced(maker: Maker, x: Value) -> Value:
    """All positions but the first of an axis, every second one, or none."""
    if not x.shape:
        return x
    axis, doubled = maker.axis(x), b.concatenate((x, x), maker.axis(x))
    if doubled.shape[axis] == x.shape[axis]:
        return b.piece(x, axis, 0, maker.pick((0, x.shape[axis])))
    start, step = maker.pick(((1, 1), (0, 2), (x.shape[axis], 1)))
    return b.piece(doubled, axis, start, x.shape[axis], step)


def reversed_(_: Maker, x: Value) -> Value:
    return b.reverse(x) if x.shape else x


def shifted(maker: Maker, x: Value) -> Value:
    move = maker.pick((b.shift_left, b.shift_right))
    return move(x, c.number(FLOAT, 0.5)) if x.shape else x


def repeated(maker: Maker, x: Value) -> Value:
    return b.along_last(x, maker.pick(EXTENTS))


def joined(maker: Maker, x: Value) -> Value:
    if not x.shape:
        return x
    axis = maker.axis(x)
    both = b.concatenate((x, maker.alike(x)), axis)
    return b.piece(both, axis, maker.pick((0, x.shape[axis])), x.shape[axis])


def rolled(maker: Maker, x: Value) -> Value:
    if not x.shape:
        return x
    axis = maker.axis(x)
    start = maker.pick((0, 1, x.shape[axis]))
    return b.roll(x, axis, start) if x.shape[axis] != 0 or start == 0 else x


def placed(maker: Maker, x: Value) -> Value:
    if not x.shape:
        return x
    axis, step = maker.axis(x), maker.whole(1, 3)
    starts: list[Size] = [0] * len(x.shape)
    steps, shape = [1] * len(x.shape), [*x.shape]
    starts[axis], steps[axis] = 1, step
    shape[axis] = sizes.add(sizes.multiply(x.shape[axis], step), 1)
    node = arrays.Place(operands=(x,), starts=tuple(starts), steps=tuple(steps), shape=tuple(shape))
    return b.piece(node.result, axis, 1, x.shape[axis], step)


def laid_out(maker: Maker, x: Value) -> Value:
    """Through no, one or two layout nodes, which use nothing but `x`."""
    for _ in range(maker.whole(0, 3)):
        made = maker.pick(LAYOUTS)(maker, x)
        x = made if maker.is_small(made.shape) else x
    return x


def inside(index: Value, extent: Size) -> Value:
    """An index with the nearest position of an axis in place of those that do not exist."""
    bound = b.broadcast(arrays.SizeOf(operands=(), size=extent).result, index.shape, [])
    at_least = b.applied(ops.MAX, index, b.full(index.shape, c.whole(0)))
    return b.applied(ops.MIN, at_least, b.plus(bound, -1))


def gathered(maker: Maker, x: Value) -> Value:
    """By one or two index arrays, in range and reported, or out of range and read as 0."""
    x = laid_out(maker, x)
    if not x.shape:
        return x
    shape = maker.pick(((maker.pick(EXTENTS),), (3, maker.pick(EXTENTS))))
    count = maker.whole(1, min(2, len(x.shape)) + 1)
    index = [numbers(shape, axis % len(shape), 7 - axis, -2) for axis in range(count)]
    is_reported = bool(maker.whole(0, 2))
    if is_reported:
        index = [inside(one, extent) for one, extent in zip(index, x.shape, strict=False)]
    return arrays.Gather(operands=(x, *index), is_reported=is_reported).result


def element(maker: Maker, x: Value, k: Value) -> Value:
    """One element, chosen by a whole number of shape ()."""
    x = laid_out(maker, x)
    index = [inside(k, extent) for extent in x.shape]
    if not index:
        return x
    return arrays.Gather(operands=(x, *index), is_reported=bool(maker.whole(0, 2))).result


def scattered(maker: Maker, x: Value) -> Value:
    base, x = laid_out(maker, maker.alike(x)), laid_out(maker, x)
    if not x.shape:
        return x
    index = numbers(x.shape[:1], 0, 5, -1)
    if base.shape[1:] != x.shape[1:] or not base.shape:
        base = b.zeros(x.type)
    return arrays.ScatterAdd(operands=(base, x, index)).result


def read_together(maker: Maker, x: Value) -> Value:
    """Several arrays, and one of them twice, by two index arrays, of which most share the first."""
    if not x.shape:
        return x
    shape = (maker.pick(EXTENTS),)
    near, far = (numbers(shape, 0, modulus, -2) for modulus in (7, 5))
    tables = [x, *(maker.alike(x) for _ in range(maker.whole(1, 4)))]
    read = [arrays.Gather(operands=(v, near), is_reported=False).result for v in tables]
    read.append(arrays.Gather(operands=(x, far), is_reported=False).result)
    return reduce(lambda a, v: b.applied(ops.MUL, bounded(a), v), read)


def scattered_together(maker: Maker, x: Value) -> Value:
    """Into several arrays of one shape, from elements that are also stored."""
    if not x.shape:
        return x
    near, far = (numbers(x.shape[:1], 0, modulus, -1) for modulus in (5, 4))
    elements = bounded(b.applied(ops.EXP, x))
    maker.pool.append(elements)
    zeros = b.zeros(x.type)
    added = [
        arrays.ScatterAdd(operands=(base, v, index)).result
        for base, v, index in (
            (zeros, elements, near), (maker.alike(x), elements, far), (x, maker.alike(x), near),
        )
    ]  # fmt: skip
    return reduce(lambda a, v: b.applied(ops.MUL, bounded(a), bounded(v)), added)


def binned(maker: Maker, x: Value) -> Value:
    """Rows folded by bin, each from an init of its own."""
    x = laid_out(maker, x)
    if not x.shape:
        return x
    first = numbers((maker.pick(EXTENTS),), 0, 3, 0)
    init = arrays.Gather(operands=(x, first), is_reported=False).result
    return fold_by_bin(maker.pick((ops.ADD, ops.MUL)), init, x, numbers(x.shape[:1], 0, 6, -1))


def in_other_floats(maker: Maker, x: Value) -> Value:
    """Added to and read by index array as half or double, which no device adds atomically."""
    x = converted(laid_out(maker, x), maker.pick((HALF, DOUBLE)))
    if not x.shape:
        return converted(x, FLOAT)
    base = maker.pick((b.zeros(x.type), x))
    added = arrays.ScatterAdd(operands=(base, x, numbers(x.shape[:1], 0, 5, -1))).result
    index = numbers((maker.pick(EXTENTS),), 0, 4, -1)
    return converted(arrays.Gather(operands=(added, index), is_reported=False).result, FLOAT)


def converted(x: Value, scalar: Scalar) -> Value:
    return b.elementwise(c.convert(scalar, c.variable("x", x.element)), {"x": x}, x.shape)


def last_written(maker: Maker, x: Value) -> Value:
    if not x.shape:
        return x
    index = numbers(x.shape[:1], 0, 4, -1)
    last = arrays.LastWriter(operands=(index,), count=maker.pick(EXTENTS)).result
    return arrays.Gather(operands=(x, last), is_reported=False).result


def reduced(maker: Maker, x: Value) -> Value:
    op = maker.pick((ops.ADD, ops.MUL))
    return b.reduce(op, x) if x.shape else x


def normalised(maker: Maker, x: Value) -> Value:
    """Elements of rows by totals of these, once or twice, as in a softmax."""
    for _ in range(maker.whole(1, 3) if x.shape else 0):
        *rows, _ = axes = range(len(x.shape))
        total = b.reduce(maker.pick((ops.ADD, ops.MUL)), b.applied(ops.MUL, x, maker.alike(x)))
        spread = b.broadcast(bounded(total), x.shape, rows)
        moved = numbers(x.shape, axes[-1], 3, 0)
        x = bounded(b.applied(maker.pick((ops.ADD, ops.MUL)), x, spread))
        x = b.where(b.applied(ops.GT, moved, b.full(x.shape, c.whole(0))), x, spread)
    return x


def multiplied(maker: Maker, x: Value) -> Value:
    """A sum of products with an array that shares the last axis, as rows and columns."""
    if not 0 < len(x.shape) < LARGEST_RANK:
        return x
    others = [v for v in maker.pool if 0 < len(v.shape) < 3 and v.shape[-1] == x.shape[-1]]
    y = maker.pick(others or [x])
    *rows, count = x.shape
    *columns, _ = y.shape
    shape = (*rows, *columns, count)
    last = len(shape) - 1
    if not maker.is_small(shape, MOST_ADDENDS):
        return x
    left = b.broadcast(x, shape, (*range(len(rows)), last))
    right = b.broadcast(y, shape, (*range(len(rows), last), last))
    difference = b.applied(ops.SUB, left, right)
    product = b.applied(ops.MUL, left if maker.whole(0, 2) else difference, right)
    return b.reduce(ops.ADD, product)


def convolved(maker: Maker, x: Value) -> Value:
    """A convolution over the last axis or two; positions may jump, and lie outside of `x`."""
    weights = [v for v in maker.pool if len(v.shape) == 1]
    if not x.shape or not weights:
        return x
    w, rank = maker.pick(weights), maker.whole(1, min(2, len(x.shape)) + 1)
    lead, spatial = x.shape[:-rank], x.shape[-rank:]
    axes: list[Size] = [1] * (2 + rank)  # Output channels, channels, and those of the window.
    role = maker.whole(0, len(axes))
    has_channels = bool(lead) and role == 1 and lead[-1] == w.shape[0]
    axes[role if role != 1 or has_channels else 2] = w.shape[0]
    rows, channels = (lead[:-1], lead[-1]) if has_channels else (lead, 1)
    node = arrays.Convolution(
        operands=(b.reshape(x, (1, sizes.product(rows), channels, *spatial)),
                  b.reshape(w, (1, *axes))),
        extents=tuple(maker.pick((extent, 3)) for extent in spatial),
        strides=tuple(maker.pick((1, 2, -1)) for _ in spatial),
        dilations=tuple(maker.pick((1, -1, 3)) for _ in spatial),
        spacings=tuple(maker.pick((1, 2)) for _ in spatial),
        padding=tuple(maker.pick((-1, 0, 2)) for _ in spatial),
    )  # fmt: skip
    return b.reshape(node.result, (*rows, axes[0], *node.extents))


def scanned(maker: Maker, x: Value) -> Value:
    op = maker.pick((ops.ADD, ops.MUL))
    return b.scan(op, x) if x.shape else x


def ordered(maker: Maker, x: Value) -> Value:
    """By whole-number keys with ties."""
    if not x.shape:
        return x
    keys = numbers(x.shape, len(x.shape) - 1, 4, 0)
    order = arrays.ArgSort(operands=(keys,)).result
    first = b.piece(b.reshape(order, (sizes.product(x.shape),)), 0, 0, sizes.product(x.shape))
    flat = b.reshape(x, (sizes.product(x.shape),))
    found = arrays.Gather(operands=(flat, first), is_reported=False).result
    return b.reshape(found, x.shape)


def extreme(maker: Maker, x: Value) -> Value:
    """The values at the first largest of keys with ties."""
    if not x.shape:
        return x
    keys = numbers(x.shape, len(x.shape) - 1, 4, 0)
    found = arrays.ArgExtreme(operands=(keys,), kind=maker.pick(("min", "max"))).result
    flat = b.reshape(x, (sizes.product(x.shape),))
    return arrays.Gather(operands=(flat, found), is_reported=False).result


def looped(maker: Maker, x: Value) -> Value:
    """A loop inside one kernel, or one whose body reads other elements."""
    count = maker.pick((0, 1, 3, 4))
    table, row = maker.pick(maker.pool), maker.alike(x)
    rows = b.broadcast(row, (count, *row.shape), range(1, len(row.shape) + 1))
    operands = (x, maker.alike(x), table, rows)
    types = (ArrayType(INT, ()), x.type, x.type, table.type, row.type)
    k, carry, constant, captured, given = (Value(t) for t in types)
    moved = carry if not x.shape or maker.whole(0, 2) else b.reverse(carry)
    added = [constant]
    for one in (carry, captured, given):
        if not maker.whole(0, 3):
            added.append(b.broadcast(element(maker, one, k), x.shape, []))
    for one in added:
        moved = b.applied(ops.ADD, moved, one)
    node = arrays.Loop(
        operands=operands,
        body=Graph((k, carry, constant, captured, given), (b.applied(ops.SIN, moved), carry)),
        count=count, carry_count=1, constant_count=2,
        is_reversed=bool(maker.whole(0, 2)), checkpoint=maker.pick(("all", "sqrt")),
    )  # fmt: skip
    last, states = node.results
    return maker.pick((last, states))


def unused_carry(maker: Maker, x: Value) -> Value:
    """A loop with a part that overflows, and whose last value nobody uses.

    The part may move what is used, before it overflows.
    """
    count, is_read = maker.pick((3, 5)), bool(maker.whole(0, 2))
    k, carry, growing = Value(ArrayType(INT, ())), Value(x.type), Value(x.type)
    turned = b.reverse(growing) if x.shape and maker.whole(0, 2) else growing
    grown = b.applied(ops.EXP, b.applied(ops.MUL, turned, b.full(x.shape, c.number(FLOAT, 50.0))))
    is_last = b.broadcast(b.applied(ops.EQ, k, b.full((), c.whole(count - 1))), x.shape, ())
    kept = b.where(is_last, grown, growing) if is_read else grown
    moved = b.applied(ops.ADD, carry, growing if is_read else carry)
    start = b.applied(ops.ADD, b.applied(ops.SIN, x), b.full(x.shape, c.number(FLOAT, 2.0)))
    node = arrays.Loop(
        operands=(maker.alike(x), start),
        body=Graph((k, carry, growing), (b.applied(ops.SIN, moved), kept)),
        count=count, carry_count=2, constant_count=0,
        is_reversed=False, checkpoint=maker.pick(("all", "sqrt")),
    )  # fmt: skip
    return node.results[0]


@sad.kernel
def with_unused_results(
    i: sad.Index,
    x: sad.In[float],
    y: sad.Out[float],
    overflowing: sad.Out[float],
    total: sad.Add[float],
):
    """Nobody uses the results that overflow."""
    used, grown = x[i], x[i] * x[i] + 2.0
    for _ in range(12):
        used, grown = sad.sin(used + 0.5), grown * grown
    y[i] = used
    overflowing[i] = grown
    total[0] += grown


def unused_results(_: Maker, x: Value) -> Value:
    count = sizes.product(x.shape)
    flat = ArrayType(FLOAT, (count,))
    written = (("y", flat), ("overflowing", flat), ("total", ArrayType(FLOAT, (1,))))
    node = arrays.KernelCall(
        operands=(b.reshape(x, (count,)),), kernel=with_unused_results.specialise({}),
        dim=(count,), names=("x",), written=written, bounds="raise",
    )  # fmt: skip
    return b.reshape(node.results[0], x.shape)


def masked(maker: Maker, x: Value) -> Value:
    """Infinities and NaN on the side of a `where` that is not used."""
    if not x.shape:
        return x
    position = numbers(x.shape, maker.axis(x), 3, 0)
    is_used = b.applied(ops.GT, position, b.full(x.shape, c.whole(0)))
    divided = b.applied(ops.DIV, x, converted(position, FLOAT))
    worse = maker.pick((ops.EXP, ops.SQRT, ops.SIN))
    shifted_up = b.applied(ops.ADD, divided, b.full(x.shape, c.number(FLOAT, 2.0)))
    bad = b.applied(ops.MUL, b.applied(worse, shifted_up), b.applied(ops.SUB, divided, divided))
    return b.where(is_used, b.applied(ops.ADD, bad, divided), maker.alike(x))


def in_halves(maker: Maker, x: Value) -> Value:
    """Added up along an axis as halves, or repeated, whose cotangents are."""
    if not x.shape:
        return converted(converted(x, HALF), FLOAT)
    halves = converted(x, HALF)
    combine = maker.pick((b.reduce, b.scan))
    op = maker.pick((ops.ADD, ops.MUL))
    return converted(maker.pick((combine(op, halves), repeated(maker, halves))), FLOAT)


def in_batches(maker: Maker, x: Value) -> Value:
    """A random function of each row, and of something that all rows share or have one each of."""
    if not x.shape:
        return x
    extent, other = x.shape[0], maker.pick(maker.pool)
    is_mapped = bool(other.shape) and other.shape[0] == extent and bool(maker.whole(0, 2))
    row = Maker(maker.rng, maker.steps, maker.known, (x.shape[1:], other.shape[is_mapped:]))
    row.grow(maker.whole(1, 4))
    body = Graph(tuple(row.inputs), tuple(row.pool[-1:]))
    shared = [maker.add_input(*v.shape) for v in row.inputs[2:]]
    whole, _ = batched(body, (True, is_mapped, *(False for _ in shared)), extent)
    (result,) = instantiate(whole, (x, other, *shared))
    return result


LAYOUTS: tuple[Step, ...] = (
    transposed, reshaped, reversed_, sliced, shifted, repeated, placed, rolled,
)  # fmt: skip
STEPS: tuple[Step, ...] = (
    unary, binary, binary, chosen, in_struct, transposed, reshaped, reversed_, shifted, repeated,
    joined, sliced, placed, rolled, gathered, gathered, read_together, scattered,
    scattered_together, binned, in_other_floats, last_written, reduced, normalised, multiplied,
    multiplied, convolved, scanned, ordered, extreme, looped, unused_carry, unused_results, masked,
    in_halves, in_batches, *NESTS,
)  # fmt: skip
