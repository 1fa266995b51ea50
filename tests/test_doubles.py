"""Doubles from Python to a device and back: nothing on the way is rounded to 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double, double3

pytestmark = pytest.mark.gpu
TENTH = 0.1
X = np.random.default_rng(3).uniform(0.2, 0.9, 7)
# Some roundings of 64 bits.
TIGHT: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-15}


@pytest.fixture(autouse=True)
def _on_device(device: sad.Device) -> Any:
    if "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    with device:
        yield


def given(x: Any = X) -> Any:
    return sad.array(x, dtype=double)


@sad.kernel
def mixture(i: sad.Index, x: sad.In[double], y: sad.Out[double]):
    y[i] = sad.sin(x[i] * TENTH) ** 1.3 + sad.erf(x[i]) * sad.exp(-x[i]) + sad.radians(x[i])


@sad.kernel
def angles(i: sad.Index, v: sad.In[double3], y: sad.Out[double3]):
    y[i] = sad.atan2(sad.log(v[i]), sad.tanh(v[i]))


@sad.kernel
def limited(i: sad.Index, k: double, x: sad.In[double], y: sad.Out[double]):
    y[i] = sad.clamp(x[i], 0.3, 0.7) * k + (TENTH if x[i] > 0.5 else sad.max(x[i], 0.3))


@sad.kernel
def whole(i: sad.Index, x: sad.In[double], y: sad.Out[int]):
    y[i] = round(x[i])


def of_mixture(x: np.ndarray) -> np.ndarray:
    from math import erf

    return (
        np.sin(x * 0.1) ** 1.3 + np.vectorize(erf, otypes=[float])(x) * np.exp(-x) + np.radians(x)
    )


def slope_of_mixture(x: np.ndarray) -> np.ndarray:
    from math import erf

    power = 0.13 * np.sin(x * 0.1) ** 0.3 * np.cos(x * 0.1)
    bell = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    return power + (bell - np.vectorize(erf, otypes=[float])(x)) * np.exp(-x) + np.pi / 180


@pytest.mark.parametrize("count", [0, 1, 7])
def test_functions_of_doubles_have_values_and_both_derivatives(count: int) -> None:
    x = X[:count]
    run = lambda x: mixture(x, dim=count)  # noqa: E731
    np.testing.assert_allclose(run(given(x)).numpy(), of_mixture(x), **TIGHT)
    value, tangent = sad.jvp(run, (given(x),), (given(np.full(count, TENTH)),))
    np.testing.assert_allclose(tangent.numpy(), TENTH * slope_of_mixture(x), **TIGHT)
    _, pullback = sad.vjp(run, given(x))
    (bar,) = pullback(given(np.full(value.shape, TENTH)))
    np.testing.assert_allclose(bar.numpy(), TENTH * slope_of_mixture(x), **TIGHT)


def test_functions_act_on_vectors_of_doubles_by_component() -> None:
    v = np.random.default_rng(5).uniform(0.1, 3, (4, 3))
    found = angles(sad.array(v, dtype=double3), dim=4).numpy()
    np.testing.assert_allclose(found, np.arctan2(np.log(v), np.tanh(v)), **TIGHT)


def test_second_derivatives_of_doubles_are_doubles() -> None:
    def loss(x: Any) -> Any:
        return sad.sum(sad.sin(x) * sad.exp(x))

    product = sad.hvp(loss, (given(),), (given(np.full(7, TENTH)),))
    found = product[0] if isinstance(product, tuple) else product
    np.testing.assert_allclose(found.numpy(), 2 * np.cos(X) * np.exp(X) * TENTH, **TIGHT)


def test_constants_and_uniforms_beside_doubles_keep_their_bits() -> None:
    expected = np.clip(X, 0.3, 0.7) * TENTH + np.where(X > 0.5, TENTH, np.maximum(X, 0.3))
    np.testing.assert_allclose(limited(TENTH, given(), dim=7).numpy(), expected, **TIGHT)


ON_ARRAYS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "arithmetic": (lambda x: 0.1 + x * 0.3, lambda x: 0.1 + x * 0.3),
    "powers": (lambda x: 2.7**x + x**0.3, lambda x: 2.7**x + x**0.3),
    "where": (lambda x: sad.where(x > 0.5, 0.1, x), lambda x: np.where(x > 0.5, 0.1, x)),
    "clamp": (lambda x: sad.clamp(x, 0.3, 0.7), lambda x: np.clip(x, 0.3, 0.7)),
    "reduce": (lambda x: sad.reduce(sad.add, x, init=0.1), lambda x: x.sum() + 0.1),
    "scan": (lambda x: sad.scan(sad.add, x, init=0.1), lambda x: np.cumsum(x) + 0.1),
    "loop": (lambda x: sad.fori_loop(3, lambda k, s: s * 0.1, x), lambda x: x * 0.001),
}


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_numbers_that_meet_arrays_of_doubles_keep_their_bits(name: str) -> None:
    ours, numpys = ON_ARRAYS[name]
    np.testing.assert_allclose(ours(given()).numpy(), numpys(X), **TIGHT)
    np.testing.assert_allclose(sad.graph(ours)(given()).numpy(), numpys(X), **TIGHT)


def test_doubles_are_rounded_to_ints_beyond_the_range_of_float_mantissas() -> None:
    x = np.array([16777217.0, -16777218.6, 2147483646.5, 0.5, 1.5])
    found = whole(given(x), dim=5).numpy()
    np.testing.assert_array_equal(found, np.round(x).astype(np.int64))


def test_jacobians_of_doubles_are_doubles() -> None:
    for f in (lambda x: x * 0.1, lambda x: sad.sum(x * x * 0.1)):
        found = np.asarray(sad.jacobian(f)(given()))
        expected = np.eye(7) * 0.1 if found.ndim == 2 else X * 0.2
        np.testing.assert_allclose(found, expected, **TIGHT)


def test_sums_and_scans_of_many_doubles_lose_nothing() -> None:
    x = np.random.default_rng(1).uniform(0.1, 1, 100_001)
    exact = np.cumsum(x.astype(np.longdouble)).astype(np.float64)
    np.testing.assert_allclose(sad.scan(sad.add, given(x)).numpy(), exact, rtol=1e-14)
    np.testing.assert_allclose(float(sad.sum(given(x))), exact[-1], rtol=1e-14)
