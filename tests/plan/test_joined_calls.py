"""A pullback stores the results of its call, where its cotangents do not need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

COUNT = 300


@sad.kernel
def looked_up(i: sad.Index, w: sad.In[float], k: sad.In[int], y: sad.Out[float], z: sad.Out[float]):
    y[i] = w[k[i]] * w[k[i]]
    z[i] = w[i] + 1.0


@sad.kernel
def elsewhere(i: sad.Index, w: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    y[sad.unique(k[i])] = w[i] * w[i]


def call(w: Any, k: Any) -> Any:
    return looked_up(w, k, dim=COUNT)


def apart(w: Any, k: Any, y_bar: Any) -> Any:
    """Cotangents that are given."""
    (y, z), pullback = sad.vjp(lambda w: call(w, k), w)
    (w_bar,) = pullback((y_bar, 2.0 * y_bar))
    return sad.sin(y) + z, w_bar


def with_cotangents_of_results(w: Any, k: Any, y_bar: Any) -> Any:
    (y, z), pullback = sad.vjp(lambda w: call(w, k), w)
    (w_bar,) = pullback((y * y_bar, 2.0 * y_bar))
    return sad.sin(y) + z, w_bar


def crossed(w: Any, k: Any, y_bar: Any) -> Any:
    """Two calls, of which either has the other's results as cotangents."""
    (y, z), pullback = sad.vjp(lambda w: call(w, k), w)
    (y_2, z_2), pullback_2 = sad.vjp(lambda w: call(w + 1.0, k), w)
    (w_bar,) = pullback((y_2 * y_bar, z_2))
    (w_bar_2,) = pullback_2((y * y_bar, z))
    return w_bar, w_bar_2


def not_own(w: Any, k: Any, y_bar: Any) -> Any:
    """Results that threads do not hold."""
    y, pullback = sad.vjp(lambda w: elsewhere(w, k, shapes={"y": (COUNT,)}, dim=COUNT), w)
    (w_bar,) = pullback(y_bar)
    return y, w_bar


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "calls"),
    [(apart, 1), (with_cotangents_of_results, 2), (crossed, 3), (not_own, 2)],
)
def test_results_and_gradients_are_those_of_two_dispatches(
    function: Callable[..., Any], calls: int, device: sad.Device
) -> None:
    rng = np.random.default_rng(0)
    w, y_bar = (sad.array(rng.uniform(size=COUNT).astype(np.float32)) for _ in range(2))
    k = sad.array(rng.permutation(COUNT).astype(np.int32))
    graph = sad.graph(function)
    lines = graph.explain(w, k, y_bar).splitlines()
    assert sum(" kernel " in line for line in lines) == calls
    for found, expected in zip(graph(w, k, y_bar), function(w, k, y_bar), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
