"""Square-root checkpointing: a loop as a loop over segments, which reverse mode recomputes.

With m = sqrt(count): a loop over count // m segments, each a loop of m iterations, and a loop over
the remaining count - m (count // m) iterations. All of them save their carries: the outer loop
those between segments; the inner loop those of its segment, while the segment runs backward.
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
    """The results of `node`, computed by loops that save all their carries.

    Raises:
        DerivativeError: SR0471 for a loop without checkpoints.
    """
    if node.checkpoint == "none":
        raise error("SR0471", node.span)
    length = sizes.square_root(node.count)
    segment_count = sizes.floor_divide(node.count, length)
    whole = sizes.multiply(length, segment_count)
    operands = parts_of(node.operands, node)
    first = _Iterations(node, 0, whole, operands.xs)
    rest = _Iterations(node, whole, sizes.subtract(node.count, whole), operands.xs)
    carries, constants = operands.carries, operands.constants
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
    start: sizes.Size
    count: sizes.Size
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
    length: sizes.Size,
    segment_count: sizes.Size,
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


def _size(size: sizes.Size) -> Value:
    return arrays.SizeOf(operands=(), size=size).result
