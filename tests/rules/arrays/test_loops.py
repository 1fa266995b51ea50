"""Derivatives of loops: both kinds, all checkpoints, forward and backward."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from shaderad.diagnostics import DerivativeError
from shaderad.interpret.arrays import evaluate
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Loop, Node, Value
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, FLOAT, INT
from shaderad.rules.arrays import LinearisedGraph, jvp, loops, vjp
from tests.array_check import array, check

Checkpoint = Literal["sqrt", "all", "none"]


@pytest.fixture(params=["saved", "segments"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With square-root checkpoints, carries that are saved, and carries too large for that."""
    if request.param == "segments":
        monkeypatch.setattr(loops, "LITTLE_BYTES", 1)


def draw(*shape: int) -> Any:
    return np.random.default_rng(13).normal(size=shape)


def as_float(k: Value) -> Value:
    return b.elementwise(c.convert(FLOAT, c.variable("k", INT)), {"k": k}, ())


def waves(count: Size, checkpoint: Checkpoint, *, is_reversed: bool = False) -> Graph:
    """``carry, y = sin(carry + k) * z + x, carry * next`` over xs."""
    k, carry, z, x = array((), INT), array((2,)), array((2,)), array((2,))
    moved = b.applied(ops.ADD, carry, b.broadcast(as_float(k), (2,), ()))
    new = b.applied(ops.ADD, b.applied(ops.MUL, b.applied(ops.SIN, moved), z), x)
    body = Graph((k, carry, z, x), (new, b.applied(ops.MUL, carry, new)))
    inputs = (array((2,)), array((2,)), array((count, 2)))
    node = Loop(operands=inputs, body=body, count=count, carry_count=1, constant_count=1,
                is_reversed=is_reversed, checkpoint=checkpoint)  # fmt: skip
    return Graph(inputs, node.results)


@pytest.mark.parametrize("is_reversed", [False, True], ids=["forward", "reversed"])
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_carries_constants_and_xs(count: int, checkpoint: Checkpoint, *, is_reversed: bool) -> None:
    graph = waves(count, checkpoint, is_reversed=is_reversed)
    check(graph, [draw(2), draw(2), draw(count, 2)], order=1)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
def test_second_derivatives(checkpoint: Checkpoint) -> None:
    check(waves(5, checkpoint), [draw(2), draw(2), draw(5, 2)])


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("count", [0, 1, 11])
def test_a_symbolic_count(count: int) -> None:
    graph = waves(sizes.symbol("n"), "sqrt")
    check(graph, [draw(2), draw(2), draw(count, 2)], {"n": count}, order=1)


def counted(checkpoint: Checkpoint) -> Graph:
    """An int carry chooses which element of a constant array multiplies the float carry."""
    k, a, i, table = array((), INT), array(()), array((), INT), array((3,))
    at = c.apply(ops.MOD, c.variable("i", INT), c.whole(3))
    factor = arrays.Gather(operands=(table, b.elementwise(at, {"i": i}, ()))).result
    new = b.applied(ops.ADD, b.applied(ops.MUL, a, factor), factor)
    body = Graph((k, a, i, table), (new, b.applied(ops.ADD, i, k)))
    inputs = (array(()), array((), INT), array((3,)))
    node = Loop(operands=inputs, body=body, count=6, carry_count=2, constant_count=1,
                checkpoint=checkpoint)  # fmt: skip
    return Graph(inputs, node.results)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
def test_carries_without_derivative_are_saved_where_they_are_read(checkpoint: Checkpoint) -> None:
    check(counted(checkpoint), [draw(), np.array(1), draw(3)], order=1)


def stored_bytes(graph: Graph) -> int:
    """Floats of all arrays that loops save for the pullbacks of `graph`."""
    linear = LinearisedGraph(graph, [True, True, True])
    own = [n for n in arrays.needed_by(linear.outputs) if isinstance(n, Loop)]
    return sum(
        sizes.evaluate(sizes.product(v.shape), {}) for n in own for v in n.results[n.carry_count :]
    )


def test_square_root_checkpoints_save_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "LITTLE_BYTES", 100)
    assert stored_bytes(waves(100, "sqrt")) < stored_bytes(waves(100, "all"))


def test_carries_that_take_up_little_memory_are_all_saved() -> None:
    assert stored_bytes(waves(100, "sqrt")) == stored_bytes(waves(100, "all"))


@pytest.mark.parametrize(("count", "segment_count"), [(3, 0), (4, 2), (17, 4)])
def test_sizes_decide_whether_all_carries_are_saved(
    monkeypatch: pytest.MonkeyPatch, count: int, segment_count: int
) -> None:
    monkeypatch.setattr(loops, "LITTLE_BYTES", 32)  # four carries
    linear = LinearisedGraph(waves(sizes.symbol("n"), "sqrt"), [True, True, True])
    whole, rest = (n for n in arrays.needed_by(linear.outputs) if isinstance(n, Loop))
    assert sizes.evaluate(whole.count, {"n": count}) == segment_count
    assert sizes.evaluate(rest.count, {"n": count}) == count - segment_count**2


def test_a_sum_saves_nothing() -> None:
    k, total, x = array((), INT), array(()), array(())
    body = Graph((k, total, x), (b.applied(ops.ADD, total, b.applied(ops.SIN, x)),))
    inputs = (array(()), array((9,)))
    node = Loop(operands=inputs, body=body, count=9, carry_count=1, constant_count=0,
                checkpoint="all")  # fmt: skip
    linear = LinearisedGraph(Graph(inputs, node.results), [True, True])
    (kept,) = arrays.needed_by(linear.outputs)
    assert len(kept.results) == 1
    check(Graph(inputs, node.results), [draw(), draw(9)])


def test_reverse_mode_is_refused_where_nothing_is_saved() -> None:
    graph, active = waves(4, "none"), [True, True, True]
    with pytest.raises(DerivativeError, match="SR0471"):
        vjp(graph, active)
    data = [draw(2), draw(2), draw(4, 2)]
    found, _ = evaluate(jvp(graph, active), [*data, *data])
    expected, _ = evaluate(jvp(waves(4, "all"), active), [*data, *data])
    np.testing.assert_array_equal(found[-1], expected[-1])


# -- loops whose number of iterations depends on values -----------------------------------------


def growing(limit: int = 20) -> Graph:
    """``a = (a + sin z) z`` while ``a < 30``; a truth value is carried along."""
    a, flag, z = array(()), array((), BOOL), array(())
    new = b.applied(ops.MUL, b.applied(ops.ADD, a, b.applied(ops.SIN, z)), z)
    kept = b.where(flag, new, b.applied(ops.ADD, new, z))
    body = Graph((a, flag, z), (kept, b.applied(ops.NOT, flag)))
    tested = (array(()), array((), BOOL), array(()))
    is_small = b.applied(ops.LT, tested[0], b.full((), c.number(FLOAT, 30.0)))
    inputs = (array(()), array((), BOOL), array(()))
    node: Node = arrays.WhileLoop(operands=inputs, condition=Graph(tested, (is_small,)), body=body,
                                  carry_count=2, limit=limit)  # fmt: skip
    return Graph(inputs, node.results)


def test_as_many_iterations_run_backward_as_ran_forward() -> None:
    check(growing(), [np.array(0.5), np.array(True), np.array(1.7)])


def test_a_loop_that_does_not_run_passes_its_cotangent_on() -> None:
    check(growing(), [np.array(50.0), np.array(True), np.array(1.7)], order=1)


def test_a_loop_that_stops_at_its_limit_is_differentiated_that_far() -> None:
    graph, data = growing(3), [np.array(0.5), np.array(True), np.array(1.7)]
    check(graph, data, order=1)
    _, reports = evaluate(vjp(graph, [True, False, True]), [*data, np.ones(())])
    assert len(reports) == 1
