"""What kernels and calls refuse of textures: by a code, and at the Python line."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4

pytestmark = pytest.mark.gpu

PICTURE = np.ones((4, 4, 4), np.float32)
AT = np.zeros((3, 2), np.float32)


@sad.kernel
def sampled(
    i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, at: sad.In[float2], out: sad.Out[float4]
):
    out[i] = t.sample(s, at[i])


@pytest.mark.parametrize(
    ("image", "found"),
    [
        (None, "got a `ndarray`"),
        (np.ones((4, 4, 4, 4), np.float32), "got a 3d texture of `float4`"),
        (np.ones((4, 4), np.float32), "got a 2d texture of `float`"),
    ],
)
def test_arguments_that_are_no_such_texture(device: sad.Device, image: Any, found: str) -> None:
    t = PICTURE if image is None else sad.texture(image)
    with pytest.raises(sad.ShapeError, match=f"(?s)SR0819.*{found}"):
        sampled(t, sad.sampler(), AT)


def test_arguments_that_are_no_sampler(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match=r"SR0819.*`s` takes a `Sampler`, but got a `str`"):
        sampled(sad.texture(PICTURE), "linear", AT)


@pytest.mark.parametrize("captured", [False, True])
def test_pytorch_differentiates_beside_textures(device: sad.Device, captured: bool) -> None:
    torch = pytest.importorskip("torch")
    picture = np.float32(np.random.default_rng(1).uniform(0, 1, PICTURE.shape))
    t, s = sad.texture(picture), sad.sampler()
    at = torch.tensor([[0.3, 0.4], [0.6, 0.1]], requires_grad=True)
    if captured:
        wrapped = sad.torch.wrap(lambda at: sampled(t, s, at))
    else:
        wrapped = partial(sad.torch.wrap(sampled), t, s)
    found = wrapped(at)
    found.sum().backward()
    expected, pullback = sad.vjp(sampled, t, s, at.detach().numpy())
    by_at = pullback(np.ones((2, 4), np.float32))[2].numpy()
    np.testing.assert_allclose(found.detach().numpy(), expected.numpy(), atol=0.004)
    np.testing.assert_allclose(at.grad.numpy(), by_at, rtol=1e-5)
    assert np.abs(by_at).max() > 0.1
    (by_at,) = torch.autograd.grad((wrapped(at) ** 2).sum(), at, create_graph=True)
    (twice,) = torch.autograd.grad((by_at * by_at.detach()).sum(), at)
    product = sad.hvp(
        lambda at: sad.sum(sad.dot(sampled(t, s, at), sampled(t, s, at))),
        at.detach().numpy(),
        by_at.detach().numpy(),
    )
    np.testing.assert_allclose(twice.numpy(), product.numpy(), rtol=1e-4, atol=1e-4)


def test_gradcheck(device: sad.Device) -> None:
    at = np.float32([[0.3, 0.4], [0.6, 0.1]])
    rng = np.random.default_rng(0)
    picture = np.float32(rng.uniform(0, 1, PICTURE.shape))
    report = sad.gradcheck(sampled, sad.texture(picture, mips=True), sad.sampler(), at)
    assert [(one.name, one.size) for one in report.arguments] == [("t", 64), ("at", 4)]
    with pytest.raises(sad.DerivativeError, match=r"(?s)SR0479.*`t`.*rgba8unorm"):
        sad.gradcheck(sampled, sad.texture(np.uint8(255 * picture)), sad.sampler(), at)


@sad.kernel
def layers(
    i: sad.Index,
    t: sad.Texture2DArray[float4],
    s: sad.Sampler,
    at: sad.In[float3],
    out: sad.Out[float4],
):
    out[i] = t.sample(s, at[i])


@pytest.mark.parametrize(
    ("image", "dimension", "found"),
    [
        (PICTURE, None, "got a 2d texture of `float4`"),
        (np.ones((6, 4, 4, 4), np.float32), "cube", "got a cube texture of `float4`"),
        (np.ones((6, 4, 4), np.float32), "2d-array", "got a 2d-array texture of `float`"),
    ],
)
def test_arguments_that_have_no_layers(
    device: sad.Device, image: np.ndarray, dimension: str | None, found: str
) -> None:
    with pytest.raises(sad.ShapeError, match=f"(?s)SR0819.*{found}"):
        layers(sad.texture(image, dimension=dimension), sad.sampler(), np.zeros((3, 3), np.float32))


def kernel_of(code: str) -> Any:
    """The kernels below by name."""
    return globals()[code]


@sad.kernel
def element(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t[i]


@sad.kernel
def attribute(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t.fetch(i)


@sad.kernel
def without_sampler(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t.sample(float2(0.5, 0.5))


@sad.kernel
def other_sampler(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t.sample(t, float2(0.5, 0.5))


@sad.kernel
def other_place(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t.sample(s, float3(0.5, 0.5, 1.0))


@sad.kernel
def place_without_layer(
    i: sad.Index, t: sad.Texture2DArray[float4], s: sad.Sampler, out: sad.Out[float4]
):
    out[i] = t.sample(s, float2(0.5, 0.5))


@sad.kernel
def step_with_layer(
    i: sad.Index, t: sad.Texture2DArray[float4], s: sad.Sampler, out: sad.Out[float4]
):
    out[i] = t.sample_grad(s, float3(0.5), float3(0.1), float3(0.1))


@sad.kernel
def keyword(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = t.sample(s, float2(0.5), lod=0)


@sad.kernel
def other_texel(i: sad.Index, t: sad.Texture2D[float3], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = float4(0.0)


@sad.kernel
def no_texel(i: sad.Index, t: sad.Texture2D, s: sad.Sampler, out: sad.Out[float4]):
    out[i] = float4(0.0)


@sad.kernel
def rebound(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    s = float4(0.0)
    out[i] = s


@sad.function
def looked_up(t: sad.Texture2D[float4], s: sad.Sampler, at: float2) -> float4:
    return t.sample(s, at)


@looked_up.backward_derivative
def looked_up_bwd(
    t: sad.Texture2D[float4],
    s: sad.Sampler,
    at: sad.DifferentialPair[float2],
    d_out: float4,
):
    at.d = float2(0.0)


@sad.kernel
def derived(i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, out: sad.Out[float4]):
    out[i] = looked_up(t, s, float2(0.5))


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("element", "SR0310", "out[i] = t[i]"),
        ("attribute", "SR0310", "sample(), sample_level(), sample_grad(), load(), shape()"),
        ("without_sampler", "SR0231", "found 1 argument, wanted 2: sampler, uv"),
        ("other_sampler", "SR0303", "expected `Sampler`, found the texture `t`"),
        ("other_place", "SR0303", "expected `float2`, found `float3`"),
        ("place_without_layer", "SR0303", "expected `float3`, found `float2`"),
        ("step_with_layer", "SR0303", "expected `float2`, found `float3`"),
        ("keyword", "SR0233", "`lod=`"),
        ("other_texel", "SR0301", "texels are `float`, `float2`, `float4`"),
        ("no_texel", "SR0301", "it needs an element type: `Texture2D[float]`"),
        ("rebound", "SR0206", "it is the sampler `s`"),
        ("derived", "SR0251", "`looked_up` reads texture `t`"),
    ],
)
def test_kernels(device: sad.Device, name: str, code: str, text: str) -> None:
    with pytest.raises(sad.LanguageError, match=f"(?s){code}.*{re.escape(text)}"):
        kernel_of(name)(sad.texture(PICTURE), sad.sampler(), dim=3)
