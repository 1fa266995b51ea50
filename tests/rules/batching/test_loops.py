"""Batches of loops: which carries are mapped, and elements that end at other iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, CustomPullback, Graph, Loop, Subgraph, Value, WhileLoop
from shaderad.ir.nodes import Expr
from shaderad.ir.types import BOOL, FLOAT, INT
from shaderad.rules.batching import batched
from tests.array_check import array
from tests.batch_check import check_batches, check_pullback
from tests.rules.arrays.test_loops import counted, growing, waves

TABLE = np.array([0.5, 1.25, -0.75, 2.0])


def draw(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape)


@pytest.mark.parametrize("is_reversed", [False, True], ids=["forward", "reversed"])
@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_carries_constants_and_xs(
    count: int, checkpoint: Literal["sqrt", "all"], *, is_reversed: bool
) -> None:
    graph = waves(count, checkpoint, is_reversed=is_reversed)
    check_batches(graph, [draw(2), draw(2), draw(count, 2)])


@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
def test_carries_that_choose_elements(checkpoint: Literal["sqrt", "all"]) -> None:
    check_batches(counted(checkpoint), [draw(), np.array(1), draw(3)])


def test_a_carry_that_is_shared_at_first_becomes_mapped_where_it_meets_others() -> None:
    k, first, second, i, z = array((), INT), array(()), array(()), array((), INT), array(())
    outputs = (b.applied(ops.MUL, first, second), b.applied(ops.ADD, second, z), b.plus(i, 1))
    inputs = (array(()), array(()), array((), INT), array(()))
    node = Loop(operands=inputs, body=Graph((k, first, second, i, z), outputs), count=4,
                carry_count=3, constant_count=1)  # fmt: skip
    graph = Graph(inputs, node.results)
    assert batched(graph, [False, False, False, True], 2)[1] == (True, True, False)
    assert batched(graph, [True, False, False, False], 2)[1] == (True, False, False)
    check_batches(graph, [draw(), draw(), np.array(0), draw()])


# -- conditions ---------------------------------------------------------------------------------


def test_elements_stop_at_their_own_iteration() -> None:
    check_batches(growing(), [np.array(0.5), np.array(True), np.array(1.7)])


def test_elements_that_stop_at_the_limit_are_reported() -> None:
    check_batches(growing(3), [np.array(0.5), np.array(True), np.array(1.7)])


def while_loop(
    inputs: tuple[Value, ...], condition: Value, outputs: tuple[Value, ...], limit: int = 12
) -> Graph:
    """``outputs`` of the inputs while the condition of the same inputs holds."""
    given = tuple(Value(v.type) for v in inputs)
    test, body = Graph(inputs, (condition,)), Graph(inputs, outputs)
    node = WhileLoop(operands=given, condition=test, body=body, carry_count=len(outputs),
                     limit=limit)  # fmt: skip
    return Graph(given, node.results)


def less(i: Value, count: int) -> Value:
    return b.applied(ops.LT, i, b.full((), c.whole(count)))


def test_a_condition_that_all_share_stays_one_value() -> None:
    i, x = array((), INT), array(())
    graph = while_loop((i, x), less(i, 5), (b.plus(i, 1), b.applied(ops.SIN, x)))
    whole, flags = batched(graph, [False, True], 3)
    assert flags == (False, True, False)
    (loop,) = (node for node in whole.nodes if isinstance(node, WhileLoop))
    assert loop.condition.outputs[0].shape == ()
    check_batches(graph, [np.array(2), np.array(0.5)])


def walking(i: Value, x: Value, table: Value) -> tuple[Value, Value]:
    """One past the end of a table of 4, where the loop stops."""
    at = arrays.Gather(operands=(table, i)).result
    return b.plus(i, 1), b.applied(ops.ADD, b.applied(ops.SIN, x), at)


def test_elements_that_have_stopped_report_nothing() -> None:
    inputs = (array((), INT), array(()), array((4,)))
    graph = while_loop(inputs, less(inputs[0], 4), walking(*inputs))
    check_batches(graph, [np.array(1), np.array(0.3), TABLE])


def test_elements_that_have_not_stopped_report_what_is_out_of_range() -> None:
    inputs = (array((), INT), array(()), array((4,)))
    graph = while_loop(inputs, less(inputs[0], 6), walking(*inputs))
    check_batches(graph, [np.array(1), np.array(0.3), TABLE])


def test_nor_do_loops_inside_of_them() -> None:
    i, x, table = array((), INT), array(()), array((4,))
    k, own, at, rows = array((), INT), array(()), array((), INT), array((4,))
    read = arrays.Gather(operands=(rows, at)).result
    body = Graph((k, own, at, rows), (b.applied(ops.ADD, own, read),))
    loop = Loop(operands=(x, i, table), body=body, count=3, carry_count=1, constant_count=2)
    graph = while_loop(
        (i, x, table), less(i, 4), (b.plus(i, 1), b.applied(ops.SIN, loop.results[0]))
    )
    check_batches(graph, [np.array(1), np.array(0.3), TABLE])


def test_nor_do_conditions_inside_of_them() -> None:
    i, x, table = array((), INT), array(()), array((4,))
    j, y, outer, rows = array((), INT), array(()), array((), INT), array((4,))
    outer_read = arrays.Gather(operands=(rows, outer)).result
    inner = WhileLoop(
        operands=(b.full((), c.whole(0)), x, i, table),
        condition=Graph((j, y, outer, rows), (b.applied(ops.LE, j, outer),)),
        body=Graph((j, y, outer, rows), (b.plus(j, 1), b.applied(ops.SUB, y, outer_read))),
        carry_count=2, limit=4,
    )  # fmt: skip
    after = b.applied(ops.SIN, inner.results[1])
    graph = while_loop((i, x, table), less(i, 4), (b.plus(i, 1), after))
    check_batches(graph, [np.array(1), np.array(0.3), TABLE])


@pytest.mark.parametrize("has_pullback", [False, True])
def test_nor_do_subgraphs_inside_of_them(*, has_pullback: bool) -> None:
    graph_of = [(array((), INT), array(()), array((4,))) for _ in range(3)]
    body = Graph(graph_of[0], walking(*graph_of[0])[1:])
    bar, saved, table, i = array(()), array(()), array((4,)), array((), INT)
    read = arrays.Gather(operands=(table, i)).result
    backward = Graph((i, saved, table, bar), (
        b.applied(ops.MUL, bar, b.applied(ops.COS, saved)),
        b.broadcast(b.applied(ops.MUL, bar, read), (4,), ()),
    ))  # fmt: skip
    own = graph_of[1]
    custom = CustomPullback("own", Graph(own, (walking(*own)[1], *own)), backward)
    inputs = graph_of[2]
    node = Subgraph(operands=inputs, body=body, custom=custom if has_pullback else None)
    graph = while_loop(inputs, less(inputs[0], 4), (b.plus(inputs[0], 1), node.results[0]))
    check_batches(graph, [np.array(1), np.array(0.3), TABLE], with_jvp=not has_pullback)


def rooted(x: Value, i: Value, z: Value) -> Value:
    """``sin(x) + sqrt(3.5 - i z)``, which is NaN for 4, where the loops below have stopped."""

    def root(v: Sequence[Expr]) -> Expr:
        product = c.apply(ops.MUL, c.convert(FLOAT, v[0]), v[1])
        below = c.apply(ops.SUB, c.number(FLOAT, 3.5), product)
        return c.apply(ops.SQRT, below)

    return b.applied(ops.ADD, b.applied(ops.SIN, x), b.composed(root, (i, z)))


def in_loop(x: Value, i: Value, z: Value) -> Value:
    k, *inputs = array((), INT), array(()), array((), INT), array(())
    return Loop(operands=(x, i, z), body=Graph((k, *inputs), (rooted(*inputs),)), count=2,
                carry_count=1, constant_count=2).results[0]  # fmt: skip


def in_while(x: Value, i: Value, z: Value) -> Value:
    j, own, outer, factor = inputs = array((), INT), array(()), array((), INT), array(())
    return WhileLoop(
        operands=(b.full((), c.whole(0)), x, i, z), condition=Graph(inputs, (less(j, 2),)),
        body=Graph(inputs, (b.plus(j, 1), rooted(own, outer, factor))), carry_count=2, limit=3,
    ).results[1]  # fmt: skip


def in_subgraph(x: Value, i: Value, z: Value) -> Value:
    inputs = array(()), array((), INT), array(())
    return Subgraph(operands=(x, i, z), body=Graph(inputs, (rooted(*inputs),))).result


def in_pullback(x: Value, i: Value, z: Value) -> Value:
    """With a pullback that is no derivative: the root in place of that by `z`."""
    inputs = array(()), array((), INT), array(())
    own_x, own_i, own_z, bar = array(()), array((), INT), array(()), array(())
    root = b.applied(ops.SUB, rooted(own_x, own_i, own_z), b.applied(ops.SIN, own_x))
    back = Graph((own_x, own_i, own_z, bar), (b.applied(ops.MUL, bar, b.applied(ops.COS, own_x)),
                                             b.applied(ops.MUL, bar, root)))  # fmt: skip
    custom = CustomPullback("own", Graph(inputs, (rooted(*inputs), *inputs)), back)
    return Subgraph(
        operands=(x, i, z), body=Graph(inputs, (rooted(*inputs),)), custom=custom
    ).result


@pytest.mark.parametrize("inside", [rooted, in_loop, in_while, in_subgraph, in_pullback])
def test_elements_that_have_stopped_have_no_cotangents(inside: Callable[..., Value]) -> None:
    i, x, z = array((), INT), array(()), array(())
    graph = while_loop((i, x, z), less(i, 4), (b.plus(i, 1), inside(x, i, z)))
    inputs = [np.array(1), np.array(0.5), np.array(1.0)]
    check_batches(graph, inputs, with_jvp=inside is not in_pullback)
    check_pullback(graph, inputs, [True, True, False])


def test_vectors_and_truth_values_are_carried() -> None:
    i, flag, x = array((), INT), array((), BOOL), array((3,))
    new = b.where(b.broadcast(flag, (3,), ()), b.applied(ops.SIN, x), b.applied(ops.MUL, x, x))
    graph = while_loop((i, flag, x), less(i, 4), (b.plus(i, 1), b.applied(ops.NOT, flag), new))
    check_batches(graph, [np.array(1), np.array(True), draw(3)])
    assert graph.inputs[2].type == ArrayType(FLOAT, (3,))
