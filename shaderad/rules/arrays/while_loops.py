"""Derivatives of while loops, whose iteration count is known only after they have run.

In reverse mode the loop saves its carries in stacks of `limit` rows, one row per iteration. The
backward loop reads the rows from the last one that was filled to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Value, WhileLoop
from shaderad.ir.types import INT, is_bool
from shaderad.rules.arrays.halves import converted
from shaderad.rules.arrays.layout import Derivatives, gather, scatter_add
from shaderad.rules.arrays.loops import K, active_carries, is_given, pulled_to_fixed_point
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
    sums_of,
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
    """The loop that saves the carries that its pullback reads, and the pullback, which is a loop
    that counts the iterations down.
    """
    count = node.carry_count
    active = tuple(active_carries(node, wanted, walks))
    flags = (*active, *wanted[count:])
    operands = dict(zip(node.body.inputs, node.operands, strict=True))
    of_all = _backward_body(node, flags, active, walks)
    saved = of_all.carries
    saving = _saving(node, saved)
    stack_of = dict(zip(saved, saving.results[count + 1 : -1], strict=True))

    def pullback(bars: Derivatives) -> Derivatives:
        result_flags = tuple(a and bar is not None for a, bar in zip(active, bars, strict=False))
        pulled = (
            of_all if result_flags == active else _backward_body(node, flags, result_flags, walks)
        )
        stacks = [stack_of[k] for k in pulled.carries]
        body = _at_saved_carries(pulled.graph, stacks)
        zeros = [b.zeros(total.type) for total in pulled.sums]
        start = [*wanted_or_zeros(bars, saving.results, pulled.has_bar[:count]), *zeros]
        constants = [operands[v] for v in pulled.constants]
        loop = WhileLoop(
            operands=(b.plus(saving.results[-1], -1), *start, *constants, *stacks),
            condition=_not_negative(body.inputs),
            body=body,
            carry_count=1 + len(start),
            limit=node.limit,
            span=node.span,
        )
        reached = selected(node.operands, pulled.has_bar)
        pairs = zip(loop.results[1:-1], reached, strict=True)
        operand_bars = spread([converted(bar, v.element) for bar, v in pairs], pulled.has_bar)
        added = [None] * (saving.carry_count - count)  # the number and the stacks start at zeros
        return [*operand_bars[:count], *added, *operand_bars[count:]]

    return saving, pullback


@dataclass(frozen=True, slots=True)
class _BackwardStep:
    """One backward iteration.

    In: saved carries, cotangents of carries, summed cotangents of constants, constants. Out: the
    cotangents of carries, sums.
    """

    graph: Graph
    sums: Sequence[Value]
    """The inputs that are summed cotangents of constants."""
    carries: Sequence[int]
    """The positions of the carries that it reads."""
    constants: Sequence[Value]
    """The constants that it reads, as inputs of the primal body."""
    has_bar: Sequence[bool]
    """Flags of the inputs of the primal body that get a cotangent in some iteration."""


def _backward_body(
    node: WhileLoop, flags: Sequence[bool], result_flags: tuple[bool, ...], walks: Walks
) -> _BackwardStep:
    """One backward iteration, for cotangents of the results in `result_flags`."""
    count = node.carry_count
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    bars, pulled = pulled_to_fixed_point(node, result_flags, flags, walks)
    addends = kept(pulled[count:])
    sums = sums_of(addends)
    reached = [*map(is_given, bars)]
    outputs = (*wanted_or_zeros(pulled, carries, reached), *accumulated(sums, addends))
    read = read_by(outputs)
    saved = [k for k, v in enumerate(carries) if v in read]
    used = [v for v in constants if v in read]
    graph = Graph((*(carries[k] for k in saved), *kept(bars), *sums, *used), outputs)
    return _BackwardStep(graph, sums, saved, used, [*reached, *map(is_given, pulled[count:])])


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
