"""A zero cotangent suppresses NaN: lookups at NaN and infinity behind a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, render

pytestmark = pytest.mark.gpu

PLACES = {1: float, 2: float2, 3: float3}
USED = 3
"""Lookups that the mask keeps."""


def coordinates(axes: int) -> np.ndarray:
    """`USED` finite places, and some of which one coordinate or all are not finite."""
    rng = np.random.default_rng(axes)
    good = rng.uniform(-0.7, 1.7, (USED, axes)).astype(np.float32)
    bad = np.repeat(good[:1], 3 * axes, 0)
    for row, value in enumerate((np.nan, np.inf, -np.inf) * axes):
        bad[row, row // 3] = value
    return np.concatenate([good, bad, np.full((1, axes), np.nan, np.float32)])


def check(f: Callable[..., Any], texels: sad.Array, given: Sequence[np.ndarray], axes: int) -> None:
    """The gradients are those of the lookups that the mask keeps, and the others have values."""
    mask = np.arange(len(given[0])) < USED

    def total(texels: Any, *at: Any) -> Any:
        return sad.sum(sad.where(mask, f(texels, *at), 0.0))

    def as_arrays(count: int) -> list[sad.Array]:
        return [sad.array(x[:count], dtype=PLACES[axes] if x.ndim > 1 else float) for x in given]

    positions = tuple(range(1 + len(given)))
    found = sad.grad(total, argnums=positions)(texels, *as_arrays(len(mask)))
    kept = sad.grad(lambda *x: sad.sum(f(*x)), argnums=positions)(texels, *as_arrays(USED))
    np.testing.assert_allclose(found[0].numpy(), kept[0].numpy(), rtol=1e-5, atol=1e-6)
    for bar, expected in zip(found[1:], kept[1:], strict=True):
        np.testing.assert_allclose(bar.numpy()[:USED], expected.numpy(), rtol=1e-5, atol=1e-5)
        assert not bar.numpy()[USED:].any()
    assert np.isnan(f(texels, *as_arrays(len(mask))).numpy()[-1])


@pytest.mark.parametrize(
    ("axes", "filter_", "wrap"),
    [(1, "linear", "mirror"), (2, "trilinear", "repeat"), (3, "linear", "repeat")],
)
def test_masked_lookups_put_no_nan_into_gradients(
    axes: int, filter_: str, wrap: str, device: sad.Device
) -> None:
    texels = sad.array(np.random.default_rng(0).uniform(size=(4,) * axes).astype(np.float32))
    at = coordinates(axes)
    steps = np.where(np.isfinite(at), np.float32(0.3), at)
    levels = np.where(np.arange(len(at)) < USED, np.float32(0.4), np.float32(np.nan))
    at, steps = (x[:, 0] if axes == 1 else x for x in (at, steps))
    how = {"filter": filter_, "wrap": wrap}
    if filter_ == "trilinear":
        check(lambda t, uv, d: render.texture(t, uv, footprint=(d, d), **how), texels,
              [at, steps], axes)  # fmt: skip
        check(lambda t, uv, k: render.texture(t, uv, level=k, **how), texels, [at, levels], axes)
    else:
        check(lambda t, uv: render.texture(t, uv, **how), texels, [at], axes)


def test_masked_lookups_of_cubes_put_no_nan_into_gradients(device: sad.Device) -> None:
    texels = sad.array(np.random.default_rng(0).uniform(size=(6, 4, 4)).astype(np.float32))
    at = coordinates(3)
    steps = np.where(np.isfinite(at), np.float32(0.1), at)

    def looked_up(texels: Any, at: Any, steps: Any) -> Any:
        cube = render.Texture(texels, cube=True)
        return render.texture(cube, at, footprint=(steps, steps), filter="trilinear")

    check(looked_up, texels, [at, steps], 3)


@sad.kernel
def sampled(
    i: sad.Index,
    texels: sad.Texture2D[float],
    sampler: sad.Sampler,
    at: sad.In[float2],
    steps: sad.In[float2],
    is_used: sad.In[int],
    y: sad.Out[float],
):
    value = texels.sample(sampler, at[i]) + texels.sample_grad(sampler, at[i], steps[i], steps[i])
    y[i] = sad.select(is_used[i] > 0, value, 0.0)


@sad.kernel
def sampled_layers(
    i: sad.Index,
    texels: sad.Texture2DArray[float],
    sampler: sad.Sampler,
    at: sad.In[float3],
    steps: sad.In[float2],
    is_used: sad.In[int],
    y: sad.Out[float],
):
    value = texels.sample(sampler, at[i]) + texels.sample_grad(sampler, at[i], steps[i], steps[i])
    y[i] = sad.select(is_used[i] > 0, value, 0.0)


@pytest.mark.parametrize(("dimension", "axes"), [("2d", 2), ("2d-array", 3)])
def test_masked_samples_put_no_nan_into_gradients(
    device: sad.Device, dimension: str, axes: int
) -> None:
    at = coordinates(axes)
    steps = np.where(np.isfinite(at[:, :2]), np.float32(0.3), at[:, :2])
    picture = np.random.default_rng(0).uniform(size=(4,) * axes).astype(np.float32)
    texels = sad.texture(picture, mips=True, dimension=dimension)
    kernel = sampled if dimension == "2d" else sampled_layers
    sampler = sad.sampler(filter="linear", mip_filter="linear", wrap="repeat")
    is_used = np.arange(len(at)) < USED
    _, pullback = sad.vjp(kernel, texels, sampler, at, steps, is_used.astype(np.int32))
    _, kept = sad.vjp(kernel, texels, sampler, at[:USED], steps[:USED], np.ones(USED, np.int32))
    found, expected = pullback(np.ones(len(at), np.float32)), kept(np.ones(USED, np.float32))
    np.testing.assert_allclose(found[0].numpy(), expected[0].numpy(), rtol=1e-4, atol=1e-5)
    for k in (2, 3):
        bar = found[k].numpy()
        np.testing.assert_allclose(bar[:USED], expected[k].numpy(), rtol=1e-4, atol=1e-4)
        assert not bar[USED:].any()
