"""Square-root checkpoints: a loop as loops over segments, which reverse mode opens one by one.

With m = sqrt(count): a loop over count // m segments, each a loop of m iterations, and a loop of
the count - m (count // m) iterations that are left. All of them save their carries: the outer one
those between segments, the inner one those of its segment, while that runs backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shaderad.diagnostics import error
from shaderad.ir import arrays, ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Loop, Value
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.loops import K, fresh, instantiate, parts_of


def in_segments(node: Loop) -> tuple[Value, ...]:
    """The results of `node`, by loops that all save their carries."""
    if node.checkpoint == "none":
        raise error("SR0471", node.span)
    length = sizes.square_root(node.count)
    segment_count = sizes.floor_divide(node.count, length)
    whole = sizes.multiply(length, segment_count)
    given = parts_of(node.operands, node)
    first = _Stretch(node, 0, whole, given.xs)
    rest = _Stretch(node, whole, sizes.subtract(node.count, whole), given.xs)
    carries = given.carries
    ys: list[Sequence[Value]] = []
    for stretch in (rest, first) if node.is_reversed else (first, rest):
        if stretch is rest:
            carries, made = _plain(stretch, carries, given.constants)
        else:
            carries, made = _segmented(stretch, length, segment_count, carries, given.constants)
        ys.append(made)
    if node.is_reversed:
        ys.reverse()
    joined = [b.concatenate(pair, 0) for pair in zip(*ys, strict=True)]
    return (*carries, *joined)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some iterations of a loop that follow each other."""

    node: Loop
    start: sizes.Size
    count: sizes.Size
    xs: tuple[Value, ...]

    @property
    def own_xs(self) -> tuple[Value, ...]:
        return tuple(b.piece(x, 0, self.start, self.count) for x in self.xs)


def _plain(
    stretch: _Stretch, carries: tuple[Value, ...], constants: tuple[Value, ...]
) -> tuple[tuple[Value, ...], Sequence[Value]]:
    node = stretch.node
    k, *inputs = fresh(node.body.inputs)
    position = b.applied(ops.ADD, k, _size(stretch.start))
    body = Graph((k, *inputs), instantiate(node.body, (position, *inputs)))
    made = replace(node, operands=(*carries, *constants, *stretch.own_xs), body=body,
                   count=stretch.count, checkpoint="all")  # fmt: skip
    return made.results[: node.carry_count], made.results[node.carry_count :]


def _segmented(
    stretch: _Stretch,
    length: sizes.Size,
    segment_count: sizes.Size,
    carries: tuple[Value, ...],
    constants: tuple[Value, ...],
) -> tuple[tuple[Value, ...], Sequence[Value]]:
    node = stretch.node
    # The inner loop: one segment, whose number is one more constant.
    k, *inputs = fresh(node.body.inputs)
    parts = parts_of(inputs, node)
    segment = Value(K)
    start = b.applied(ops.MUL, segment, _size(length))
    outputs = instantiate(node.body, (b.applied(ops.ADD, start, k), *inputs))
    inner = Graph((k, *parts.carries, *parts.constants, segment, *parts.xs), outputs)
    # The outer loop, over segments.
    number = Value(K)
    outer_carries, outer_constants = fresh(carries), fresh(constants)
    xs = [b.reshape(x, (segment_count, length, *x.shape[1:])) for x in stretch.own_xs]
    rows = tuple(Value(ArrayType(x.element, x.shape[1:])) for x in xs)
    loop = replace(node, operands=(*outer_carries, *outer_constants, number, *rows), body=inner,
                   count=length, constant_count=node.constant_count + 1,
                   checkpoint="all")  # fmt: skip
    body = Graph((number, *outer_carries, *outer_constants, *rows), loop.results)
    made = replace(node, operands=(*carries, *constants, *xs), body=body, count=segment_count,
                   checkpoint="all")  # fmt: skip
    ys = made.results[node.carry_count :]
    flat = [b.reshape(y, (stretch.count, *y.shape[2:])) for y in ys]
    return made.results[: node.carry_count], flat


def _size(size: sizes.Size) -> Value:
    return arrays.SizeOf(operands=(), size=size).result
