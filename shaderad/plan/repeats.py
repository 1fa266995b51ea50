"""Loops -> steps that repeat the plan of one iteration, and store its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import BOOL, INT, Access
from shaderad.plan.active_calls import instantiate_where
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import Writer, write_kernel
from shaderad.plan.positions import constant, number
from shaderad.plan.steps import Plan, Repeat, RepeatWhile, StoreRow
from shaderad.rules.arrays.subgraphs import fresh, instantiate

PlanOf = Callable[[Graph], Plan]


def repeat(node: arrays.Loop, plan_of: PlanOf, depth: int) -> Repeat:
    """The plan of one iteration, and the kernels that store its rows; `depth` loops are around."""
    # No user's size has a name with a dollar sign.
    symbol = f"$iteration_{depth}"
    step = sizes.symbol(symbol)
    first, second = node.carry_count, node.carry_count + node.constant_count
    inputs = fresh(node.operands)
    rows = [_row(xs, step) for xs in inputs[second:]]
    k = arrays.SizeOf(operands=(), size=step).result
    results = instantiate(node.body, (k, *inputs[:second], *rows))
    outputs = (*map(_own, results[:first]), *results[first:])
    body = plan_of(Graph(inputs, outputs))
    ys = zip(body.outputs[first:], node.results[first:], strict=True)
    stores = tuple(_store_row(row, target, step) for (row, _), target in ys)
    return Repeat(node, body, symbol, stores, tuple(map(base_of, node.operands)))


def repeat_while(node: arrays.WhileLoop, plan_of: PlanOf) -> RepeatWhile:
    """The plan of an iteration that changes nothing once the condition has failed."""
    carry_count = node.carry_count
    carries, constants = fresh(node.operands[:carry_count]), fresh(node.operands[carry_count:])
    goes_on, count = Value(ArrayType(BOOL, ())), Value(ArrayType(INT, ()))
    below = b.elementwise(
        c.apply(ops.LT, c.variable("n", INT), c.whole(node.limit)), {"n": count}, ()
    )
    # At the limit the condition is needed, too: it says whether more iterations were wanted.
    is_tested = b.elementwise(
        c.select(c.variable("below", BOOL), c.variable("goes", BOOL),
                 nodes.Const(type=BOOL, value=True)), {"below": below, "goes": goes_on}, (),
    )  # fmt: skip
    (wants,) = instantiate_where(is_tested, node.condition, (*carries, *constants))
    holds = b.applied(ops.BIT_AND, goes_on, wants)
    goes = b.applied(ops.BIT_AND, holds, below)
    results = instantiate_where(goes, node.body, (*carries, *constants))
    next_carries = [
        b.where(b.broadcast(goes, new.shape, ()), new, old)
        for new, old in zip(results, carries, strict=True)
    ]
    one_more = b.elementwise(
        c.select(c.variable("goes", BOOL), c.apply(ops.ADD, c.variable("n", INT), c.whole(1)),
                 c.variable("n", INT)), {"goes": goes, "n": count}, (),
    )  # fmt: skip
    outputs = (*map(_own, next_carries), goes, one_more, _own(wants))
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
    """`value`, or a copy of an input: outputs have memory of their own."""
    if base_of(value).producer is not None:
        return value
    expr = c.variable(arrays.operand_name(0), value.element)
    return arrays.Elementwise(operands=(value,), expr=expr, shape=value.shape).result


def _store_row(row: Value, target: Value, step: Size) -> StoreRow:
    """The kernel that copies the row of iteration `step` into the rows of all iterations."""
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
