"""Numbers that a kernel gets by value: few, many, and in turns."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float4, float4x4

X = np.linspace(-1.0, 1.0, 70 * 4, dtype=np.float32).reshape(70, 4)


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float4], factor: float, y: sad.Out[float4]):
    y[i] = factor * x[i]


@sad.kernel
def multiplied(
    i: sad.Index,
    x: sad.In[float4],
    a: float4x4,
    b: float4x4,
    c: float4x4,
    d: float4x4,
    e: float4x4,
    y: sad.Out[float4],
):
    # More bytes of numbers than devices take with a dispatch: they lie in a constant buffer.
    y[i] = (a @ x[i] + b @ x[i]) + (c @ x[i] + d @ x[i]) + e @ x[i]


def test_few_and_many_numbers_take_turns(device: sad.Device) -> None:
    rng = np.random.default_rng(0)
    with device:
        x = sad.array(X, dtype=float4)
        found, expected = [], []
        for k in range(100):  # more than one submission
            matrices = rng.uniform(-1.0, 1.0, (5, 4, 4)).astype(np.float32)
            found += [scaled(x, float(k)), multiplied(x, *map(float4x4, matrices))]
            expected += [np.float32(k) * X, X @ matrices.sum(0).T]
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), wanted, atol=1e-4)


def test_gradients_by_few_and_many_numbers(device: sad.Device) -> None:
    with device:
        ones = np.ones((70, 4), np.float32)
        matrices = [float4x4(np.eye(4) * k) for k in range(5)]
        _, pull_scaled = sad.vjp(scaled, X, 2.0)
        _, pull_multiplied = sad.vjp(multiplied, X, *matrices)
        x_bar, factor_bar = pull_scaled(ones)
        np.testing.assert_array_equal(x_bar.numpy(), 2.0 * ones)
        np.testing.assert_allclose(factor_bar.numpy(), X.sum(), atol=1e-4)
        x_bar, *bars = pull_multiplied(ones)
        np.testing.assert_array_equal(x_bar.numpy(), 10.0 * ones)
        for bar in bars:
            np.testing.assert_allclose(bar.numpy(), np.tile(X.sum(0), (4, 1)), atol=1e-4)
