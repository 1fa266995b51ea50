"""A reduction that takes elements in any order stores arrays of their shape that read the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Value
from shaderad.plan.nest.chains import without_chains
from shaderad.plan.planning import plan
from shaderad.plan.steps import Plan, RunKernel, RunPass
from tests.array_check import array
from tests.devices import entered

M, N = sizes.symbol("m"), sizes.symbol("n")
LENGTHS = (0, 1, 64, 1025, 9000)


def planned(inputs: tuple[Value, ...], *outputs: Value) -> Plan:
    return plan(Graph(inputs, outputs))


def steps_of(inputs: tuple[Value, ...], *outputs: Value) -> list[type]:
    return [type(step) for step in without_chains(planned(inputs, *outputs)).steps]


def total(x: Value) -> Value:
    return b.reduce(ops.ADD, x)


def test_one_step_sums_and_stores() -> None:
    x, y = array((N,)), array((N,))
    product, difference = b.applied(ops.MUL, x, y), b.applied(ops.SUB, x, y)
    found = planned((x, y), total(product), difference, product)
    (step,) = found.steps
    assert isinstance(step, RunPass)
    assert set(step.writes) == {v for v, _ in found.outputs}


def test_rows_are_summed_in_passing_too() -> None:
    x = array((M, N))
    assert steps_of((x,), total(b.applied(ops.SIN, x)), b.applied(ops.COS, x)) == [RunPass]


def test_what_reads_nothing_in_common_stays_apart() -> None:
    x, y = array((N,)), array((N,))
    assert steps_of((x, y), total(x), b.applied(ops.SIN, y)) == [RunPass, RunKernel]


def test_other_shapes_stay_apart() -> None:
    x, y = array((N,)), array((M,))
    assert set(steps_of((x, y), total(x), b.applied(ops.SIN, y))) == {RunKernel, RunPass}
    x = array((M, N))
    turned = b.reduce(ops.MAX, b.transpose(x, (1, 0)))
    assert set(steps_of((x,), turned, b.applied(ops.SIN, x))) == {RunKernel, RunPass}


def test_a_sum_of_all_elements_stores_arrays_of_several_axes() -> None:
    x, y = array((M, N)), array((M, N))
    difference = b.applied(ops.SUB, x, y)
    flat = b.reshape(squared(difference), (sizes.multiply(M, N),))
    found = planned((x, y), total(flat), difference)
    (step,) = found.steps
    assert set(step.writes) == {v for v, _ in found.outputs}


def test_what_takes_elements_in_order_does_not_store_in_passing() -> None:
    x = array((N,))
    lowest = b.reduce(ops.MIN, x)
    assert steps_of((x,), lowest, b.applied(ops.SIN, x)) == [RunPass]
    first = arrays.ArgExtreme(operands=(x,), kind="min").result
    assert set(steps_of((x,), first, b.applied(ops.SIN, x))) == {RunKernel, RunPass}


def test_what_needs_the_sum_comes_after_it() -> None:
    x = array((N,))
    mean = b.broadcast(total(x), (N,), ())
    assert steps_of((x,), b.applied(ops.SUB, x, mean), b.applied(ops.SIN, x)) == [
        RunPass,
        RunKernel,
    ]


def test_what_reads_the_stored_array_elsewhere_comes_after_the_pass() -> None:
    x = array((N,))
    sine = b.applied(ops.SIN, x)
    moved = b.applied(ops.MUL, b.reverse(sine), squared(x))
    found = planned((x,), total(sine), sine, moved)
    assert [type(step) for step in found.steps] == [RunPass, RunKernel]


def squared(x: Value) -> Value:
    return b.applied(ops.MUL, x, x)


def test_a_pass_binds_no_more_than_there_is() -> None:
    xs = [array((N,)) for _ in range(4)]
    product = xs[0]
    for x in xs[1:]:
        product = b.applied(ops.MUL, product, x)
    found = planned((*xs,), total(product), *(b.applied(ops.SIN, x) for x in xs))
    for step in found.steps:
        assert len(step.reads) + len(step.writes) <= 8


@pytest.fixture(params=["software", "discrete"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def either(request: pytest.FixtureRequest, kind: str) -> Iterator[sad.Device]:
    """Devices whose threads take runs of elements, or every so many an element."""
    with entered(request.param, {"kind": kind}) as opened:
        yield opened


def fitted(x: Any, y: Any, a: Any) -> Any:
    return sad.sum((a * x * x - y) ** 2)


@pytest.mark.gpu
@pytest.mark.parametrize("length", LENGTHS)
def test_values_and_gradients_are_those_of_float64(length: int, either: sad.Device) -> None:
    rng = np.random.default_rng(length)
    x, y = (rng.uniform(-1, 1, length).astype(np.float32) for _ in range(2))
    found = sad.value_and_grad(sad.graph(fitted), argnums=(0, 1, 2))(x, y, np.float32(0.7))
    value, (x_bar, y_bar, a_bar) = found
    wide, other = x.astype(float), y.astype(float)
    error = 0.7 * wide * wide - other
    np.testing.assert_allclose(float(value), np.sum(error**2), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x_bar.numpy(), 2 * error * 1.4 * wide, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y_bar.numpy(), -2 * error, rtol=1e-4, atol=1e-5)
    by_a = np.sum(2 * error * wide * wide)
    np.testing.assert_allclose(float(a_bar), by_a, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (5, 129), (2, 9000)])
def test_sums_of_rows_and_of_vectors(shape: tuple[int, int], either: sad.Device) -> None:
    pairs = np.random.default_rng(shape).uniform(-1, 1, (*shape, 2)).astype(np.float32)

    @sad.graph
    def both(x: Any) -> Any:
        doubled = x * 2.0
        return sad.sum(x * x, axis=-1), doubled

    sums, doubled = both(sad.array(pairs, dtype=float2))
    np.testing.assert_allclose(sums.numpy(), (pairs.astype(float) ** 2).sum(1), atol=1e-3)
    np.testing.assert_array_equal(doubled.numpy(), pairs * 2)


@pytest.mark.gpu
def test_a_pass_over_other_axes_comes_after_the_arrays_that_it_reads(either: sad.Device) -> None:
    """The value has as many elements as the gradients, in another order."""
    rng = np.random.default_rng(6)
    x, y = (rng.uniform(-1, 1, (36, 64)).astype(np.float32) for _ in range(2))
    bar = rng.uniform(-1, 1, (64, 36)).astype(np.float32)

    @sad.graph
    def turned(x: Any, y: Any, scale: Any) -> Any:
        return sad.sin(x.T + (y * scale).T)

    value, pullback = sad.vjp(turned, *map(sad.array, (x, y, np.float32(0.7))))
    gradients = pullback(sad.array(bar))  # Before the value is asked for: one plan computes both.
    angle = x.astype(float) + y.astype(float) * 0.7
    x_bar = np.cos(angle) * bar.T
    expected = np.sin(angle).T, x_bar, x_bar * 0.7, np.sum(x_bar * y)
    for found, exact in zip((value, *gradients), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), exact, atol=1e-4)
