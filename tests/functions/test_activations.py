"""Activations, traced: as their formulas in float64, stable, and with their derivatives at 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret.arrays import evaluate
from shaderad.rules.arrays import vjp
from tests.tracing import check_derivatives, run, trace

X = np.random.default_rng(0).normal(size=(2, 3, 5))
ROUNDED = 1e-7
"""Constants of the formulas are floats in graphs of floats, also where they run in float64."""
TINY = 1e-300


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[float])(x)


def erfc(x: Any) -> Any:
    return np.vectorize(math.erfc, otypes=[float])(x)


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x: Any, axis: Any = -1) -> Any:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


BY_ELEMENT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (sad.relu, lambda x: np.maximum(x, 0)),
    "sigmoid": (sad.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (sad.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (sad.gelu, lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    "tanh gelu": (lambda x: sad.gelu(x, approximate="tanh"), tanh_gelu),
    "softplus": (sad.softplus, lambda x: np.log1p(np.exp(x))),
}
SLOPE_AT_0 = {"relu": 0.0, "sigmoid": 0.25}


def gradient(function: Callable[..., Any], x: Any, bar: Any, dtype: Any = None) -> Any:
    """The cotangent of `x` by that of the result; arrays that `function` captures have none."""
    variant, form = trace(function, x, dtype=dtype)
    inputs = [x, *map(np.asarray, variant.captured)]
    graph = vjp(variant.graph, [k == 0 for k in range(len(inputs))])
    return evaluate(graph, [*inputs, bar], form.size_by_name)[0][1]


@pytest.mark.parametrize("name", BY_ELEMENT)
def test_activations_are_their_formulas(name: str) -> None:
    ours, formula = BY_ELEMENT[name]
    for x in (X, 3.0 * X, X[:0], X[0, 0, 0]):
        np.testing.assert_allclose(run(ours, x), formula(x), rtol=3 * ROUNDED, atol=ROUNDED)
    check_derivatives(ours, X, order=2)


@pytest.mark.parametrize("name", BY_ELEMENT)
def test_slopes_at_zero(name: str) -> None:
    ours, _ = BY_ELEMENT[name]
    found = gradient(ours, np.array([0.0, -0.0]), np.ones(2))
    np.testing.assert_allclose(found, SLOPE_AT_0.get(name, 0.5), rtol=ROUNDED)
    if name != "relu":
        check_derivatives(ours, np.array([0.0, -0.0]), order=2)


@pytest.mark.parametrize("name", BY_ELEMENT)
@pytest.mark.parametrize("size", [50.0, 1e4, 1e15, 1e30, 1e200])
def test_large_elements_have_the_limits(name: str, size: float) -> None:
    ours, _ = BY_ELEMENT[name]
    x = np.array([-size, size])
    np.testing.assert_allclose(run(ours, x), [0.0, 1.0 if name == "sigmoid" else size], atol=1e-20)
    slope = gradient(ours, x, np.ones(2))
    np.testing.assert_allclose(slope, [0.0, 0.0 if name == "sigmoid" else 1.0], atol=1e-15)


def test_small_results_keep_their_relative_precision() -> None:
    x = np.array([-40.0, -20.0, -5.0])
    np.testing.assert_allclose(run(sad.sigmoid, x), np.exp(x) / (1 + np.exp(x)), rtol=1e-14)
    np.testing.assert_allclose(run(sad.softplus, x), np.log1p(np.exp(x)), rtol=1e-14)
    x = np.array([-6.0, -3.0])
    np.testing.assert_allclose(run(sad.gelu, x), 0.5 * x * erfc(-x / np.sqrt(2)), rtol=1e-5)


def test_infinities_and_nan() -> None:
    x = np.array([-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(run(sad.relu, x), [0.0, np.inf, np.nan])
    np.testing.assert_array_equal(run(sad.sigmoid, x), [0.0, 1.0, np.nan])
    np.testing.assert_array_equal(run(sad.softplus, x), [0.0, np.inf, np.nan])
    np.testing.assert_array_equal(gradient(sad.sigmoid, x[:2], np.ones(2)), [0.0, 0.0])
    np.testing.assert_array_equal(gradient(sad.softplus, x[:2], np.ones(2)), [0.0, 1.0])


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), None])
def test_softmax_and_its_logarithm(axis: Any) -> None:
    for x in (X, 1e4 * X, X - 1e6):
        expected = softmax(x, axis)
        np.testing.assert_allclose(run(lambda x: sad.softmax(x, axis), x), expected, rtol=1e-12)
        found = run(lambda x: sad.log_softmax(x, axis=axis), x)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9, atol=TINY)
    assert run(sad.softmax, X[..., :0]).shape == run(sad.log_softmax, X[..., :0]).shape == (2, 3, 0)
    check_derivatives(lambda x: sad.softmax(x * x, axis), X, order=2)
    check_derivatives(lambda x: sad.log_softmax(x * x, axis), X, order=2)


def test_log_softmax_of_large_elements_is_precise() -> None:
    x = np.array([1e8, 1e8 - 1.0])
    expected = -np.log1p(np.exp([-1.0, 1.0]))
    np.testing.assert_allclose(run(sad.log_softmax, x), expected, rtol=1e-15)


def test_rows_with_minus_infinity_have_no_nan() -> None:
    rows = np.array([[-np.inf, 0.5, 1.0], [2.0, -np.inf, -np.inf]])
    bar = np.array([[3.0, -1.0, 2.0]] * 2)
    p = softmax(rows)
    np.testing.assert_allclose(run(sad.softmax, rows), p, rtol=1e-14)
    expected = p * (bar - (p * bar).sum(-1, keepdims=True))
    np.testing.assert_allclose(gradient(sad.softmax, rows, bar), expected, rtol=1e-12, atol=1e-15)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(run(sad.log_softmax, rows), np.log(p), rtol=1e-14)
    expected = bar - p * bar.sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient(sad.log_softmax, rows, bar), expected, rtol=1e-12)
    nothing = np.full(2, -np.inf)
    assert np.isnan(run(sad.softmax, nothing)).all()
    assert np.isnan(run(sad.softmax, np.array([np.nan, 1.0]))).all()


def test_ints_bools_and_vectors() -> None:
    ints = np.array([3, -1])
    found = run(sad.relu, ints)
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, [3, 0])
    np.testing.assert_allclose(run(sad.sigmoid, ints), 1 / (1 + np.exp(-ints)))
    np.testing.assert_allclose(run(lambda x: sad.silu(x > 0), ints), [1 / (1 + np.exp(-1)), 0])
    vectors = X[0, :, :2]
    found = run(sad.softmax, vectors, dtype=sad.float2)
    np.testing.assert_allclose(found, softmax(vectors, 0), rtol=1e-12)
    np.testing.assert_array_equal(run(sad.relu, vectors, dtype=sad.float2), np.maximum(vectors, 0))


@sad.struct
class Ray:
    x: float
    y: float


RAYS = np.array([(1.0, 2.0)], dtype=[("x", float), ("y", float)])


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: sad.gelu(x, approximate="erf"), "SR0312"),  # pyright: ignore[reportArgumentType]
        (lambda x: sad.relu(x > 0.0), "SR0304"),
        (lambda x: sad.softmax(x, axis=3), "SR0323"),
        (lambda x: sad.softmax(x, axis=(0, 0)), "SR0323"),
        (lambda x: sad.softmax(x[0, 0, 0]), "SR0323"),
        *(
            (lambda x, f=f: f(Ray(x, x)), code)
            for f, code in [
                (sad.relu, "SR0304"),
                (sad.sigmoid, "SR0304"),
                (sad.gelu, "SR0304"),
                (sad.softplus, "SR0304"),
                (sad.softmax, "SR0326"),
                (sad.log_softmax, "SR0326"),
            ]
        ),
    ],
)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


@sad.kernel
def activated(i: sad.Index, x: sad.In[float], y: sad.Out[float], v: sad.Out[sad.float2],
              h: sad.Out[sad.half], n: sad.Out[int]):  # fmt: skip
    y[i] = sad.relu(x[i]) + 2.0 * sad.sigmoid(x[i]) + 3.0 * sad.silu(x[i])
    y[i] += 5.0 * sad.softplus(x[i]) + 7.0 * sad.gelu(x[i])
    y[i] += 11.0 * sad.gelu(x[i], approximate="tanh")
    v[i] = sad.sigmoid(sad.float2(x[i], -x[i])) if x[i] > 0.0 else sad.relu(sad.float2(x[i], 2.0))
    h[i] = sad.silu(sad.half(x[i]))
    n[i] = sad.relu(int(x[i]))


def all_of(x: Any) -> Any:
    found = sad.relu(x) + 2.0 * sad.sigmoid(x) + 3.0 * sad.silu(x) + 5.0 * sad.softplus(x)
    return found + 7.0 * sad.gelu(x) + 11.0 * sad.gelu(x, approximate="tanh")


def test_kernels_share_the_formulas_of_arrays(device: sad.Device) -> None:
    x = np.float32([-80.0, -2.0, -0.5, 0.0, 0.5, 2.0, 80.0])
    results, pullback = sad.vjp(activated, x)
    values, vectors, halves, ints = (found.numpy() for found in results)
    own, own_pullback = sad.vjp(all_of, x)
    np.testing.assert_allclose(values, own.numpy(), rtol=2e-6)
    bar = np.ones_like(x)
    by_x = pullback((bar, None, None, None))[0].numpy()
    np.testing.assert_allclose(by_x, own_pullback(bar)[0].numpy(), rtol=2e-6, atol=1e-6)
    both = np.stack([x, -x], -1).astype(np.float64)
    expected = np.where(
        both[:, :1] > 0, 1 / (1 + np.exp(-both)), np.stack([x.clip(0), 0 * x + 2], -1)
    )
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    np.testing.assert_array_equal(halves, sad.silu(x.astype(np.float16)).numpy())
    np.testing.assert_array_equal(ints, [0, 0, 0, 0, 0, 2, 80])
    shown = activated.debug(x, thread=1)
    np.testing.assert_allclose(shown["y"][1], values[1], rtol=1e-6)
    assert shown["h"][1] == halves[1]


def test_kernels_refuse_what_is_no_activation() -> None:
    @sad.kernel
    def wrong(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.gelu(x[i], approximate="cubic")

    @sad.kernel
    def several(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.relu(x[i], 0.0)

    @sad.kernel
    def over_axes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = sad.softmax(x[i])

    for kernel, code in ((wrong, "SR0312"), (several, "SR0231"), (over_axes, "SR0232")):
        with pytest.raises(sad.LanguageError) as caught:
            kernel([1.0])
        assert caught.value.code == code
