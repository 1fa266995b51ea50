"""The complementary error function: its tail, both derivatives, and what is not finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu
X = np.linspace(-6, 9.1, 301).astype(np.float32)
# In units of 2^-23, a dozen: from the polynomial, two exponentials and a quotient.
TAIL: dict[str, Any] = {"rtol": 1.5e-6}
# exp(-x * x) where x * x is up to 83 and rounded, and the target's exp of that.
SLOPE: dict[str, Any] = {"rtol": 5e-5}


@sad.kernel
def of_numbers(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = math.erfc(x[i])


@sad.kernel
def of_vectors(i: sad.Index, x: sad.In[sad.float3], y: sad.Out[sad.float3]):
    y[i] = sad.erfc(x[i])


@pytest.fixture(autouse=True)
def _on_device(device: sad.Device) -> None:
    """Each runtime in turn."""


def exact(x: np.ndarray) -> np.ndarray:
    return np.array([math.erfc(one) for one in x.ravel().tolist()]).reshape(x.shape)


def slope(x: np.ndarray) -> np.ndarray:
    return -2 / math.sqrt(math.pi) * np.exp(-(x.astype(np.float64) ** 2))


def test_the_tail_keeps_its_relative_precision() -> None:
    assert exact(X)[-1] < 1e-37
    np.testing.assert_allclose(of_numbers(X, dim=len(X)).numpy(), exact(X), **TAIL)
    v = X[:300].reshape(100, 3)
    np.testing.assert_allclose(of_vectors(v, dim=100).numpy(), exact(v), **TAIL)
    assert sad.erfc(X[-1]) == exact(X)[-1]


def test_half_is_rounded_once() -> None:
    x = X.astype(np.float16)
    found = sad.erfc(sad.array(x)).numpy()
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, exact(x), rtol=2**-10, atol=2**-14)


def test_what_is_not_finite() -> None:
    found = sad.erfc(sad.array(np.float32([math.nan, math.inf, -math.inf, 0, 20]))).numpy()
    np.testing.assert_array_equal(found, np.float32([math.nan, 0, 2, 1, 0]))


def test_derivatives_of_both_orders_are_those_of_the_formula() -> None:
    x, ones = sad.array(X), sad.array(np.ones_like(X))
    _, tangent = sad.jvp(sad.erfc, (x,), (ones,))
    np.testing.assert_allclose(tangent.numpy(), slope(X), **SLOPE)
    _, pullback = sad.vjp(sad.erfc, x)
    (bar,) = pullback(ones)
    np.testing.assert_allclose(bar.numpy(), slope(X), **SLOPE)
    second = sad.hvp(lambda x: sad.sum(sad.erfc(x)), (x,), (ones,))
    np.testing.assert_allclose(second.numpy(), -2 * X * slope(X), **SLOPE)


def test_gradients_pass_the_check() -> None:
    sad.gradcheck(of_numbers, np.float32([-1.5, 0.0, 0.4, 0.6, 2.0]), dim=5)
