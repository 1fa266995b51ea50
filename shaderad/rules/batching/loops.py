"""Batching of loops: one loop over the carries of the whole batch.

A carry is mapped if it starts mapped, or if the body makes it depend on a mapped value. A counter
that all elements of the batch share stays one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Loop, Value, WhileLoop
from shaderad.ir.types import BOOL, INT
from shaderad.rules.arrays.loops import parts_of
from shaderad.rules.batching.operands import (
    Batch,
    GraphRule,
    Operand,
    flags_of,
    mapped,
    shared,
    values_of,
)

Flags = tuple[bool, ...]


def _mapped_carries(flags: Flags, count: int, reached: Callable[[Flags], Flags]) -> Flags:
    """Flags of operands, whose first `count` are carries, with all carries that become mapped.

    `reached` gives the flags of the carries after an iteration.
    """
    while True:
        carries = tuple(a or r for a, r in zip(flags, reached(flags), strict=False))
        if carries == flags[:count]:
            return flags
        flags = (*carries, *flags[count:])


# c[k+1], y[k] = body(k, c[k], z, x[k])
# Mapped xs and ys have the axis of iterations in front, and that of the batch behind it.


def batch_loop(
    node: Loop, operands: Sequence[Operand], batch: Batch, outputs_of: GraphRule
) -> list[Operand]:
    count, inner = node.carry_count, batch.inside()
    k, *inputs = node.body.inputs

    def iteration(flags: Flags) -> tuple[list[Operand], list[Operand]]:
        own = batch.inputs(inputs, flags)
        return own, inner.selected(outputs_of(node.body, (*shared([k]), *own), inner))

    flags = _mapped_carries(
        flags_of(operands), count, lambda flags: flags_of(iteration(flags)[1][:count])
    )
    own, outputs = iteration(flags)
    ends, ys = batch.flagged(outputs[:count], flags[:count]), outputs[count:]
    rows, outer = parts_of(own, node), parts_of(operands, node)
    before = (*values_of(rows.carries), *values_of(rows.constants), *inner.passed)
    starts = batch.flagged(outer.carries, flags[:count])
    loop = replace(
        node,
        operands=(
            *(*starts, *values_of(outer.constants), *batch.passed),
            *(_exchanged(x) for x in outer.xs),
        ),
        body=Graph((k, *before, *values_of(rows.xs)), (*ends, *values_of(ys))),
        constant_count=node.constant_count + len(batch.passed),
    )
    stacked = map(Operand, loop.results[count:], flags_of(ys))
    last = map(Operand, loop.results[:count], flags)
    return [*last, *(Operand(_exchanged(y), y.is_mapped) for y in stacked)]


def _exchanged(x: Operand) -> Value:
    """`x` with the axes of iterations and of the batch, if it has both, exchanged."""
    if not x.is_mapped:
        return x.value
    return b.transpose(x.value, (1, 0, *range(2, len(x.value.shape))))


# c = body(c, z) while cond(c, z)


def batch_while(
    node: WhileLoop, operands: Sequence[Operand], batch: Batch, outputs_of: GraphRule
) -> list[Operand]:
    count, inner = node.carry_count, batch.inside()

    def iteration(flags: Flags) -> tuple[list[Operand], list[Operand]]:
        own = batch.inputs(node.body.inputs, flags)
        return own, inner.selected(outputs_of(node.body, own, inner))

    flags = _mapped_carries(flags_of(operands), count, lambda flags: flags_of(iteration(flags)[1]))
    tested = batch.inputs(node.condition.inputs, flags)
    (holds,) = outputs_of(node.condition, tested, inner)
    if holds.is_mapped:
        return _batch_each(node, operands, batch, outputs_of)
    own, outputs = iteration(flags)
    loop = replace(
        node,
        operands=(*batch.flagged(operands, flags), *batch.passed),
        condition=Graph((*values_of(tested), *inner.passed), (holds.value,)),
        body=Graph((*values_of(own), *inner.passed), batch.flagged(outputs, flags[:count])),
    )
    return [*map(Operand, loop.results, (*flags[:count], False))]


# A mapped condition holds longer for some elements of the batch than for others. The carries of an
# element stay as they are once its condition is false:
#     h = cond(c, z), n = 0
#     while any(h):  c = body(c, z) where h, else c;  n = n + h;  h = h and cond(c, z)


def _batch_each(
    node: WhileLoop, operands: Sequence[Operand], batch: Batch, outputs_of: GraphRule
) -> list[Operand]:
    count, constants = node.carry_count, operands[node.carry_count :]
    carries = mapped(map(batch.spread, operands[:count]))
    (first,) = outputs_of(node.condition, (*carries, *constants), batch)
    start = _both(batch.spread(first), *batch.passed)
    own = batch.inputs(node.body.inputs, flags_of((*carries, *constants)))
    holds, iterations = (Value(batch.type_of(ArrayType(t, ()))) for t in (BOOL, INT))
    inside = replace(batch, active=holds)
    ends = mapped(
        inside.where(batch.spread(new), old.value)
        for new, old in zip(outputs_of(node.body, own, inside), own[:count], strict=True)
    )
    (again,) = outputs_of(node.condition, (*ends, *own[count:]), inside)
    inputs = (*values_of(own[:count]), holds, iterations, *values_of(own[count:]))
    outputs = (*values_of(ends), _both(holds, batch.spread(again)), _counted(iterations, holds))
    tested = tuple(Value(v.type) for v in inputs)
    loop = replace(
        node,
        operands=(*values_of(carries), start, b.zeros(iterations.type), *values_of(constants)),
        condition=Graph(tested, (b.reduce(ops.BIT_OR, tested[count]),)),
        body=Graph(inputs, outputs),
        carry_count=count + 2,
    )
    return mapped((*loop.results[:count], loop.results[count + 1]))


def _both(holds: Value, *others: Value) -> Value:
    for other in others:
        holds = b.applied(ops.BIT_AND, holds, other)
    return holds


def _counted(iterations: Value, holds: Value) -> Value:
    """The iteration counts, one more where another iteration ran."""
    return b.composed(lambda x: c.apply(ops.ADD, x[0], c.convert(INT, x[1])), (iterations, holds))
