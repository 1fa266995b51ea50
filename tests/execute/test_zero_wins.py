"""Singular points in what runs on devices: a zero cotangent stays zero, a choice leaves no NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

X = np.float32([0, 1, -1])
NAN, INF = np.nan, np.inf


@sad.kernel
def divided(i: sad.Index, x: sad.In[float], a: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]
    y[i] /= a[i]


@sad.kernel
def divided_by_uniform(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    y[i] = x[i] / a


@sad.function
def quotient(x: float, a: float) -> float:
    return x / a


@sad.kernel
def chosen(i: sad.Index, x: sad.In[float], a: sad.In[float], y: sad.Out[float]):
    y[i] = sad.select(a[i] != 0.0, x[i] / a[i], 0.0)


def by_kernel(x: Any, a: Any) -> Any:
    return divided(x, a, dim=3)


def by_map(x: Any, a: Any) -> Any:
    return sad.map(quotient, x, a)


def by_arrays(x: Any, a: Any) -> Any:
    return x / a


WAYS = [by_kernel, by_map, by_arrays, sad.graph(by_arrays)]


@pytest.mark.parametrize("divide", WAYS, ids=["kernel", "map", "arrays", "graph"])
def test_a_zero_divisor_has_the_derivatives_of_the_mathematics(
    divide: Callable[..., Any], device: sad.Device
) -> None:
    x, zeros, ones = sad.array(X), sad.array(np.zeros(3, np.float32)), np.ones(3, np.float32)
    y, pullback = sad.vjp(divide, x, zeros)
    np.testing.assert_array_equal(y.numpy(), [NAN, INF, -INF])
    by_x, by_a = pullback(ones)
    np.testing.assert_array_equal(by_x.numpy(), [INF] * 3)
    np.testing.assert_array_equal(by_a.numpy(), [NAN, -INF, INF])
    for by in pullback(0 * ones):
        np.testing.assert_array_equal(by.numpy(), [0] * 3)
    moves = [(1, 0, [INF] * 3), (0, 1, [NAN, -INF, INF]), (0, 0, [0] * 3)]
    for x_dot, a_dot, wanted in moves:
        y_dot = sad.jvp(divide, (x, zeros), (x_dot * ones, a_dot * ones))[1]
        np.testing.assert_array_equal(y_dot.numpy(), wanted)


def test_a_zero_uniform_divides_as_a_zero_element_does(device: sad.Device) -> None:
    _, pullback = sad.vjp(divided_by_uniform, X[1:], 0.0, dim=2)
    by_x, by_a = pullback(np.float32([1, 0]))
    np.testing.assert_array_equal(by_x.numpy(), [INF, 0])
    assert float(by_a) == -INF


def test_a_quotient_that_is_not_chosen_adds_nothing(device: sad.Device) -> None:
    _, pullback = sad.vjp(chosen, X, np.float32([0, 2, 0]), dim=3)
    by_x, by_a = pullback(np.ones(3, np.float32))
    np.testing.assert_array_equal(by_x.numpy(), [0, 0.5, 0])
    np.testing.assert_array_equal(by_a.numpy(), [0, -0.25, 0])


def entropy(x: Any) -> Any:
    return sad.where(x > 0.0, x * sad.log(x), 0.0)


def bounded(x: Any) -> Any:
    return sad.where(x < 2.0, sad.exp(99.0 * x), 0.0)


def rows(x: Any) -> Any:
    v = sad.float2(x, 1.0)
    return sad.where(x > 0.0, sad.dot(v, sad.log(v)), 0.0)


def entropy_by_element(x: Any) -> Any:
    return sad.map(entropy, x)


@pytest.mark.parametrize(
    ("function", "points", "wanted"),
    [
        (sad.graph(entropy), [0, 1, -1], [0, 1, 0]),
        (entropy_by_element, [0, 1, -1], [0, 1, 0]),
        (sad.graph(rows), [0, 1, -1], [0, 1, 0]),
        (sad.graph(bounded), [0, 4, 5], [99, 0, 0]),
    ],
    ids=["entropy", "map", "rows", "bounded"],
)
def test_what_where_does_not_use_adds_nothing(
    function: Callable[..., Any], points: list[float], wanted: list[float], device: sad.Device
) -> None:
    x, ones = np.float32(points), np.ones(3, np.float32)
    _, pullback = sad.vjp(function, x)
    np.testing.assert_allclose(pullback(ones)[0].numpy(), wanted, rtol=1e-4)
    _, y_dot = sad.jvp(function, (x,), (ones,))
    np.testing.assert_allclose(y_dot.numpy(), wanted, rtol=1e-4)


def test_a_zero_cotangent_of_what_where_may_not_use_still_moves(device: sad.Device) -> None:
    x, u = np.float32([1, 2, 0]), np.ones(3, np.float32)

    @sad.graph
    def loss(x: sad.Array[float]) -> sad.Array[float]:
        # The cotangent of the product is 0 at x = 1, and its derivative by x is not.
        return sad.sum(sad.where(x > 0.0, (x * x - 1.0) * (x * x - 1.0), 0.0))

    moved = sad.hvp(loss, (x,), (u,))
    np.testing.assert_allclose(moved.numpy(), [8, 44, 0], rtol=1e-5)
