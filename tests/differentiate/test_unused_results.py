"""What nobody uses does not reach gradients, though it overflows: carries, results of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

X = np.float32([2.0, 3.0])
SHAPES = {"s": (1,), "m": (1,)}


def tripled(f: Callable[..., Any]) -> list[Any]:
    """Gradients at once, in a graph, and along a Hessian."""
    return [sad.grad(f)(X).numpy(), sad.grad(sad.graph(f))(X).numpy()]


LOOPS = {
    "fori_loop": lambda x: sad.fori_loop(9, lambda k, c: (c[0] * 1.5, c[1] * c[1]), (x, x))[0],
    "while_loop": lambda x: sad.while_loop(
        lambda c: c[2] < 9, lambda c: (c[0] * 1.5, c[1] * c[1], c[2] + 1), (x, x, 0), limit=12
    )[0],
    "loop": lambda x: sad.loop(
        lambda c, r: ((c[0] * r, c[1] * c[1]), c[1] * 1.0), (x, x), np.full(9, 1.5, np.float32)
    )[0][0],
    "nested": lambda x: sad.fori_loop(
        3, lambda k, c: sad.fori_loop(3, lambda k, d: (d[0] * 1.5, d[1] * d[1]), c), (x, x)
    )[0],
    "checkpoint": lambda x: sad.checkpoint(
        lambda x: sad.fori_loop(9, lambda k, c: (c[0] * 1.5, c[1] * c[1]), (x, x))
    )(x)[0],
    "neighbours": lambda x: sad.fori_loop(
        5, lambda k, c: (c[0] * 1.5**1.8, c[1] * sad.roll(c[1], 1) * 1e6), (x, x)
    )[0],
}


@pytest.mark.parametrize("name", LOOPS)
def test_parts_of_a_carry_that_nobody_uses_do_not_reach_gradients(
    name: str, device: sad.Device
) -> None:
    for found in tripled(lambda x: sad.sum(LOOPS[name](x))):
        np.testing.assert_allclose(found, 1.5**9, rtol=1e-5)


def test_a_carry_may_overflow_after_its_last_use(device: sad.Device) -> None:
    """It has a cotangent in all iterations but the last."""

    def f(x: Any) -> Any:
        start = (x, 0.01 * x)
        return sad.sum(sad.fori_loop(2, lambda k, c: (c[0] + c[1], sad.exp(40.0 * c[1])), start)[0])

    expected = 1.01 + 0.4 * np.exp(0.4 * X)
    for found in tripled(f):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_second_derivatives_of_loops_with_unused_parts(device: sad.Device) -> None:
    def f(x: Any) -> Any:
        return sad.sum(sad.fori_loop(9, lambda k, c: (c[0] * x, c[1] * c[1]), (x, x))[0])

    found = sad.hvp(f, (X,), (np.float32([1.0, 0.0]),)).numpy()
    np.testing.assert_allclose(found, [90 * 2.0**8, 0.0], rtol=1e-5)


@sad.kernel
def several(
    i: sad.Index,
    x: sad.In[float],
    w: sad.In[float],
    p: float,
    y: sad.Out[float],
    z: sad.Out[float],
    t: sad.Out[float],
    s: sad.Add[float],
    m: sad.Min[float],
):
    a, b = x[i], x[i] * w[0]
    for _ in range(9):
        a, b = a * 1.5, b * b
    y[i] = a * w[1] * p
    z[i] = b
    t[sad.unique((i + 1) % 2)] = b
    s[0] += b
    m[0] = sad.min(m[0], b)


def test_results_of_a_kernel_that_nobody_uses_do_not_reach_gradients(device: sad.Device) -> None:
    w, p = np.float32([2.0, 3.0]), np.float32(2.0)

    def f(x: Any, w: Any, p: Any) -> Any:
        return sad.sum(several(x, w, p, dim=2, shapes=SHAPES)[0])

    slope = 1.5**9
    expected = [np.full(2, 6.0 * slope), [0.0, 10.0 * slope], 15.0 * slope]
    for how in (f, sad.graph(f)):
        for found, right in zip(sad.grad(how, argnums=(0, 1, 2))(X, w, p), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), right, rtol=1e-5)
    _, pullback = sad.vjp(several, X, w, p, dim=2, shapes=SHAPES)
    one = np.ones(2, np.float32)
    for found, right in zip(pullback((one, None, None, None, None)), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-5)
    for found in pullback((None,) * 5):
        assert not found.numpy().any()
    moved = sad.hvp(f, (X, w, p), (one, 0.0 * w, 0.0 * p))
    np.testing.assert_allclose(moved[1].numpy(), [0.0, 4.0 * slope], rtol=1e-5)
    np.testing.assert_array_equal(moved[0].numpy(), 0.0)
    device.synchronize()
