"""Derivatives of while loops, whose iteration count is known only after they ran.

In reverse mode the loop saves its carries in stacks of `limit` rows, one row per iteration. The
backward loop reads the rows from the last one that was filled to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Value, WhileLoop
from shaderad.ir.types import INT, is_bool
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives, gather, scatter_add
from shaderad.rules.arrays.loops import K, active_carries
from shaderad.rules.arrays.subgraphs import (
    Pullback,
    Walks,
    accumulated,
    flagged_inputs,
    fresh,
    instantiate,
    kept,
    read_by,
    selected,
    spread,
    wanted_or_zeros,
)


def push_while(node: WhileLoop, dots: Derivatives, walks: Walks) -> Derivatives:
    """The loop over carries and their tangents; the condition reads the primals."""
    count = node.carry_count
    is_given = [dot is not None for dot in dots]
    active = active_carries(node, is_given, walks)
    flags = [*active, *is_given[count:]]
    inputs = node.body.inputs
    inputs_dot = flagged_inputs(inputs, flags)
    pushed = walks.push(node.body, inputs_dot)
    outputs_dot = wanted_or_zeros(pushed, node.body.outputs, active)
    order = (*inputs[:count], *kept(inputs_dot[:count]), *inputs[count:], *kept(inputs_dot[count:]))
    tested = fresh(order)
    primals = (*tested[:count], *tested[count + sum(active) :][: len(inputs) - count])
    condition = Graph(tested, instantiate(node.condition, primals))
    start = spread(wanted_or_zeros(dots, node.operands, flags), flags)
    loop = replace(
        node,
        operands=(*node.operands[:count], *kept(start[:count]), *node.operands[count:],
                  *kept(start[count:])),
        condition=condition,
        body=Graph(order, (*node.body.outputs, *outputs_dot)),
        carry_count=count + sum(active),
    )  # fmt: skip
    return [*spread(loop.results[count : loop.carry_count], active), None]


def linearise_while(
    node: WhileLoop, wanted: Sequence[bool], walks: Walks
) -> tuple[WhileLoop, Pullback]:
    """The loop that saves the carries its pullback reads, and the pullback: a loop that counts down
    the iterations that ran.
    """
    count = node.carry_count
    active = active_carries(node, wanted, walks)
    flags = (*active, *wanted[count:])
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    bars = flagged_inputs(node.body.outputs, active)
    pulled = walks.pull(node.body, bars, flags)
    sums = fresh(selected(constants, flags[count:]))
    outputs = (
        *wanted_or_zeros(pulled, carries, active),
        *accumulated(sums, selected(pulled[count:], flags[count:])),
    )
    read = read_by(outputs)
    saved = [k for k, v in enumerate(carries) if v in read]
    used = [(v, x) for v, x in zip(constants, node.operands[count:], strict=True) if v in read]
    saving = _saving(node, saved)
    stacks = saving.results[count + 1 : -1]
    others = (*kept(bars), *sums, *(v for v, _ in used))
    body = _at_saved_carries(Graph((*(carries[k] for k in saved), *others), outputs), stacks)

    def pullback(bars: Derivatives) -> Derivatives:
        zeros = [b.zeros(v.type) for v in selected(node.operands[count:], flags[count:])]
        start = [*wanted_or_zeros(bars, saving.results, active), *zeros]
        loop = WhileLoop(
            operands=(b.plus(saving.results[-1], -1), *start, *(x for _, x in used), *stacks),
            condition=_not_negative(body.inputs),
            body=body,
            carry_count=1 + len(start),
            limit=node.limit,
            span=node.span,
        )
        operand_bars = spread(loop.results[1:-1], flags)
        added = [None] * (saving.carry_count - count)  # the number and the stacks start at zeros
        return [*operand_bars[:count], *added, *operand_bars[count:]]

    return saving, pullback


def _at_saved_carries(pulled: Graph, stacks: Sequence[Value]) -> Graph:
    """One backward iteration, from `pulled`, whose first inputs are the carries on the `stacks`.

    In: the iteration number, the other inputs of `pulled`, the stacks. Out: the number before, the
    outputs of `pulled`.
    """
    carries, others = pulled.inputs[: len(stacks)], pulled.inputs[len(stacks) :]
    position, rows = Value(K), fresh(stacks)
    restored = [
        _restored(gather(row, position), carry) for row, carry in zip(rows, carries, strict=True)
    ]
    outputs = (b.plus(position, -1), *instantiate(pulled, (*restored, *others)))
    return Graph((position, *others, *rows), outputs)


def _saving(node: WhileLoop, saved: Sequence[int]) -> WhileLoop:
    """The loop that also saves the value of some carries before each iteration.

    Its carries: those of `node`, the iteration number, a stack for each saved carry.
    """
    count = node.carry_count
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    position = Value(K)
    stored = [_storable(carries[k]) for k in saved]
    stacks = [b.zeros(ArrayType(v.element, (node.limit, *v.shape))) for v in stored]
    rows = fresh(stacks)
    pushed = [scatter_add(row, v, position) for row, v in zip(rows, stored, strict=True)]
    inputs = (*carries, position, *rows, *constants)
    tested = fresh(inputs)
    primals = (*tested[:count], *tested[count + 1 + len(rows) :])
    return replace(
        node,
        operands=(*node.operands[:count], b.full((), c.whole(0)), *stacks, *node.operands[count:]),
        condition=Graph(tested, instantiate(node.condition, primals)),
        body=Graph(inputs, (*node.body.outputs, b.plus(position, 1), *pushed)),
        carry_count=count + 1 + len(rows),
    )


def _not_negative(inputs: Sequence[Value]) -> Graph:
    """The condition ``position >= 0``; the position is the first carry."""
    tested = fresh(inputs)
    return Graph(tested, (b.applied(ops.GE, tested[0], b.full((), c.whole(0))),))


def _storable(carry: Value) -> Value:
    """`carry`, bools converted to ints, so that a scatter-add can store it."""
    if not is_bool(carry.element):
        return carry
    return b.composed(lambda x: c.convert(INT, *x), [carry])


def _restored(stored: Value, carry: Value) -> Value:
    if not is_bool(carry.element):
        return stored
    return b.composed(lambda x: c.convert(carry.element, *x), [stored])
