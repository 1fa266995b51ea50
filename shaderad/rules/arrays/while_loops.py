"""Derivatives of loops whose number of iterations is known only when they have run.

Backward, the loop keeps its carries in arrays of `limit` rows, of which it fills one an
iteration; a second loop runs over as many rows from the last to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Value, WhileLoop
from shaderad.ir.types import INT, is_bool, with_scalar
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.indexing import gather, scatter_add
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.loops import (
    K,
    Walks,
    active_carries,
    fresh,
    grown,
    instantiate,
    kept,
    like_flagged,
    only,
    or_zeros,
    read_by,
    wanted_or_zeros,
)


def push_while(node: WhileLoop, dots: Derivatives, walks: Walks) -> Derivatives:
    """The loop over its carries and their tangents; the condition sees the primals."""
    count = node.carry_count
    is_given = [dot is not None for dot in dots]
    active = active_carries(node, is_given, walks)
    flags = [*active, *is_given[count:]]
    inputs = node.body.inputs
    inputs_dot = like_flagged(inputs, flags)
    found = walks.push(node.body, inputs_dot)
    outputs_dot = wanted_or_zeros(found, node.body.outputs, active)
    order = (*inputs[:count], *kept(inputs_dot[:count]), *inputs[count:], *kept(inputs_dot[count:]))
    tested = fresh(order)
    primals = (*tested[:count], *tested[count + sum(active) :][: len(inputs) - count])
    condition = Graph(tested, instantiate(node.condition, primals))
    start = [or_zeros(dot, v) if one else None for dot, v, one in
             zip(dots, node.operands, flags, strict=True)]  # fmt: skip
    made = replace(
        node,
        operands=(*node.operands[:count], *kept(start[:count]), *node.operands[count:],
                  *kept(start[count:])),
        condition=condition,
        body=Graph(order, (*node.body.outputs, *outputs_dot)),
        carry_count=count + sum(active),
    )  # fmt: skip
    moved = iter(made.results[count : made.carry_count])
    return [*(next(moved) if one else None for one in active), None]


@dataclass(frozen=True, slots=True)
class WhilePullback:
    """As many iterations as ran, backward."""

    node: WhileLoop
    body: Graph
    """In: the iteration's number, the cotangents of carries, sums of those of constants; then
    constants and states. Out: the first three."""
    flags: tuple[bool, ...]
    constants: tuple[Value, ...]
    """Constants of the loop that `body` reads, and the states."""

    def __call__(self, bars: Derivatives) -> Derivatives:
        node, count = self.node, len(self.active)
        constants = node.operands[node.carry_count :]
        sums = [b.zeros(v.type) for v in only(constants, self.flags[count:])]
        start = wanted_or_zeros(bars, node.results, self.active)
        made = WhileLoop(
            operands=(b.plus(node.results[-1], -1), *start, *sums, *self.constants),
            condition=_not_negative(self.body.inputs),
            body=self.body,
            carry_count=1 + len(start) + len(sums),
            limit=node.limit,
            span=node.span,
        )
        found = iter(made.results[1:-1])
        by_operand = [next(found) if one else None for one in self.flags]
        added = [None] * (node.carry_count - count)  # the number and the stacks start at zeros
        return [*by_operand[:count], *added, *by_operand[count:]]

    @property
    def active(self) -> tuple[bool, ...]:
        """The flags of the carries."""
        constant_count = len(self.node.operands) - self.node.carry_count
        return self.flags[: len(self.flags) - constant_count]


def linearise_while(
    node: WhileLoop, wanted: Sequence[bool], walks: Walks
) -> tuple[tuple[Value, ...], WhilePullback]:
    """The results of the loop that saves what its pullback reads, and the pullback."""
    count = node.carry_count
    active = active_carries(node, wanted, walks)
    flags = (*active, *wanted[count:])
    carries, constants = node.body.inputs[:count], node.body.inputs[count:]
    bars = like_flagged(node.body.outputs, active)
    found = walks.pull(node.body, bars, flags)
    sums = [Value(v.type) for v in only(constants, flags[count:])]
    outputs = (
        *wanted_or_zeros(found, carries, active),
        *grown(sums, only(found[count:], flags[count:])),
    )
    read = read_by(outputs)
    saved = [k for k, v in enumerate(carries) if v in read]
    used = [v for v in constants if v in read]
    saving = _saving(node, saved)
    states = saving.results[count + 1 : -1]
    position, rows = Value(K), fresh(states)
    stored = [
        _restored(gather(row, position), carries[k]) for row, k in zip(rows, saved, strict=True)
    ]
    flowing = (*kept(bars), *sums, *used)
    at_carries = Graph((*(carries[k] for k in saved), *flowing), outputs)
    body = Graph(
        (position, *flowing, *rows),
        (b.plus(position, -1), *instantiate(at_carries, (*stored, *flowing))),
    )
    operand_of = dict(zip(node.body.inputs, node.operands, strict=True))
    pullback = WhilePullback(saving, body, flags, (*(operand_of[v] for v in used), *states))
    return (*saving.results[:count], saving.results[-1]), pullback


def _saving(node: WhileLoop, saved: Sequence[int]) -> WhileLoop:
    """The loop that also keeps some carries as they are before each iteration.

    Its carries: those of `node`, the number of the iteration, a stack for each that is saved.
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
    """Truth values as ints, which can be added to zeros."""
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
