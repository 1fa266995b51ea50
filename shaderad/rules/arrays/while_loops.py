"""Derivatives of while loops, whose iteration count is known only after they ran.

In reverse mode the loop saves its carries in stacks of `limit` rows, one row per iteration. The
backward loop reads the rows from the last one that was filled to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Value, WhileLoop
from shaderad.ir.types import INT, is_bool, with_scalar
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives, gather, scatter_add
from shaderad.rules.arrays.loops import K, active_carries
from shaderad.rules.arrays.subgraphs import (
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


@dataclass(frozen=True, slots=True)
class WhilePullback:
    """The pullback of a while loop: a loop that counts down the iterations that ran."""

    node: WhileLoop
    body: Graph
    """In: the iteration number, cotangents of carries, summed cotangents of constants; constants;
    stacks of saved carries. Out: the first three."""
    flags: tuple[bool, ...]
    """Flags of the operands that get a cotangent."""
    constants: tuple[Value, ...]
    """The constants of the loop that `body` reads, then the stacks."""

    def __call__(self, bars: Derivatives) -> Derivatives:
        node, count = self.node, len(self.active)
        constants = node.operands[node.carry_count :]
        sums = [b.zeros(v.type) for v in selected(constants, self.flags[count:])]
        start = wanted_or_zeros(bars, node.results, self.active)
        loop = WhileLoop(
            operands=(b.plus(node.results[-1], -1), *start, *sums, *self.constants),
            condition=_not_negative(self.body.inputs),
            body=self.body,
            carry_count=1 + len(start) + len(sums),
            limit=node.limit,
            span=node.span,
        )
        operand_bars = spread(loop.results[1:-1], self.flags)
        added = [None] * (node.carry_count - count)  # the number and the stacks start at zeros
        return [*operand_bars[:count], *added, *operand_bars[count:]]

    @property
    def active(self) -> tuple[bool, ...]:
        """The flags of the carries."""
        constant_count = len(self.node.operands) - self.node.carry_count
        return self.flags[: len(self.flags) - constant_count]


def linearise_while(
    node: WhileLoop, wanted: Sequence[bool], walks: Walks
) -> tuple[tuple[Value, ...], WhilePullback]:
    """The results of the loop that saves the carries its pullback reads, and the pullback."""
    count = node.carry_count
    active = active_carries(node, wanted, walks)
    flags = (*active, *wanted[count:])
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    bars = flagged_inputs(node.body.outputs, active)
    pulled = walks.pull(node.body, bars, flags)
    sums = [Value(v.type) for v in selected(constants, flags[count:])]
    outputs = (
        *wanted_or_zeros(pulled, carries, active),
        *accumulated(sums, selected(pulled[count:], flags[count:])),
    )
    read = read_by(outputs)
    saved = [k for k, v in enumerate(carries) if v in read]
    used = [v for v in constants if v in read]
    saving = _saving(node, saved)
    stacks = saving.results[count + 1 : -1]
    position, stack_inputs = Value(K), fresh(stacks)
    restored = [
        _restored(gather(stack, position), carries[k])
        for stack, k in zip(stack_inputs, saved, strict=True)
    ]
    others = (*kept(bars), *sums, *used)
    at_carries = Graph((*(carries[k] for k in saved), *others), outputs)
    body = Graph(
        (position, *others, *stack_inputs),
        (b.plus(position, -1), *instantiate(at_carries, (*restored, *others))),
    )
    operand_of = dict(zip(node.body.inputs, node.operands, strict=True))
    pullback = WhilePullback(saving, body, flags, (*(operand_of[v] for v in used), *stacks))
    return (*saving.results[:count], saving.results[-1]), pullback


def _saving(node: WhileLoop, saved: Sequence[int]) -> WhileLoop:
    """The loop that also saves the value of some carries before each iteration.

    Its carries: those of `node`, the iteration number, a stack for each saved carry.
    """
    count = node.carry_count
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    position = Value(K)
    stacks = [_stack(node, carries[k]) for k in saved]
    rows = fresh(stacks)
    pushed = [
        scatter_add(row, _storable(carries[k]), position)
        for row, k in zip(rows, saved, strict=True)
    ]
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


def _stack(node: WhileLoop, carry: Value) -> Value:
    stored = _storable(carry)
    return b.zeros(ArrayType(stored.element, (node.limit, *carry.shape)))


def _storable(carry: Value) -> Value:
    """`carry`, bools converted to ints, so that a scatter-add can store it."""
    if not is_bool(carry.element):
        return carry
    x = c.variable("x", carry.element)
    t = with_scalar(carry.element, INT)
    return b.elementwise(c.convert(t, x), {"x": carry}, carry.shape)


def _restored(stored: Value, carry: Value) -> Value:
    if not is_bool(carry.element):
        return stored
    x = c.variable("x", stored.element)
    return b.elementwise(c.convert(carry.element, x), {"x": stored}, carry.shape)
