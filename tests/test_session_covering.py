"""Reads at the thread's own index need no guard where the array covers the launch."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel


@sad.function
def neighbour(x: sad.In[float, 2], i: int, j: int) -> float:
    return x[i, j]


@sad.kernel
def blend(i: sad.Index, j: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):
    total = x[i, j] * x[i, j]
    for k in sad.range(3, limit=3):
        total += x[i, j] * neighbour(x, i - 1, j + k)
    y[i, j] = total


def expected(x: np.ndarray, dim: tuple[int, int]) -> np.ndarray:
    padded = np.zeros((dim[0] + 1, x.shape[1] + dim[1] + 3))
    padded[1 : 1 + dim[0], : x.shape[1]] = x[: dim[0]]
    near = [padded[: dim[0], k : k + dim[1]] for k in range(3)]
    own = x[: dim[0], : dim[1]]
    return own * own + own * sum(near)


def test_only_the_own_index_of_the_kernel_itself_goes_without_a_guard() -> None:
    variant = Variant(
        wanted=frozenset({"x"}), launch_shaped=frozenset({"y"}), covering=frozenset({"x"})
    )
    for mode in (Mode.PRIMAL, Mode.BACKWARD):
        (lowered,) = lower_kernel(blend.specialise({}), mode, variant)
        assert "(uint(i) * parameters.x_length_1 + uint(j))" in lowered.program.slang
        assert lowered.program.slang.count("x_in.at(") == 1
        assert [site.span.line for site in lowered.sites] == [neighbour.def_span.line + 1]


@pytest.mark.parametrize("shape", [(4, 6), (5, 9)])
def test_arrays_as_large_as_the_launch_or_larger_are_read_right(
    device: sad.Device, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    y, pullback = sad.vjp(blend, x, dim=(4, 6), bounds="ignore")
    np.testing.assert_allclose(y.numpy(), expected(x, (4, 6)), rtol=1e-5)
    bar = np.ones((4, 6), np.float32)
    (x_bar,) = pullback(bar)
    step = 1e-2
    direction = np.random.default_rng(1).random(shape)
    ahead, behind = (expected(x + s * direction, (4, 6)).sum() for s in (step, -step))
    found = (x_bar.numpy() * direction).sum()
    np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 6), (4, 5)])
def test_arrays_smaller_than_the_launch_are_still_guarded(
    device: sad.Device, shape: tuple[int, int]
) -> None:
    y = blend(np.ones(shape, np.float32), dim=(4, 6))
    with pytest.raises(sad.BoundsError, match="`x`"):
        y.numpy()
    device.synchronize()
