"""First and second derivatives where a function is infinite, or has no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

INF, NAN = np.inf, np.nan
POINTS = [
    (sad.log, [-2.0, -0.0, 0.0, 0.5], [-0.5, INF, INF, 2.0], [-0.25, -INF, -INF, -4.0]),
    (sad.log1p, [-3.0, -1.0, 1.0], [-0.5, INF, 0.5], [-0.25, -INF, -0.25]),
    (sad.sqrt, [-1.0, 0.0, 4.0], [NAN, INF, 0.25], [NAN, -INF, -0.03125]),
    (sad.rsqrt, [-1.0, 0.0, 4.0], [NAN, -INF, -0.0625], [NAN, INF, 0.0234375]),
    (sad.atanh, [-1.0, 0.0, 1.0], [INF, 1.0, INF], [-INF, 0.0, INF]),
]
"""A function, and its derivatives of order 1 and 2 at points."""


@pytest.mark.gpu
@pytest.mark.parametrize(("function", "x", "first", "second"), POINTS)
def test_derivatives_at_singular_points(
    function: Any, x: list[float], first: list[float], second: list[float], device: sad.Device
) -> None:
    @sad.kernel
    def kernel(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = function(x[i])

    x_, ones = np.float32(x), np.ones(len(x), np.float32)
    losses = (lambda x: sad.sum(function(x)), lambda x: sad.sum(kernel(x, dim=len(x_))))
    for loss in losses:
        for transform in (lambda f: f, sad.graph):
            by_x = transform(sad.grad(loss))(x_)
            np.testing.assert_allclose(by_x.numpy(), first, rtol=1e-5)
            found = transform(lambda x, loss=loss: sad.hvp(loss, (x,), (ones,)))(x_)
            np.testing.assert_allclose(found.numpy(), second, rtol=1e-5)
