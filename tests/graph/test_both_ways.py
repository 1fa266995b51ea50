"""The gradient of a product scan comes of one pass over its chunks, from both ends."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.graph.plan import RunScans, Step
from shaderad.graph.planning import plan
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays import vjp
from tests.array_check import array

N = sizes.symbol("n")
LENGTHS = (0, 1, 2, 8, 9, 10, 17, 2049, 2305, 50_003)

Floats = np.ndarray[Any, Any]


def steps_of(op: ops.Op, *, is_parallel: bool) -> tuple[Step, ...]:
    x, weight = array((N,)), array((N,))
    total = b.reduce(ops.ADD, b.applied(ops.MUL, b.scan(op, x), weight))
    gradient = vjp(Graph((x, weight), (total,)), [True, False])
    only = Graph(gradient.inputs, gradient.outputs[1:])
    return plan(only, is_parallel=is_parallel).steps


def test_what_flows_back_through_a_product_has_no_memory_where_threads_run_in_turn() -> None:
    (step,) = steps_of(ops.MUL, is_parallel=False)
    assert isinstance(step, RunScans)
    assert step.end is not None
    (gradient,) = step.writes
    assert gradient is step.scans[1].result


def test_where_they_run_side_by_side_it_has() -> None:
    (step,) = steps_of(ops.MUL, is_parallel=True)
    assert isinstance(step, RunScans)
    assert step.end is None
    assert len(step.writes) == 2


def test_what_flows_back_has_memory_where_it_is_asked_for() -> None:
    x = array((N,))
    total = b.reduce(ops.ADD, b.applied(ops.MUL, b.scan(ops.MUL, x), x))
    gradient = vjp(Graph((x,), (total,)), [True])
    (step,) = plan(Graph(gradient.inputs, gradient.outputs[1:]), is_parallel=False).steps
    assert isinstance(step, RunScans)
    inner = step.scans[0].result
    outputs = (*gradient.outputs[1:], inner)
    (step,) = plan(Graph(gradient.inputs, outputs), is_parallel=False).steps
    assert isinstance(step, RunScans)
    assert step.end is None


@pytest.fixture(scope="module", params=[{}, {"kind": "discrete"}], ids=["alone", "together"])
def opened(device: sad.Device, request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """The device, and as if its groups ran at once."""
    if not request.param:
        yield device
        return
    other = sad.open_device(device.capabilities.runtime, limits=request.param)
    yield other
    other.close()


@sad.graph
def weighted(x: sad.Array[float, "n"], weight: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * weight)


@sad.graph
def weighted_vectors(x: sad.Array[float3, "n"], weight: sad.Array[float3, "n"]) -> sad.Array[float]:
    products = sad.scan(sad.mul, x) * weight
    return sad.sum(products.x + products.y + products.z)


def expected(x: Floats, weight: Floats) -> Floats:
    """Each row by itself, without a division: what comes before times what flows back."""
    exact = x.astype(np.float64)
    before = np.cumprod(np.concatenate([np.ones_like(exact[:1]), exact[:-1]]), axis=0)
    flowing, found = np.zeros(x.shape[1:]), np.zeros(x.shape)
    for k in reversed(range(len(x))):
        flowing = weight[k] + (flowing * exact[k + 1] if k + 1 < len(x) else 0.0)
        found[k] = before[k] * flowing
    return found


def factors(shape: tuple[int, ...], zeros: int) -> Floats:
    draw = np.random.default_rng(shape[0] + zeros)
    x = 1 + 3e-3 * draw.standard_normal(shape)
    if shape[0]:
        x[draw.integers(0, shape[0], zeros)] = 0.0
    return x.astype(np.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("zeros", [0, 2])
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_products_are_right(opened: sad.Device, length: int, zeros: int) -> None:
    x = factors((length,), zeros)
    weight = np.random.default_rng(1).standard_normal(length).astype(np.float32)
    with opened:
        by_x, by_weight = (g.numpy() for g in sad.grad(weighted, (0, 1))(x, weight))
        _, slope = sad.jvp(weighted, (x, weight), (np.ones_like(x), np.zeros_like(weight)))
        rate = slope.item()
    wanted = expected(x, weight)
    scale = np.abs(wanted).max(initial=1e-3)
    np.testing.assert_allclose(by_x, wanted, rtol=0, atol=2e-5 * scale)
    np.testing.assert_allclose(by_weight, np.cumprod(x.astype(np.float64)), rtol=1e-5, atol=1e-9)
    terms = np.abs(wanted).sum()
    np.testing.assert_allclose(rate, wanted.sum(), rtol=0, atol=2e-5 * max(terms, 1e-3))


@pytest.mark.gpu
@pytest.mark.parametrize("length", [1, 9, 2057])
def test_gradients_of_products_of_vectors_are_right(opened: sad.Device, length: int) -> None:
    x = factors((length, 3), 1)
    weight = np.random.default_rng(1).standard_normal((length, 3)).astype(np.float32)
    with opened:
        found = sad.grad(weighted_vectors)(x, weight).numpy()
    wanted = expected(x, weight)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.gpu
def test_an_infinite_factor_reaches_only_what_it_is_multiplied_with(opened: sad.Device) -> None:
    x = np.ones(3000, np.float32)
    x[-1] = np.inf
    with opened:
        found = sad.grad(weighted)(x, np.ones_like(x)).numpy()
    assert np.isinf(found[:-1]).all()
    # The last is multiplied with all before it, which are finite.
    assert found[-1] == 1.0
