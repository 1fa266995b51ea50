"""Reductions of the same elements are computed in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double, float3, half
from shaderad.ir import arrays, ops, sizes, types
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Value
from shaderad.plan.nest.chains import without_chains
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunPass
from tests.array_check import array

M, N = sizes.symbol("m"), sizes.symbol("n")
LENGTHS = (0, 1, 2, 63, 1000, 4099)


def steps_of(inputs: tuple[Value, ...], *outputs: Value) -> list[type]:
    return [type(step) for step in without_chains(plan(Graph(inputs, outputs))).steps]


def total(x: Value) -> Value:
    return b.reduce(ops.ADD, x)


def test_sums_of_the_same_elements_are_one_pass() -> None:
    x, y = array((N,)), array((N,))
    squares = b.applied(ops.MUL, x, y)
    assert steps_of((x, y), total(x), total(squares), total(y)) == [RunPass]


def test_reductions_by_any_operators_are_one_pass() -> None:
    for shape in ((N,), (M, N)):
        x = array(shape)
        lowest = arrays.ArgExtreme(operands=(x,), kind="min").result
        reductions = [b.reduce(op, x) for op in (ops.ADD, ops.MIN, ops.MAX)]
        assert steps_of((x,), *reductions, lowest) == [RunPass]


def test_sums_of_other_elements_stay_apart() -> None:
    x, y, number = array((N,)), array((N,)), array(())
    scaled = [b.applied(ops.MUL, v, b.broadcast(number, (N,), ())) for v in (x, y)]
    assert steps_of((x, y, number), *map(total, scaled)) == [RunPass, RunPass]


def test_more_scalars_than_a_thread_should_hold_are_two_passes() -> None:
    x = array((N,))
    parts = [b.applied(op, x) for op in (ops.SIN, ops.COS, ops.TAN, ops.EXP, ops.ABS)]
    parts += [b.applied(ops.MUL, part, x) for part in parts]
    assert steps_of((x,), *map(total, parts)).count(RunPass) == 2


def test_those_of_other_lengths_or_types_stay_apart() -> None:
    x, longer = array((N,)), array((M,))
    assert steps_of((x, longer), total(x), total(longer)) == [RunPass, RunPass]
    for t in (types.HALF, types.DOUBLE):
        y = array((N,), t)
        assert steps_of((y,), total(y), b.reduce(ops.MAX, y)) == [RunPass, RunPass]


def test_a_sum_of_what_another_one_gave_comes_after_it() -> None:
    x = array((N,))
    mean = b.broadcast(total(x), (N,), ())
    moved = b.applied(ops.SUB, x, mean)
    steps = without_chains(plan(Graph((x,), (total(moved), total(x))))).steps
    assert sum(isinstance(step, RunPass) for step in steps) == 2


def test_a_pass_reads_no_more_than_it_can_bind() -> None:
    x, y, z, u, v = (array((N,)) for _ in range(5))
    products = [b.applied(ops.MUL, *pair) for pair in ((x, y), (z, u), (u, v))]
    found = steps_of((x, y, z, u, v), *map(total, products))
    assert found.count(RunPass) == 2


def fitted(x: Any, y: Any, a: Any, c: Any) -> Any:
    return sad.sum((a * x * x + c - y) ** 2)


def spread(x: Any, y: Any, a: Any, c: Any) -> Any:
    """Sums that depend on one another."""
    mean = sad.sum(a * x) / 7.0
    return sad.sum((x - mean) ** 2) + c * sad.sum(x * y) * sad.sum(y)


@pytest.mark.gpu
@pytest.mark.parametrize("function", [fitted, spread])
@pytest.mark.parametrize("length", LENGTHS)
def test_values_and_gradients_are_those_of_float64(
    function: Callable[..., Any], length: int, device: sad.Device
) -> None:
    rng = np.random.default_rng(length)
    x, y = (rng.uniform(-1, 1, length).astype(np.float32) for _ in range(2))
    a, c = np.float32(0.7), np.float32(-0.2)
    value, found = sad.value_and_grad(sad.graph(function), argnums=(0, 1, 2, 3))(x, y, a, c)

    def exact(x: Any, y: Any, a: Any, c: Any) -> Any:
        if function is fitted:
            return ((a * x * x + c - y) ** 2).sum()
        mean = (a * x).sum() / 7.0
        return ((x - mean) ** 2).sum() + c * (x * y).sum() * y.sum()

    given = [np.asarray(v, np.float64) for v in (x, y, a, c)]
    np.testing.assert_allclose(float(value), exact(*given), rtol=2e-5, atol=1e-5)
    for position, gradient in enumerate(found):
        direction = rng.uniform(-1, 1, given[position].shape)
        step = 1e-4
        ends = []
        for sign in (1, -1):
            moved = list(given)
            moved[position] = given[position] + sign * step * direction
            ends.append(exact(*moved))
        slope = (ends[0] - ends[1]) / (2 * step)
        along = float((np.asarray(gradient, np.float64) * direction).sum())
        assert along == pytest.approx(slope, rel=5e-4, abs=5e-4)


@pytest.mark.gpu
def test_vectors_and_scalars_share_a_pass(device: sad.Device) -> None:
    rng = np.random.default_rng(1)
    p, w = rng.normal(size=(999, 3)).astype(np.float32), rng.normal(size=999).astype(np.float32)

    @sad.graph
    def both(p: Any, w: Any) -> Any:
        return sad.sum(w), sad.sum(p * w)

    points, weights = sad.array(p, dtype=float3, device=device), sad.array(w, device=device)
    assert ", 1 step\n" in str(both.explain(points, weights))
    found = both(points, weights)
    np.testing.assert_allclose(float(found[0]), w.astype(np.float64).sum(), rtol=1e-5)
    exact = (p.astype(np.float64) * w[:, None]).sum(0)
    np.testing.assert_allclose(found[1].numpy(), exact, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("t", [half, double, int])
def test_other_types_are_summed_by_themselves(device: sad.Device, t: Any) -> None:
    x, y = (sad.array(values, dtype=t, device=device) for values in (range(60), [1] * 60))
    found = sad.graph(lambda x, y: (sad.sum(x), sad.sum(y)))(x, y)
    assert [float(one) for one in found] == [1770.0, 60.0]
