"""Long products of floats, carried in two."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2

pytestmark = pytest.mark.gpu

Floats = np.ndarray[Any, Any]

ROUNDED = 2e-7
"""Products are as exact as a float can be."""


@pytest.mark.parametrize("length", [12, 3000])
def test_what_an_infinite_product_has_lost_is_not_missed(device: sad.Device, length: int) -> None:
    x = np.full(length, -1e10, np.float32)
    whole = -np.inf if length % 2 else np.inf
    assert sad.prod(x).item() == whole
    found = sad.scan(sad.mul, x).numpy()
    np.testing.assert_array_equal(found[3:], np.where(np.arange(3, length) % 2, np.inf, -np.inf))


def test_components_that_stay_finite_keep_theirs(device: sad.Device) -> None:
    x = 1 + 3e-3 * np.random.default_rng(1).standard_normal((3000, 2, 2))
    x[:, 1, 0] = 1e10
    found = sad.scan(sad.mul, sad.array(x, dtype=float2x2)).numpy()
    assert np.isposinf(found[4:, 1, 0]).all()
    exact = np.cumprod(x.astype(np.float32)[:, [0, 0, 1], [0, 1, 1]].astype(np.float64), axis=0)
    np.testing.assert_allclose(found[:, [0, 0, 1], [0, 1, 1]], exact, rtol=ROUNDED)


@sad.graph
def weighted_squares(x: sad.Array[float, "n"], weight: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * sad.scan(sad.mul, x) * weight)


def exact_gradient(x: Floats, weight: Floats) -> Floats:
    terms = 2.0 * np.cumprod(x) ** 2 * weight
    return np.cumsum(terms[::-1])[::-1] / x


@pytest.mark.parametrize("length", [1, 2, 9, 300])
def test_gradients_of_gradients_of_products_are_right(device: sad.Device, length: int) -> None:
    draw = np.random.default_rng(length)
    x = (1 + 0.1 * draw.standard_normal(length)).astype(np.float32)
    weight, along = draw.standard_normal((2, length)).astype(np.float32)

    def slope(x: Any) -> Any:
        return sad.sum(sad.grad(weighted_squares)(x, weight) * along)

    with device:
        found = sad.grad(slope)(x).numpy()
    exact, step = x.astype(np.float64), 1e-6 * np.eye(length)
    rows = [exact_gradient(exact + e, weight) - exact_gradient(exact - e, weight) for e in step]
    wanted = np.array(rows) @ along / 2e-6
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
