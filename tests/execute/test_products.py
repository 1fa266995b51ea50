"""Products of many numbers near 1, whose roundings all go to one side."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.runner import evaluate
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array

N = sizes.symbol("n")
COUNT = 200_003
CLOSE = 2e-5
"""Without what the products lose, the error is above 5e-4."""


def scan_product() -> Graph:
    """Futhark's example."""
    x = array((N,))
    return Graph((x,), (b.reduce(ops.ADD, b.applied(ops.MUL, b.scan(ops.MUL, x), x)),))


def near_one() -> np.ndarray:
    draw = np.random.default_rng(0)
    return (1 + 1e-4 * draw.standard_normal(COUNT)).astype(np.float32)


@pytest.mark.gpu
def test_a_long_product_is_exact_to_a_float(device: sad.Device) -> None:
    x = near_one()
    factors = array((N,))
    graph = Graph((factors,), (b.reduce(ops.MUL, factors),))
    (found,) = evaluate(graph, [sad.array(x, device=device)], {"n": COUNT}, device)
    np.testing.assert_allclose(found.item(), np.prod(x.astype(np.float64)), rtol=CLOSE)


@pytest.mark.gpu
def test_derivatives_of_long_products_are_exact_to_a_float(device: sad.Device) -> None:
    x = near_one()
    exact = x.astype(np.float64)
    products = np.cumprod(exact)
    gradient = products + np.cumsum((products * exact)[::-1])[::-1] / exact
    given = sad.array(x, device=device)
    one = sad.array(1.0, dtype=float, device=device)
    _, found = evaluate(vjp(scan_product(), [True]), [given, one], {"n": COUNT}, device)
    scale = np.abs(gradient).max()
    assert np.abs(found.numpy() - gradient).max() < CLOSE * scale
    ones = sad.array(np.ones(COUNT, np.float32), device=device)
    _, moved = evaluate(jvp(scan_product(), [True]), [given, ones], {"n": COUNT}, device)
    np.testing.assert_allclose(moved.item(), gradient.sum(), rtol=1e-4)
