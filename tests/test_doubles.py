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


EIGHTH_AND_MORE = 0.125 + 2.0**-40


@sad.function
def doubled(x: double) -> double:
    return x + x


@sad.kernel
def literals(i: sad.Index, x: sad.In[double], y: sad.Out[double]):
    if i == 0:
        y[i] = 0.1
    elif i == 1:
        y[i] = 0.0 * x[i] + EIGHTH_AND_MORE
    elif i == 2:
        y[i] = doubled(0.1)
    elif i == 3:
        y[i] = (0.1 if x[i] > 0.0 else 0.2) + 0.0 * x[i]
    elif i == 4:
        y[i] = 0.1 if x[i] > 0.0 else (0.2 if x[i] > -1.0 else 0.3)
    elif i == 5:
        total = sad.double(0.1)
        total = 0.3 if x[i] > 0.0 else 0.1
        y[i] = total - 0.0 * x[i]
    else:
        y[i] = sad.max(1.0 / 3.0, -x[i])


def test_a_literal_beside_a_double_has_all_64_bits_of_the_python_float() -> None:
    expected = [0.1, EIGHTH_AND_MORE, 0.2, 0.1, 0.1, 0.3, 1.0 / 3.0]
    assert literals(given(), dim=7).numpy().tolist() == expected
    on_arrays = [given() * 0.0 + 0.1, sad.fori_loop(1, lambda k, s: s + 0.0 * given()[0], 0.1)]
    assert {x for y in on_arrays for x in np.ravel(y.numpy()).tolist()} == {0.1}


@sad.kernel
def starts_as_float(i: sad.Index, x: sad.In[double], y: sad.Out[double]):
    total = 0.0
    total += x[i]
    y[i] = total


@sad.kernel
def becomes_double(i: sad.Index, x: sad.In[double], y: sad.Out[double]):
    total = 0.0
    total = x[i]
    y[i] = total


@sad.kernel
def smaller(i: sad.Index, x: sad.In[double], w: float, y: sad.Out[double]):
    y[i] = sad.min(x[i], w)


@sad.kernel
def sums(i: sad.Index, x: sad.In[double], t: sad.Add[double]):
    t[0] += x[i]


@sad.kernel
def largest(i: sad.Index, x: sad.In[double], t: sad.Max[double]):
    t[0] = sad.max(t[0], x[i])


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda: starts_as_float(X, dim=7), "SR0304", "`sad.double(1e-5)`"),
        (lambda: smaller(X, 0.5, dim=7), "SR0312", "`sad.double(...)` of a value"),
        (lambda: becomes_double(X, dim=7), "SR0317", "`total = sad.double(0.0)`"),
        (lambda: given() * sad.array(X), "SR0304", "`sad.cast(x, sad.double)`"),
        (lambda: sums(X, dim=7, shapes={"t": 1}), "SR0282", "`sad.sum(y)` keeps 64 bits"),
        (lambda: largest(X, dim=7, shapes={"t": 1}), "SR0282", "`sad.max(y)` keeps 64 bits"),
    ],
)
def test_what_remains_refused_says_how_to_keep_64_bits(
    call: Callable[[], Any], code: str, says: str
) -> None:
    with pytest.raises(sad.LanguageError, match=code) as caught:
        call()
    assert says in caught.value.help


def test_what_is_advised_for_sums_of_doubles_keeps_64_bits() -> None:
    x = np.array([1.0, 2.0**-40, 2.0**-41])
    assert sad.sum(given(x)).item() == x.sum()
    assert sad.max(given(x + 1.0)).item() == 2.0
    assert sad.min(given(1.0 - x[1:])).item() == 1.0 - 2.0**-40


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
    "number carried by a loop": (
        lambda x: sad.fori_loop(3, lambda k, s: s + x[k], 0.1),
        lambda x: ((0.1 + x[0]) + x[1]) + x[2],
    ),
    "number that a loop replaces": (
        lambda x: sad.loop(lambda s, e: (e * 0.1, s), 0.1, x)[1],
        lambda x: np.concatenate([[0.1], x[:-1] * 0.1]),
    ),
    "number carried while a condition holds": (
        lambda x: sad.while_loop(lambda s: s < 1.0, lambda s: s + x[0], 0.1, 32),
        lambda x: 0.1 + x[0] * np.ceil((1 - 0.1) / x[0]),
    ),
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
