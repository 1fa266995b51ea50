"""Derivatives of loops over arrays: loops that carry tangents forward or cotangents backward.

    forward    c[k+1], y[k] = body(k, c[k], z, x[k])             saves c[0], c[1], ...
    backward   c_bar[k], z_bar, x_bar[k] += pull(body at k, c[k])(c_bar[k+1], y_bar[k])

The derivative of a loop is a loop, so it can be differentiated again. A loop with square-root
checkpoints is first split into segments, which reverse mode recomputes. With m = sqrt(count), an
outer loop runs count // m segments of m iterations each, and one more loop runs the remaining
iterations. The outer loop saves the carries between segments. The inner loop saves the carries of
its segment while the segment runs backward. A loop whose carries take up little memory is not
split; this may be decided only once sizes are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Generic

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, Graph, Loop, Value
from shaderad.ir.prints import silent_graph
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, byte_count
from shaderad.rules.arrays.halves import converted
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.outer_sums import factors, total
from shaderad.rules.arrays.subgraphs import (
    Pullback,
    T,
    Walks,
    accumulated,
    flagged_inputs,
    fresh,
    instantiate,
    kept,
    read_by,
    selected,
    spread,
    sums_of,
    wanted_or_zeros,
)

K = ArrayType(INT, ())
LITTLE_BYTES = 2**24
"""The memory up to which a loop with square-root checkpoints saves all its carries."""


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """One item per operand of a loop, or per input of its body after k."""

    carries: tuple[T, ...]
    constants: tuple[T, ...]
    xs: tuple[T, ...]


def parts_of(values: Sequence[T], node: Loop) -> Parts[T]:
    """Splits `values`, one per operand of `node`."""
    first, second = node.carry_count, node.carry_count + node.constant_count
    return Parts(tuple(values[:first]), tuple(values[first:second]), tuple(values[second:]))


def active_carries(
    node: Loop | arrays.WhileLoop, wanted: Sequence[bool], walks: Walks
) -> list[bool]:
    """Flags of the carries that depend on a `wanted` operand in some iteration."""
    offset = 1 if isinstance(node, Loop) else 0
    active = [*wanted]
    while True:
        reached = walks.depends(node.body, [*[False] * offset, *active])
        carries = [a or r for a, r in zip(active, reached, strict=False)][: node.carry_count]
        if carries == active[: node.carry_count]:
            return carries
        active[: node.carry_count] = carries


def is_given(derivative: Value | None) -> bool:
    return derivative is not None


def pulled_to_fixed_point(
    node: Loop | arrays.WhileLoop, result_flags: Sequence[bool], flags: Sequence[bool], walks: Walks
) -> tuple[Derivatives, Derivatives]:
    """New inputs for cotangents of the body's outputs, and cotangents of its flagged inputs.

    A carry without a cotangent after the loop may get one in an iteration. A carry that never gets
    one is left out, because infinite partials would turn a zero cotangent into NaN. If a carry has
    a cotangent in some iterations only, its zeros in the others count as those of an unused value.

    Args:
        node: The loop.
        result_flags: Flags of the results that have a cotangent after the loop.
        flags: Flags of the inputs of the body whose cotangents are wanted.
        walks: The derivatives of graphs.
    """
    offset, count = 1 if isinstance(node, Loop) else 0, node.carry_count
    carries, unused = tuple(result_flags[:count]), list[Value]()
    while True:
        bars = flagged_inputs(node.body.outputs, (*carries, *result_flags[count:]))
        pulled = walks.pull(node.body, bars, flags, unused)
        is_pulled = [*map(is_given, pulled[offset:][:count])]
        reached = tuple(a or b for a, b in zip(carries, is_pulled, strict=True))
        flagged = zip(node.body.outputs, reached, result_flags, is_pulled, strict=False)
        may_be_unused = [v for v, is_ever, at_end, then in flagged if is_ever > (at_end and then)]
        if reached == carries and may_be_unused == unused:
            return bars, pulled
        carries, unused = reached, may_be_unused


# -- forward ----------------------------------------------------------------------------------


def push_loop(node: Loop, dots: Derivatives, walks: Walks) -> Derivatives:
    """The loop over carries, constants and xs, each group followed by its tangents."""
    is_given = [dot is not None for dot in dots]
    active = active_carries(node, is_given, walks)
    flags = [*active, *is_given[node.carry_count :]]
    k, *inputs = node.body.inputs
    inputs_dot = flagged_inputs(inputs, flags)
    outputs_dot = list(walks.push(node.body, [None, *inputs_dot]))
    count = node.carry_count
    carries_dot = wanted_or_zeros(outputs_dot, node.body.outputs, active)
    operands_dot = spread(wanted_or_zeros(dots, node.operands, flags), flags)
    body = Graph(
        (k, *_interleaved(inputs, inputs_dot, node)),
        (
            *node.body.outputs[:count],
            *carries_dot,
            *node.body.outputs[count:],
            *kept(outputs_dot[count:]),
        ),
    )
    pushed = replace(
        node,
        operands=_interleaved(node.operands, operands_dot, node),
        body=silent_graph(body),
        carry_count=count + sum(active),
        constant_count=node.constant_count + sum(flags[count : count + node.constant_count]),
    )
    results_dot = (*pushed.results[count : pushed.carry_count],
                   *pushed.results[len(node.results) + sum(active) :])  # fmt: skip
    has_dot = [*active, *(dot is not None for dot in outputs_dot[count:])]
    return spread(results_dot, has_dot)


def _interleaved(values: Sequence[Value], dots: Derivatives, node: Loop) -> tuple[Value, ...]:
    """Carries, their tangents, constants, their tangents, xs, their tangents."""
    primals, tangents = parts_of(values, node), parts_of(dots, node)
    return (
        *(*primals.carries, *kept(tangents.carries)),
        *(*primals.constants, *kept(tangents.constants)),
        *(*primals.xs, *kept(tangents.xs)),
    )


# -- backward ---------------------------------------------------------------------------------


def linearise_loop(node: Loop, wanted: Sequence[bool], walks: Walks) -> tuple[Loop, Pullback]:
    """The loop that also returns the carries that its pullback reads, and the pullback."""
    count = node.carry_count
    flags = (*active_carries(node, wanted, walks), *wanted[count:])
    active = (*flags[:count], *walks.depends(node.body, [False, *flags])[count:])
    of_all = _backward_body(node, flags, active, walks)
    saved = of_all.read.carries
    saving = replace(node, body=Graph(node.body.inputs, (*node.body.outputs, *saved)))
    operand_of = dict(zip(node.body.inputs[1:], node.operands, strict=True))
    operand_of |= zip(saved, saving.results[len(node.results) :], strict=True)

    def pullback(bars: Derivatives) -> Derivatives:
        result_flags = tuple(a and bar is not None for a, bar in zip(active, bars, strict=False))
        body = (
            of_all if result_flags == active else _backward_body(node, flags, result_flags, walks)
        )
        carry_bars = wanted_or_zeros(bars, node.results, body.has_bar.carries)
        start = [*carry_bars, *(b.zeros(total.type) for total in body.sums)]
        read = body.read
        constants = [operand_of[v] for v in read.constants]
        xs = [operand_of[v] for v in (*read.carries, *read.xs)]
        y_bars = kept(selected(bars[count : len(active)], result_flags[count:]))
        backward = Loop(
            operands=(*start, *constants, *xs, *y_bars),
            body=body.graph,
            count=node.count,
            carry_count=len(start),
            constant_count=len(constants),
            is_reversed=not node.is_reversed,
            checkpoint=node.checkpoint,
            span=node.span,
        )
        results = iter(backward.results)
        operand_bars = [next(results) for _ in carry_bars]
        sums = iter([next(results) for _ in body.sums])
        xs_bar = [next(results) for has_bar in body.has_bar.xs if has_bar]
        rows = dict(zip(body.factors, results, strict=True))
        operand_bars += [
            total(value, rows, node.count) if keeps_rows else converted(next(sums), value.element)
            for value, keeps_rows in body.addends
        ]
        has_bar = body.has_bar
        return spread([*operand_bars, *xs_bar], (*has_bar.carries, *has_bar.constants, *has_bar.xs))

    return saving, pullback


@dataclass(frozen=True, slots=True)
class _BackwardBody:
    """One backward iteration.

    In: k, cotangents of carries, summed cotangents of constants; constants; saved carries, xs,
    cotangents of ys. Out: the cotangents of carries, sums, cotangents of xs, factors.
    """

    graph: Graph
    read: Parts[Value]
    """The inputs of the primal body that it reads."""
    has_bar: Parts[bool]
    """Flags of the inputs of the primal body that get a cotangent in some iteration."""
    sums: Sequence[Value]
    """The inputs that are summed cotangents of constants."""
    addends: Sequence[tuple[Value, bool]]
    """For each constant that gets a cotangent: the addend of one iteration, and True if its factors
    are kept as rows and summed after the loop."""
    factors: Sequence[Value]
    """All factors of addends, each once."""


def _backward_body(
    node: Loop, flags: Sequence[bool], result_flags: Sequence[bool], walks: Walks
) -> _BackwardBody:
    """One backward iteration, for cotangents of the results in `result_flags`."""
    count = node.carry_count
    k, *inputs = node.body.inputs
    parts = parts_of(inputs, node)
    bars, by_input = pulled_to_fixed_point(node, result_flags, [False, *flags], walks)
    pulled, carries = parts_of(by_input[1:], node), tuple(map(is_given, bars[:count]))
    factors_of = {v: factors(v) for v in kept(pulled.constants)}
    inside = [v for v in kept(pulled.constants) if not factors_of[v]]
    rows = list(dict.fromkeys(v for each in factors_of.values() for v in each))
    sums = sums_of(inside)
    outputs = (
        *wanted_or_zeros(pulled.carries, parts.carries, carries),
        *accumulated(sums, inside),
        *kept(pulled.xs),
        *rows,
    )
    groups = (parts.carries, parts.constants, parts.xs)
    values = read_by(outputs)
    read = Parts(*(tuple(v for v in group if v in values) for group in groups))
    primals = (*read.constants, *read.carries, *read.xs)
    body = Graph((k, *kept(bars[:count]), *sums, *primals, *kept(bars[count:])), outputs)
    has_bar = Parts(carries, *(tuple(map(is_given, x)) for x in (pulled.constants, pulled.xs)))
    # Silent, because it recomputes parts of the primal.
    addends = [(v, bool(factors_of[v])) for v in kept(pulled.constants)]
    return _BackwardBody(silent_graph(body), read, has_bar, sums, addends, rows)


# -- square-root checkpoints ----------------------------------------------------------------------


def segmented_share(saved: Sequence[Value]) -> Size:
    """0 if `saved`, all the carries that a loop would save, take up little memory, else 1."""
    saved_bytes = reduce(
        sizes.add,
        (sizes.multiply(byte_count(v.element), sizes.product(v.shape)) for v in saved),
        0,
    )
    return sizes.minimum(1, sizes.floor_divide(saved_bytes, LITTLE_BYTES))


def in_segments(node: Loop, share: Size) -> tuple[Value, ...]:
    """The results of `node`, computed by loops that save all their carries.

    `share` is 1 to split the iterations into segments, or 0 to keep them in one loop.
    """
    length = sizes.square_root(node.count)
    segment_count = sizes.multiply(share, sizes.floor_divide(node.count, length))
    whole = sizes.multiply(length, segment_count)
    operands = parts_of(node.operands, node)
    first = _Iterations(node, 0, whole, operands.xs)
    rest = _Iterations(node, whole, sizes.subtract(node.count, whole), operands.xs)
    carries, constants = operands.carries, operands.constants
    if rest.count == 0:
        carries, ys = _segmented(first, length, segment_count, carries, constants)
        return (*carries, *ys)
    if node.is_reversed:
        carries, last_ys = _plain(rest, carries, constants)
        carries, first_ys = _segmented(first, length, segment_count, carries, constants)
    else:
        carries, first_ys = _segmented(first, length, segment_count, carries, constants)
        carries, last_ys = _plain(rest, carries, constants)
    joined = [b.concatenate(pair, 0) for pair in zip(first_ys, last_ys, strict=True)]
    return (*carries, *joined)


@dataclass(frozen=True, slots=True)
class _Iterations:
    """A contiguous range of iterations of a loop."""

    node: Loop
    start: Size
    count: Size
    xs: tuple[Value, ...]

    @property
    def own_xs(self) -> tuple[Value, ...]:
        return tuple(b.piece(x, 0, self.start, self.count) for x in self.xs)


def _plain(
    part: _Iterations, carries: tuple[Value, ...], constants: tuple[Value, ...]
) -> tuple[tuple[Value, ...], Sequence[Value]]:
    """Carries and ys of a loop over `part`."""
    node = part.node
    k, *inputs = fresh(node.body.inputs)
    position = b.applied(ops.ADD, k, _size(part.start))
    body = Graph((k, *inputs), instantiate(node.body, (position, *inputs)))
    loop = replace(node, operands=(*carries, *constants, *part.own_xs), body=body,
                   count=part.count, checkpoint="all")  # fmt: skip
    return loop.results[: node.carry_count], loop.results[node.carry_count :]


def _segmented(
    part: _Iterations,
    length: Size,
    segment_count: Size,
    carries: tuple[Value, ...],
    constants: tuple[Value, ...],
) -> tuple[tuple[Value, ...], Sequence[Value]]:
    """Carries and ys of a loop over segments of `length` iterations."""
    node = part.node
    # The inner loop runs one segment, whose number is an additional constant.
    k, *inputs = fresh(node.body.inputs)
    parts = parts_of(inputs, node)
    segment = Value(K)
    start = b.applied(ops.MUL, segment, _size(length))
    outputs = instantiate(node.body, (b.applied(ops.ADD, start, k), *inputs))
    inner = Graph((k, *parts.carries, *parts.constants, segment, *parts.xs), outputs)
    # The outer loop runs over segments.
    number = Value(K)
    outer_carries, outer_constants = fresh(carries), fresh(constants)
    xs = [b.reshape(x, (segment_count, length, *x.shape[1:])) for x in part.own_xs]
    rows = tuple(Value(ArrayType(x.element, x.shape[1:])) for x in xs)
    loop = replace(node, operands=(*outer_carries, *outer_constants, number, *rows), body=inner,
                   count=length, constant_count=node.constant_count + 1,
                   checkpoint="all")  # fmt: skip
    body = Graph((number, *outer_carries, *outer_constants, *rows), loop.results)
    outer = replace(node, operands=(*carries, *constants, *xs), body=body, count=segment_count,
                    checkpoint="all")  # fmt: skip
    ys = outer.results[node.carry_count :]
    flat = [b.reshape(y, (part.count, *y.shape[2:])) for y in ys]
    return outer.results[: node.carry_count], flat


def _size(size: Size) -> Value:
    return arrays.SizeOf(operands=(), size=size).result
