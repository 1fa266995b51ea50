"""Sums along the columns of a product of what that reads are computed by its kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import building as b
from shaderad.ir import ops
from shaderad.ir.arrays import Graph, Value
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunTiles
from tests.array_check import array
from tests.plan.test_tiles import K, M, N, drawn, kinds

# -- which sums ---------------------------------------------------------------------------------


def weights_of(h: Value, g: Value) -> Value:
    """``sum_k h[k, n] * g[k, m]``."""
    left = b.broadcast(b.transpose(h, (1, 0)), (N, M, K), (0, 2))
    right = b.broadcast(b.transpose(g, (1, 0)), (N, M, K), (1, 2))
    return b.reduce(ops.ADD, b.applied(ops.MUL, left, right))


def test_gradients_of_weights_and_bias_are_one_step() -> None:
    h, g = array((K, N)), array((K, M))
    steps = plan(Graph((h, g), (weights_of(h, g), b.sum_over(g, (0,))))).steps
    assert [type(step) for step in steps] == [RunTiles]
    assert [v.shape for v in steps[0].writes] == [(N, M), (M,)]


def test_a_function_of_what_the_product_reads_is_summed_beside_it() -> None:
    h, g = array((K, N)), array((K, M))
    squares = b.applied(ops.MUL, g, g)
    assert kinds(weights_of(h, g), b.sum_over(squares, (0,))) == ["RunTiles"]


def test_other_sums_are_steps_of_their_own() -> None:
    h, g, other = array((K, N)), array((K, M)), array((K, M))
    both = weights_of(h, g)
    for apart in (
        b.sum_over(h, (0,)),  # along the rows
        b.sum_over(other, (0,)),
        b.sum_over(b.applied(ops.MUL, g, other), (0,)),
        b.reduce(ops.MAX, b.transpose(g, (1, 0))),
    ):
        assert len(kinds(both, apart)) == 2


def test_a_product_takes_one_sum_and_a_sum_is_computed_once() -> None:
    h, g = array((K, N)), array((K, M))
    sums = [b.sum_over(v, (0,)) for v in (g, b.applied(ops.MUL, g, g))]
    assert kinds(weights_of(h, g), *sums) == ["RunTiles", "RunTiles"]
    other = array((K, N))
    assert kinds(weights_of(h, g), weights_of(other, g), sums[0]) == ["RunTiles", "RunTiles"]


def test_a_product_that_binds_too_many_arrays_leaves_the_sum_apart() -> None:
    h, g = array((K, N)), array((K, M))
    both = Graph((h, g), (weights_of(h, g), b.sum_over(g, (0,))))
    assert [len(plan(both, buffer_limit=limit).steps) for limit in (6, 5)] == [1, 2]


# -- their values -------------------------------------------------------------------------------

SHAPES = [
    (5000, 16, 64), (5000, 64, 3), (60, 16, 32), (1021, 13, 17), (3, 5, 1), (0, 4, 8), (5, 0, 8),
    (4096, 36, 20), (1000, 8, 64),
]  # fmt: skip
"""Elements of the sums, rows and columns."""


def near(found: Any, exact: Any, count: int) -> None:
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-5, atol=1e-5 * max(1, count) ** 0.5)


@pytest.mark.gpu
@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["all sizes", "alone", "grouped", "eight"], indirect=True)
@pytest.mark.usefixtures("kind")
def test_sums_beside_products(shape: tuple[int, int, int], device: sad.Device) -> None:
    count, rows, columns = shape
    h, g = drawn((count, rows), (count, columns))

    def gradients(h: Any, g: Any) -> Any:
        return sad.transpose(h) @ g, sad.sum(g, axis=0)

    def functions(h: Any, g: Any) -> Any:
        product = 0.5 * (sad.transpose(sad.relu(h)) @ sad.relu(g)) + 1.0
        return product, sad.sum(sad.where(g > 0.25, g, 2.0 * g), axis=0)

    precise, wide = h.astype(np.float64), g.astype(np.float64)
    product, sums = sad.graph(gradients)(h, g)
    near(product, precise.T @ wide, count)
    near(sums, wide.sum(0), count)
    product, sums = sad.graph(functions)(h, g)
    near(product, 0.5 * (np.maximum(precise, 0).T @ np.maximum(wide, 0)) + 1, count)
    near(sums, np.where(g > 0.25, wide, 2 * wide).sum(0), count)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(sad.double, 1e-12), (int, 0.0)], ids=str)
def test_sums_of_other_numbers(dtype: Any, tolerance: float, device: sad.Device) -> None:
    if dtype is sad.double and "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    h, g = (sad.cast(9.0 * x, dtype) for x in drawn((700, 12), (700, 20)))
    product, sums = sad.graph(lambda h, g: (sad.transpose(h) @ g, sad.sum(g, axis=0)))(h, g)
    np.testing.assert_allclose(product.numpy(), h.numpy().T @ g.numpy(), rtol=tolerance)
    np.testing.assert_allclose(sums.numpy(), g.numpy().sum(0), rtol=tolerance)


@pytest.mark.gpu
@pytest.mark.sample(3)
@pytest.mark.parametrize("widths", [(8, 32, 16, 4), (5, 17, 3)])
@pytest.mark.parametrize("kind", ["all sizes", "alone", "grouped", "eight"], indirect=True)
@pytest.mark.usefixtures("kind")
def test_gradients_of_layers_over_many_points(widths: tuple[int, ...], device: sad.Device) -> None:
    count = 3000
    random = np.random.default_rng(5)
    points = random.uniform(-1, 1, (count, widths[0]))
    pairs = [*pairwise(widths)]
    weights = [random.uniform(-1, 1, pair) * pair[0] ** -0.5 for pair in pairs]
    biases = [random.uniform(-0.1, 0.1, pair[1]) for pair in pairs]

    def loss(points: Any, *layers: Any) -> Any:
        hidden = points
        for k in range(0, len(layers) - 2, 2):
            hidden = sad.relu(hidden @ layers[k] + layers[k + 1])
        return sad.sum((hidden @ layers[-2] + layers[-1]) ** 2)

    # The same in float64.
    values = [points]
    for w, bias in zip(weights[:-1], biases[:-1], strict=True):
        values.append(np.maximum(values[-1] @ w + bias, 0))
    bar = 2 * (values[-1] @ weights[-1] + biases[-1])
    exact: list[Any] = []
    for w, value in zip(reversed(weights), reversed(values), strict=True):
        exact = [value.T @ bar, bar.sum(0), *exact]
        bar = (bar @ w.T) * (value > 0)
    layers = [x.astype(np.float32) for pair in zip(weights, biases, strict=True) for x in pair]
    every = tuple(range(1, len(layers) + 1))
    found = sad.graph(sad.grad(loss, argnums=every))(points.astype(np.float32), *layers)
    for x, wanted in zip(found, exact, strict=True):
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-3, atol=1e-4 * scale)
