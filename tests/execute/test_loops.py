"""Loops over arrays on devices: inside one kernel, or step by step."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.runner import evaluate
from shaderad.ir import arrays, nodes, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.planning import plan
from shaderad.rules.arrays import loops, vjp
from tests.array_check import array
from tests.execute.test_graphs import M, N, Rng, check

COUNTS = (5, 4, 1, 0)


@pytest.fixture
def rng() -> Rng:
    return np.random.default_rng(1)


def as_float(k: Value) -> Value:
    return b.elementwise(nodes.Cast(type=FLOAT, value=c.variable("k", INT)), {"k": k}, ())


def everywhere(x: Value) -> Value:
    return b.broadcast(x, (N,), ())


def elementwise_loop(*, is_reversed: bool) -> Graph:
    k, x, s, z, row = array((), INT), array((N,)), array(()), array(()), array((N,))
    scaled = b.applied(ops.MUL, row, everywhere(b.applied(ops.MUL, s, z)))
    new = b.applied(ops.ADD, b.applied(ops.SIN, x), scaled)
    turned = b.applied(ops.COS, b.applied(ops.ADD, s, as_float(k)))
    new_s = b.applied(ops.ADD, s, b.applied(ops.MUL, z, turned))
    ys = (b.applied(ops.EXP, new), b.applied(ops.MUL, s, as_float(k)))
    inputs = (array((N,)), array(()), array(()), array((M, N)))
    node = arrays.Loop(
        operands=inputs, body=Graph((k, x, s, z, row), (new, new_s, *ys)), count=M,
        carry_count=2, constant_count=1, is_reversed=is_reversed, checkpoint="all",
    )  # fmt: skip
    return Graph(inputs, node.results)


def stepwise_loop(*, is_reversed: bool, checkpoint: str) -> Graph:
    """Its body reverses and sums the carry."""
    k, x, s, z, row = array((), INT), array((N,)), array(()), array((N,)), array(())
    total = b.reduce(ops.ADD, x)
    added = b.applied(ops.MUL, z, everywhere(b.applied(ops.ADD, as_float(k), row)))
    new = b.applied(ops.ADD, b.applied(ops.SIN, b.reverse(x)), added)
    new_s = b.applied(ops.SIN, b.applied(ops.ADD, total, s))
    inputs = (array((N,)), array(()), array((N,)), array((M,)))
    node = arrays.Loop(
        operands=inputs, body=Graph((k, x, s, z, row), (new, new_s, x, total)), count=M,
        carry_count=2, constant_count=1, is_reversed=is_reversed,
        checkpoint=checkpoint,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip
    return Graph(inputs, node.results)


def test_a_loop_that_is_elementwise_in_its_carries_is_one_kernel_a_shape() -> None:
    assert len(plan(elementwise_loop(is_reversed=False)).steps) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("is_reversed", [False, True])
def test_loops_inside_kernels_agree(device: sad.Device, rng: Rng, is_reversed: bool) -> None:
    graph = elementwise_loop(is_reversed=is_reversed)
    for n, m in ((5, 4), (3, 0), (0, 4)):
        data = [rng.normal(size=n), np.array(0.3), np.array(0.7), rng.normal(size=(m, n))]
        check(device, graph, data, n=n, m=m)


@pytest.mark.gpu
@pytest.mark.parametrize("is_reversed", [False, True])
def test_loops_of_several_steps_agree(device: sad.Device, rng: Rng, is_reversed: bool) -> None:
    graph = stepwise_loop(is_reversed=is_reversed, checkpoint="all")
    for m in COUNTS:
        data = [rng.normal(size=6), np.array(0.3), rng.normal(size=6), rng.normal(size=m)]
        check(device, graph, data, n=6, m=m)


@pytest.mark.gpu
@pytest.mark.parametrize("checkpoint", ["all", "sqrt"])
def test_gradients_of_loops_of_several_steps_agree(
    device: sad.Device, rng: Rng, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setattr(loops, "LITTLE_BYTES", 64)  # four carries
    graph = vjp(stepwise_loop(is_reversed=False, checkpoint=checkpoint), [True] * 4)
    for m in (10, 9, 3, 1, 0):
        data = [rng.normal(size=3), np.array(0.3), rng.normal(size=3), rng.normal(size=m)]
        bars = [rng.normal(size=3), np.array(0.4), rng.normal(size=(m, 3)), rng.normal(size=m)]
        check(device, graph, [*data, *bars], n=3, m=m)


@pytest.mark.gpu
def test_a_million_iterations_are_one_dispatch(device: sad.Device) -> None:
    k, x, z = array((), INT), array(()), array(())
    new = b.applied(ops.ADD, b.applied(ops.MUL, x, z), b.applied(ops.COS, x))
    inputs = (array(()), array(()))
    node = arrays.Loop(operands=inputs, body=Graph((k, x, z), (new,)), count=M, carry_count=1,
                       constant_count=1, checkpoint="none")  # fmt: skip
    given = [sad.array(0.3, device=device), sad.array(0.5, device=device)]
    (found,) = evaluate(Graph(inputs, node.results), given, {"m": 1_000_000}, device)
    assert found.item() == pytest.approx(2 * np.cos(found.item()), rel=1e-5)


def scalar_while(limit: int) -> Graph:
    x, z = array(()), array(())
    cond_x, cond_z = array(()), array(())
    above = c.apply(ops.GT, c.variable("x", FLOAT), c.number(FLOAT, 0.01))
    condition = Graph((cond_x, cond_z), (b.elementwise(above, {"x": cond_x}, ()),))
    inputs = (array(()), array(()))
    node = arrays.WhileLoop(
        operands=inputs, condition=condition, body=Graph((x, z), (b.applied(ops.MUL, x, z),)),
        carry_count=1, limit=limit,
    )  # fmt: skip
    return Graph(inputs, node.results)


def array_while(limit: int) -> Graph:
    x, z = array((N,)), array(())
    cond_x, cond_z = array((N,)), array(())
    above = c.apply(ops.GT, c.variable("x", FLOAT), c.number(FLOAT, 0.5))
    largest = b.reduce(ops.MAX, cond_x)
    condition = Graph((cond_x, cond_z), (b.elementwise(above, {"x": largest}, ()),))
    new = b.applied(ops.MUL, b.reverse(x), everywhere(z))
    inputs = (array((N,)), array(()))
    node = arrays.WhileLoop(operands=inputs, condition=condition, body=Graph((x, z), (new,)),
                            carry_count=1, limit=limit)  # fmt: skip
    return Graph(inputs, node.results)


@pytest.mark.gpu
@pytest.mark.parametrize("factor", [0.9, 0.5, 0.001])
def test_while_loops_end_where_they_should(device: sad.Device, rng: Rng, factor: float) -> None:
    check(device, scalar_while(100), [np.array(3.0), np.array(factor)])
    check(device, array_while(100), [rng.random(4) + 1, np.array(factor)], n=4)


@pytest.mark.gpu
def test_a_while_loop_that_is_cut_off_is_reported(device: sad.Device) -> None:
    for graph, x in ((scalar_while(20), 3.0), (array_while(20), [1.0, 2.0])):
        given = [sad.array(x, device=device), sad.array(0.999, device=device)]
        found = evaluate(graph, given, {"n": 2}, device)
        with pytest.raises(sad.LimitError, match="limit of 20"):
            found[0].numpy()
        assert found[1].item() == 20
