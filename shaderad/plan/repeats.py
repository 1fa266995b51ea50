"""Loops whose body needs several steps -> the plan of one iteration.

The number of the iteration is a size of that plan, so that a row of what the loop runs over is a
slice like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import BOOL, INT, Access
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import Writer, write_kernel
from shaderad.plan.positions import constant, number
from shaderad.plan.steps import Plan, Repeat, RepeatWhile, StoreRow
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.subgraphs import fresh, instantiate

PlanOf = Callable[[Graph], Plan]


def repeat(node: arrays.Loop, plan_of: PlanOf, depth: int) -> Repeat:
    """The plan of one iteration, and how its rows are stored; `depth` loops are around it."""
    # No user's size has a name with a dollar sign.
    symbol = f"$iteration_{depth}"
    step = sizes.symbol(symbol)
    first, second = node.carry_count, node.carry_count + node.constant_count
    inputs = fresh(node.operands)
    rows = [_row(xs, step) for xs in inputs[second:]]
    k = arrays.SizeOf(operands=(), size=step).result
    found = instantiate(node.body, (k, *inputs[:second], *rows))
    outputs = (*map(_own, found[:first]), *found[first:])
    body = plan_of(Graph(inputs, outputs))
    ys = zip(body.outputs[first:], node.results[first:], strict=True)
    stores = tuple(_store_row(row, target, step) for (row, _), target in ys)
    return Repeat(node, body, symbol, stores, tuple(map(base_of, node.operands)))


def repeat_while(node: arrays.WhileLoop, plan_of: PlanOf) -> RepeatWhile:
    """The plan of an iteration that changes nothing once the condition has failed."""
    carry_count = node.carry_count
    carries, constants = fresh(node.operands[:carry_count]), fresh(node.operands[carry_count:])
    goes_on, count = Value(ArrayType(BOOL, ())), Value(ArrayType(INT, ()))
    (wants,) = instantiate(node.condition, (*carries, *constants))
    below = b.elementwise(
        c.apply(ops.LT, c.variable("n", INT), c.whole(node.limit)), {"n": count}, ()
    )
    holds = b.applied(ops.BIT_AND, goes_on, wants)
    goes = b.applied(ops.BIT_AND, holds, below)
    found = instantiate(node.body, (*carries, *constants))
    kept = [
        b.where(b.broadcast(goes, new.shape, ()), new, old)
        for new, old in zip(found, carries, strict=True)
    ]
    one_more = b.elementwise(
        c.select(c.variable("goes", BOOL), c.apply(ops.ADD, c.variable("n", INT), c.whole(1)),
                 c.variable("n", INT)), {"goes": goes, "n": count}, (),
    )  # fmt: skip
    outputs = (*map(_own, kept), goes, one_more, _own(wants))
    body = plan_of(Graph((*carries, goes_on, count, *constants), outputs))
    return RepeatWhile(node, body, tuple(map(base_of, node.operands)))


def _row(xs: Value, step: Size) -> Value:
    """``xs[step]``."""
    rest = xs.shape[1:]
    sliced = arrays.Slice(
        operands=(xs,), starts=(step, *[0] * len(rest)), steps=(1,) * len(xs.shape),
        shape=(1, *rest),
    )  # fmt: skip
    return b.reshape(sliced.result, rest)


def _own(value: Value) -> Value:
    """What is passed on as it was given is copied, so that it has memory of its own."""
    if base_of(value).producer is not None:
        return value
    expr = c.variable(arrays.operand_name(0), value.element)
    return arrays.Elementwise(operands=(value,), expr=expr, shape=value.shape).result


def _store_row(row: Value, target: Value, step: Size) -> StoreRow:
    """The kernel that brings a row to its place among those of all iterations."""
    shape: Shape = (sizes.product(row.shape),)
    flat = Value(ArrayType(row.element, shape))
    rows = Value(ArrayType(row.element, (sizes.product(target.shape),)))

    def body(writer: Writer) -> Sequence[Stmt]:
        start = number((constant(step), writer.own[0]), (1, shape[0]))
        (element,) = writer.values([flat])
        at = (writer.positions.expr(start),)
        return [nodes.Store(buffer="y0", indices=at, value=element, is_unique=True)]

    work = write_kernel("store_row", shape, lambda v: True, body, [("y0", rows, Access.OUT)])
    return StoreRow(work, row, target)
