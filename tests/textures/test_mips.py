"""Mip chains against NumPy, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.textures.mips import MadeMips, levels_of

pytestmark = pytest.mark.gpu

VALUE = 1e-5
"""Of values near 1, whose weights are quotients of sizes in 32 bits."""


def box(n: int) -> np.ndarray:
    """The matrix from n texels to half as many: means over intervals of n / m."""
    m = max(n // 2, 1)
    low = np.arange(m)[:, None] * n / m
    k = np.arange(n)
    return np.clip(np.minimum(low + n / m, k + 1) - np.maximum(low, k), 0, None) * m / n


@pytest.mark.parametrize("shape", [(8,), (8, 4), (7, 9), (1, 5), (13, 1), (5, 6, 3)])
def test_levels_are_means_over_boxes(device: sad.Device, shape: tuple[int, ...]) -> None:
    texels = np.random.default_rng(0).uniform(size=(*shape, 2))
    expected = texels.reshape(*[1] * (3 - len(shape)), *shape, 2)
    levels = levels_of(sad.array(texels, dtype=float2), 5, has_layers=False)
    for level in levels:
        assert level.shape == expected.shape[:3]
        assert np.abs(level.numpy() - expected).max() < VALUE
        for axis in range(3):
            expected = np.moveaxis(
                np.tensordot(box(expected.shape[axis]), expected, (1, axis)), 0, axis
            )
    assert levels[-1].shape == (1, 1, 1)


def test_faces_of_cubes_have_levels_of_their_own(device: sad.Device) -> None:
    texels = np.random.default_rng(0).uniform(size=(6, 4, 4))
    levels = levels_of(sad.array(texels), 3, has_layers=True)
    expected = texels.reshape(6, 2, 2, 2, 2).mean((2, 4))
    assert np.abs(levels[1].numpy() - expected).max() < VALUE
    assert levels[-1].shape == (6, 1, 1)


@pytest.mark.parametrize(
    ("shape", "has_layers"), [((7, 10), False), ((5, 6, 3), False), ((6, 4, 4), True)]
)
def test_gradients_by_levels_are_pulled_back_to_the_texels(
    device: sad.Device, shape: tuple[int, ...], has_layers: bool
) -> None:
    rng, count = np.random.default_rng(2), 3
    texels = rng.uniform(size=(*shape, 2))
    by_levels = [
        rng.normal(size=(*level.shape[3 - len(shape) :], 2))
        for level in levels_of(sad.array(texels, dtype=float2), count, has_layers=has_layers)
    ]
    mips = MadeMips(count, has_layers)
    found = mips.pulled([sad.array(bar, dtype=float2) for bar in by_levels])
    assert found.shape == shape
    # The chain is linear: <bars, chain(d)> = <pulled(bars), d> for any d.
    direction = rng.normal(size=texels.shape)
    levels = levels_of(sad.array(direction, dtype=float2), count, has_layers=has_layers)
    pushed = sum(np.vdot(level.numpy(), bar) for level, bar in zip(levels, by_levels, strict=True))
    assert abs(pushed - np.vdot(found.numpy(), direction)) < VALUE * np.abs(by_levels[0]).sum()
