"""Long products of floats, carried in two."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2

pytestmark = pytest.mark.gpu

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
