"""Textures with layers: which layer a coordinate selects, and what gradients reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, int3

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(11)
LAYERS = np.float32(RNG.uniform(0.1, 1.0, (3, 5, 7, 4)))
AT = np.float32(np.column_stack([RNG.uniform(0.05, 0.95, (8, 2)), [0, 0.3, 0.9, 1, 1.4, 2, 5, -2]]))
SMOOTH = sad.sampler("linear", "mirror")
STEP = 1e-3
UNIT = 0.004
"""Texture units have weights of eight bits."""


@sad.kernel
def look(
    i: sad.Index,
    t: sad.Texture2DArray[float4],
    s: sad.Sampler,
    at: sad.In[float3],
    level: float,
    c: sad.Out[float4],
):
    c[i] = t.sample_level(s, at[i], level)


@sad.kernel
def every_read(
    i: sad.Index,
    t: sad.Texture2DArray[float],
    s: sad.Sampler,
    layer: sad.In[float],
    c: sad.Out[float3],
):
    at, step = float3(0.5, 0.5, layer[i]), float2(0.25, 0.0)
    c[i] = float3(t.sample(s, at), t.sample_level(s, at, 0.0), t.sample_grad(s, at, step, step))


def layered(layers: np.ndarray, *, mips: bool = False) -> sad.Texture:
    return sad.texture(layers, mips=mips, dimension="2d-array")


def energy(t: Any, at: Any) -> Any:
    c = look(t, SMOOTH, at, 0.3)
    return sad.sum(sad.dot(c, c))


def test_a_layer_is_the_nearest_or_the_even_one_and_never_beyond(device: sad.Device) -> None:
    layer = np.float32(
        [-np.inf, -7.0, -0.5, 0.0, 0.49, 0.5, 0.51, 1.5, 2.49, 2.5, 3.5, 3.51, 4.0, 1e20, np.inf]
    )
    numbers = np.float32([[[10 * k]] for k in range(5)])
    for count in (1, 4, 5):
        t = layered(numbers[:count])
        expected = 10 * np.clip(np.rint(layer), 0, count - 1)
        found = every_read(t, SMOOTH, layer).numpy()
        np.testing.assert_array_equal(found, np.column_stack([expected] * 3))
        for k in (0, 5, 9, 13):
            written = every_read.debug(t, SMOOTH, layer, thread=k)["c"][k]
            np.testing.assert_array_equal(written, [expected[k]] * 3)


def test_gradients_stay_on_their_layer(device: sad.Device) -> None:
    t, bar = layered(LAYERS, mips=True), np.ones((1, 4), np.float32)
    for layer, nearest in ((0.2, 0), (0.5, 0), (1.5, 2), (1.0, 1), (9.0, 2), (-3.0, 0)):
        at = np.float32([[0.4, 0.7, layer]])
        by_t, _, by_at, _ = sad.vjp(look, t, SMOOTH, at, 0.7)[1](bar)
        per_layer = by_t.numpy().sum((1, 2, 3))
        np.testing.assert_allclose(per_layer, 4.0 * (np.arange(3) == nearest), atol=1e-5)
        assert by_at.numpy()[0, 2] == 0.0
        assert np.abs(by_at.numpy()[0, :2]).min() > 0.0
        _, dot = sad.jvp(look, (t, SMOOTH, at, 0.7), (None, None, np.float32([[0, 0, 1]]), None))
        np.testing.assert_array_equal(dot.numpy(), np.zeros((1, 4)))


@pytest.mark.parametrize("shape", [(3, 5, 7, 4), (1, 3, 1, 4), (2, 1, 1, 4), (5, 6, 4, 4)])
def test_derivatives_of_odd_sizes_agree_with_differences(
    device: sad.Device, shape: tuple[int, ...]
) -> None:
    layers = np.float32(np.random.default_rng(sum(shape)).uniform(0.1, 1.0, shape))
    # The derivative by the layer is zero, and the steps stay on one.
    sad.gradcheck(look, layered(layers, mips=True), SMOOTH, AT, 0.6)


def test_given_levels_have_a_gradient_each(device: sad.Device) -> None:
    levels = [LAYERS, LAYERS[:, :2, :3].copy()]
    t = sad.texture(levels, dimension="2d-array")
    bar = np.float32(RNG.uniform(size=(len(AT), 4)))
    out, pullback = sad.vjp(look, t, SMOOTH, AT, 0.6)
    by_t = pullback(bar)[0]
    assert [x.shape for x in by_t] == [(3, 5, 7), (3, 2, 3)]
    # The value is linear in the texels.
    value = sum(np.vdot(x.numpy(), level) for x, level in zip(by_t, levels, strict=True))
    assert value == pytest.approx(np.vdot(bar, out.numpy()), rel=UNIT)


def test_texels_and_shapes(device: sad.Device) -> None:
    @sad.kernel
    def copied(
        z: sad.Index,
        y: sad.Index,
        x: sad.Index,
        t: sad.Texture2DArray[float4],
        level: int,
        out: sad.Out[float4, 3],
    ):
        layers, h, w = t.shape(level)
        out[z, y, x] = t.load(int3(x, y, z), level) + float4(float(layers), float(h), float(w), 0)

    t = layered(LAYERS, mips=True)
    for level, (h, w) in enumerate([(5, 7), (2, 3), (1, 1)]):
        found = copied(t, level, dim=(3, h, w))
        np.testing.assert_allclose(found.numpy(), t.numpy(level) + np.float32([3, h, w, 0]))
    bar = np.zeros((3, 2, 3, 4), np.float32)
    bar[1] = 1.0
    by_t = sad.vjp(copied, t, 1, dim=(3, 2, 3))[1](bar)[0].numpy()
    expected = 6.0 * np.float32([[0] * 4, [1] * 4, [0] * 4])
    np.testing.assert_allclose(by_t.sum((1, 2)), expected, rtol=1e-5)
    for dim, level in (((4, 5, 7), 0), ((3, 3, 3), 1), ((3, 1, 1), 3)):
        with pytest.raises(sad.BoundsError, match="SR0660"):
            copied(t, level, dim=dim).numpy()


def test_graphs_loops_and_batches_call_kernels_with_layers(device: sad.Device) -> None:
    t = layered(LAYERS, mips=True)

    def looped(t: Any, at: Any) -> Any:
        return sad.fori_loop(0, 2, lambda _, y: y + energy(t, at) * y, 1.0)

    expected = sad.grad(energy, (0, 1))(t, AT)
    for gradient in (sad.grad(sad.graph(energy), (0, 1)), sad.graph(sad.grad(energy, (0, 1)))):
        for x, y in zip(gradient(t, AT), expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)
    total = float(energy(t, AT))
    by_loop = sad.grad(sad.graph(looped))(t, AT).numpy()
    np.testing.assert_allclose(by_loop, 2 * (1 + total) * expected[0].numpy(), rtol=1e-4, atol=1e-4)
    ats = np.stack([AT, AT[::-1]])
    batch = sad.vmap(lambda at: look(t, SMOOTH, at, 0.0))(ats).numpy()
    np.testing.assert_allclose(batch, [look(t, SMOOTH, at, 0.0).numpy() for at in ats], atol=UNIT)


def test_second_derivatives_agree_with_differences(device: sad.Device) -> None:
    layers_dot = np.float32(RNG.normal(size=LAYERS.shape))
    at_dot = np.float32(RNG.normal(size=AT.shape)) * np.float32([1, 1, 0])

    def moved(step: float) -> list[np.ndarray]:
        t = layered(LAYERS + step * layers_dot, mips=True)
        return [x.numpy() for x in sad.grad(energy, (0, 1))(t, AT + step * at_dot)]

    products = sad.hvp(energy, (layered(LAYERS, mips=True), AT), (layers_dot, at_dot))
    for x, after, before in zip(products, moved(STEP), moved(-STEP), strict=True):
        expected = (after - before) / (2 * STEP)
        np.testing.assert_allclose(x.numpy(), expected, atol=2e-3 * np.abs(expected).max())


def test_native_layers_are_wrapped(device: sad.Device) -> None:
    for count in (1, 6):
        t = layered(np.float32(RNG.uniform(size=(count, 4, 4, 4))))
        wrapped = sad.Texture.from_native(t.native, dimension="2d-array")
        assert (wrapped.dimension, wrapped.shape) == ("2d-array", (count, 4, 4))
        x, y = (sad.grad(energy)(each, AT).numpy() for each in (t, wrapped))
        np.testing.assert_array_equal(x, y)
        with pytest.raises(sad.DeviceError, match="SR0632"):
            sad.Texture.from_native(t.native, dimension="3d")
        with pytest.raises(sad.ShapeError, match="SR0815"):
            sad.Texture.from_native(t.native, dimension="array")
