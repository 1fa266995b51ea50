"""The indices of threads that take many, over several axes."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad


@sad.kernel
def positions(i: sad.Index, j: sad.Index, k: sad.Index, y: sad.Out[sad.int3, 3]):
    y[i, j, k] = sad.int3(i, j, k)


@sad.kernel
def weighted(
    i: sad.Index,
    j: sad.Index,
    k: sad.Index,
    x: sad.In[float, 3],
    w: sad.In[float],
    n: sad.Add[float],
):
    n[0] += x[i, j, k] * w[j] * float(i + 2 * k)


DIMS = [(17, 31, 43), (1, 20_001, 1), (3, 1, 9_999), (9_999, 3, 1), (2, 5_003, 3), (1, 2, 20_000)]
"""More elements than threads, on axes that are longer and shorter than what a thread leaves out."""


@pytest.mark.gpu
@pytest.mark.parametrize("dim", DIMS)
def test_each_thread_has_its_indices(dim: tuple[int, int, int], device: sad.Device) -> None:
    found = positions(dim=dim).numpy()
    np.testing.assert_array_equal(found, np.stack(np.indices(dim), -1))


@pytest.mark.gpu
@pytest.mark.parametrize("dim", DIMS)
def test_derivatives_have_the_same(dim: tuple[int, int, int], device: sad.Device) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.uniform(size=dim).astype(np.float32), rng.uniform(size=dim[1]).astype(np.float32)
    i, _, k = np.indices(dim)
    _, pullback = sad.vjp(weighted, x, w, dim=dim, shapes={"n": (1,)})
    x_bar, w_bar = pullback(np.ones(1, np.float32))
    scale = (i + 2 * k).astype(np.float32)
    np.testing.assert_allclose(x_bar.numpy(), scale * w[:, None], rtol=1e-6)
    np.testing.assert_allclose(w_bar.numpy(), (scale * x).sum((0, 2)), rtol=RTOL)


RTOL = 1e-4
"""float32, up to 20,000 terms."""
