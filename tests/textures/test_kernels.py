"""Textures in kernels: what units read, and derivatives, against NumPy in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3
from tests.textures import reference
from tests.textures.reference import Settings

pytestmark = pytest.mark.gpu

UNIT = 0.004
"""Of values from 0 to 1: units have weights of eight bits."""
EXACT = 2e-5
SHAPES = {
    "1d": (16,), "2d": (8, 16), "2d-array": (3, 8, 16), "3d": (4, 8, 2), "cube": (6, 8, 8),
}  # fmt: skip
PLACES = {"1d": float, "2d": float2, "2d-array": float3, "3d": float3, "cube": float3}
STEPS = PLACES | {"2d-array": float2}
FORMS = {
    "1d": sad.Texture1D,
    "2d": sad.Texture2D,
    "2d-array": sad.Texture2DArray,
    "3d": sad.Texture3D,
    "cube": sad.TextureCube,
}
LAYERED = ("2d-array", "cube")
TEXELS = {1: float, 2: float2, 4: float4}
SETTINGS = [Settings(*s) for s in product(("linear", "nearest"), ("repeat", "clamp", "mirror"))]
KERNELS: dict[Any, Any] = {}


def kernels(dimension: str, channels: int) -> Any:
    """Reads on level 0, on levels, and by steps."""
    texture, texel = FORMS[dimension], TEXELS[channels]
    place, step = PLACES[dimension], STEPS[dimension]

    @sad.kernel
    def base(
        i: sad.Index, t: texture[texel], s: sad.Sampler, at: sad.In[place], out: sad.Out[texel]
    ):
        out[i] = t.sample(s, at[i])

    @sad.kernel
    def on_level(
        i: sad.Index,
        t: texture[texel],
        s: sad.Sampler,
        at: sad.In[place],
        level: sad.In[float],
        out: sad.Out[texel],
    ):
        out[i] = t.sample_level(s, at[i], level[i])

    @sad.kernel
    def by_steps(
        i: sad.Index,
        t: texture[texel],
        s: sad.Sampler,
        at: sad.In[place],
        dx: sad.In[step],
        dy: sad.In[step],
        out: sad.Out[texel],
    ):
        out[i] = t.sample_grad(s, at[i], dx[i], dy[i])

    return base, on_level, by_steps


def kernels_of(dimension: str, channels: int) -> Any:
    key = dimension, channels
    return KERNELS.setdefault(key, None) or KERNELS.update({key: kernels(*key)}) or KERNELS[key]


def places(rng: np.random.Generator, dimension: str, count: int = 300) -> np.ndarray:
    """Coordinates away from centres and edges of texels of all levels, or of faces."""
    axes = {"1d": 1, "2d": 2, "2d-array": 2}.get(dimension, 3)
    if dimension == "cube":
        d = rng.normal(size=(20 * count, 3))
        at, sizes = reference.cube_place(d)[1], np.float64([8, 8])
        keep = np.all(np.abs(at - 0.5) < 0.5 - 0.51 / 2, axis=1)  # inside of level 2
    else:
        d = rng.uniform(-1.3, 2.3, (20 * count, axes))
        at, sizes = d, np.float64(SHAPES[dimension][::-1][:axes])
        keep = np.ones(len(d), bool)
    for k in range(5):
        texel = at * np.maximum(sizes / 2**k, 1) * 2
        keep &= np.all(np.abs(texel - np.round(texel)) > 0.03, axis=1)
    found = np.float32(d[keep][:count])
    if dimension == "2d-array":
        layers = rng.integers(-1, 4, count) + rng.uniform(-0.45, 0.45, count)
        return np.column_stack([found, np.float32(layers)])
    return found[:, 0] if axes == 1 else found


def texels(rng: np.random.Generator, dimension: str, channels: int) -> np.ndarray:
    return np.float32(rng.uniform(0, 1, (*SHAPES[dimension], channels)))


def levels_of(data: np.ndarray, dimension: str) -> list[np.ndarray]:
    """The levels that `sad.texture` makes; lines have one."""
    data = np.float64(data)
    return [data] if dimension == "1d" else reference.chain(data, has_layers=dimension in LAYERED)


def texture_of(data: np.ndarray, dimension: str, *, mips: bool) -> sad.Texture:
    image = data if data.shape[-1] > 1 else data[..., 0]
    return sad.texture(image, mips=mips and dimension != "1d", dimension=dimension)


def column(values: sad.Array) -> np.ndarray:
    found = values.numpy()
    return found.reshape(len(found), -1)


@pytest.mark.parametrize("dimension", SHAPES)
@pytest.mark.parametrize("channels", [1, 4])
def test_values(device: sad.Device, dimension: str, channels: int) -> None:
    rng = np.random.default_rng(channels)
    data, at = texels(rng, dimension, channels), places(rng, dimension)
    is_cube = dimension == "cube"
    levels = levels_of(data, dimension)
    t = texture_of(data, dimension, mips=True)
    base, on_level, by_steps = kernels_of(dimension, channels)
    level = np.float32(rng.uniform(-0.5, 2.0 if is_cube else len(levels), len(at)))
    for s in SETTINGS if not is_cube else SETTINGS[::3]:
        sampler = sad.sampler(s.filter, s.wrap, "linear")
        wanted = reference.sample(levels, at, s, dimension=dimension)
        np.testing.assert_allclose(column(base(t, sampler, at)), wanted, atol=UNIT)
        wanted = reference.sample(levels, at, s, level, dimension)
        np.testing.assert_allclose(column(on_level(t, sampler, at, level)), wanted, atol=2 * UNIT)
    if not is_cube:
        shape = at[:, :2].shape if dimension == "2d-array" else at.shape
        dx, dy = (np.float32(rng.uniform(0.02, 0.4, shape)) for _ in range(2))
        size = SHAPES[dimension][::-1][: shape[-1] if len(shape) > 1 else 1]
        level = reference.level_of(size, dx, dy)
        wanted = reference.sample(levels, at, SETTINGS[0], level, dimension)
        found = column(by_steps(t, sad.sampler(), at, dx, dy))
        # The level of a unit may differ by the approximation of a logarithm.
        np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize("dimension", SHAPES)
@pytest.mark.parametrize("choice", SETTINGS, ids=str)
def test_gradients(device: sad.Device, dimension: str, choice: Settings) -> None:
    """By texels and places, of reads on levels, against differences of the reference."""
    rng = np.random.default_rng(3)
    data, at = texels(rng, dimension, 2), places(rng, dimension, 100)
    _, on_level, _ = kernels_of(dimension, 2)
    level = np.float32(rng.uniform(0.1, 0.9, len(at)) + rng.integers(0, 2, len(at)))
    weights = np.float32(rng.normal(size=(len(at), 2)))

    def loss(data: np.ndarray, at: np.ndarray, level: np.ndarray) -> float:
        levels = levels_of(data, dimension)
        return float((reference.sample(levels, at, choice, level, dimension) * weights).sum())

    t = texture_of(data, dimension, mips=True)
    sampler = sad.sampler(choice.filter, choice.wrap)
    _, pullback = sad.vjp(on_level, t, sampler, at, level)
    by_texture, none, by_place, by_level = pullback(weights)
    assert none is None
    assert by_texture.shape == SHAPES[dimension]
    data, at, level = np.float64(data), np.float64(at), np.float64(level)
    for given, gradient in ((data, by_texture), (at, by_place), (level, by_level)):
        step = rng.normal(size=given.shape)
        pair = [
            loss(*(x + sign * 1e-6 * step if x is given else x for x in (data, at, level)))
            for sign in (1, -1)
        ]
        slope = (pair[0] - pair[1]) / 2e-6
        found = float((np.float64(gradient.numpy()).reshape(given.shape) * step).sum())
        assert found == pytest.approx(slope, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("dimension", ["2d", "2d-array", "cube"])
def test_tangents_are_the_transpose_of_cotangents(device: sad.Device, dimension: str) -> None:
    rng = np.random.default_rng(4)
    data, at = texels(rng, dimension, 4), places(rng, dimension, 64)
    _, _, by_steps = kernels_of(dimension, 4)
    t, sampler = texture_of(data, dimension, mips=True), sad.sampler(wrap="mirror")
    shape = (64, 2) if dimension == "2d-array" else at.shape
    steps = [np.float32(rng.uniform(0.05, 0.3, shape)) for _ in range(2)]
    tangents = [np.float32(rng.normal(size=x.shape)) for x in (data, at, *steps)]
    bar = np.float32(rng.normal(size=(64, 4)))
    arguments = (t, sampler, at, *steps)
    _, out_dot = sad.jvp(by_steps, arguments, (tangents[0], None, *tangents[1:]))
    _, pullback = sad.vjp(by_steps, *arguments)
    by_texture, _, *others = pullback(bar)
    left = (np.float64(out_dot.numpy()) * bar).sum()
    right = sum(
        (np.float64(g.numpy()) * d).sum()
        for g, d in zip((by_texture, *others), tangents, strict=True)
    )
    assert left == pytest.approx(right, rel=1e-4)


def test_all_threads_read_one_texel(device: sad.Device) -> None:
    base, _, _ = kernels_of("2d", 4)
    t = texture_of(np.full((8, 16, 4), 0.25, np.float32), "2d", mips=False)
    at = np.full((10_000, 2), 0.5 / 8, np.float32) * np.float32([0.5, 1])
    gradient = sad.grad(lambda t: sad.sum(sad.dot(base(t, sad.sampler(), at), float4(1.0))))(t)
    wanted = np.zeros((8, 16, 4))
    wanted[0, 0] = 10_000
    np.testing.assert_allclose(gradient.numpy(), wanted, atol=0.5)


def test_texels_and_shapes(device: sad.Device) -> None:
    @sad.kernel
    def copied(
        y: sad.Index, x: sad.Index, t: sad.Texture2D[float4], level: int, out: sad.Out[float4, 2]
    ):
        h, w = t.shape(level)
        out[y, x] = t.load(int2(x, y), level) + float4(float(h), float(w), 0.0, 0.0)

    @sad.kernel
    def of_cube(f: sad.Index, t: sad.TextureCube[float], out: sad.Out[float]):
        h, w = t.shape()
        out[f] = t.load(int3(1, 2, f)) + float(h * w)

    rng = np.random.default_rng(6)
    data = texels(rng, "2d", 4)
    t = texture_of(data, "2d", mips=True)
    for k, level in enumerate(reference.chain(np.float64(data))):
        h, w = level.shape[:2]
        found = copied(t, k, dim=(h, w))
        np.testing.assert_allclose(found.numpy(), level + np.float64([h, w, 0, 0]), atol=EXACT)
    faces = texels(rng, "cube", 1)
    found = of_cube(texture_of(faces, "cube", mips=False), dim=6)
    np.testing.assert_allclose(found.numpy(), faces[:, 2, 1, 0] + 64, atol=EXACT)
    _, pullback = sad.vjp(copied, t, 1, dim=(4, 8))
    by_texel = pullback(np.ones((4, 8, 4), np.float32))[0].numpy()
    np.testing.assert_allclose(by_texel, np.full((8, 16, 4), 0.25), atol=EXACT)
    with pytest.raises(sad.BoundsError, match="SR0660"):
        copied(t, 0, dim=(9, 16)).numpy()
    with pytest.raises(sad.BoundsError, match="SR0660"):
        copied(t, 5, dim=(1, 1)).numpy()


def test_given_levels_have_a_gradient_each(device: sad.Device) -> None:
    _, on_level, _ = kernels_of("2d", 1)
    levels = [np.ones((4, 4), np.float32), np.ones((2, 2), np.float32)]
    t = sad.texture(levels)
    at = np.float32([[0.3, 0.3], [0.8, 0.6]])
    by_texture = sad.vjp(on_level, t, sad.sampler(), at, np.float32([0.25, 0.25]))[1](
        np.ones(2, np.float32)
    )[0]
    assert [x.shape for x in by_texture] == [(4, 4), (2, 2)]
    assert [float(x.numpy().sum()) for x in by_texture] == pytest.approx([1.5, 0.5])


def test_bytes_and_halves_have_float_gradients(device: sad.Device) -> None:
    base, _, _ = kernels_of("2d", 4)
    at = np.float32([[0.3, 0.4]])
    for image, form in (
        (np.full((4, 4, 3), 128, np.uint8), None),
        (np.full((4, 4, 3), 128, np.uint8), "rgba8unorm-srgb"),
        (np.full((4, 4, 4), 0.5, np.float16), None),
    ):
        t = sad.texture(image, format=form)
        out, pullback = sad.vjp(base, t, sad.sampler(), at)
        wanted = ((128 / 255 + 0.055) / 1.055) ** 2.4 if form else 0.5
        assert out.numpy()[0, 0] == pytest.approx(wanted, abs=0.01)
        gradient = pullback(np.ones((1, 4), np.float32))[0]
        assert gradient.dtype is float4
        assert gradient.numpy()[..., 0].sum() == pytest.approx(1.0)


def test_struct_of_textures(device: sad.Device) -> None:
    @sad.function
    def looked_up(t: sad.Texture2D[float4], s: sad.Sampler, at: float2) -> float3:
        return t.sample(s, at).xyz

    @sad.struct
    class Material:
        color: sad.Texture2D[float4]
        rough: sad.Texture2D[float]
        smooth: sad.Sampler
        tint: float3

    @sad.kernel
    def shade(i: sad.Index, m: Material, at: sad.In[float2], out: sad.Out[float3]):
        out[i] = looked_up(m.color, m.smooth, at[i]) * m.tint + m.rough.sample(m.smooth, at[i])

    color, rough = np.full((4, 4, 4), 0.5, np.float32), np.full((2, 2), 0.25, np.float32)
    m = Material(sad.texture(color), sad.texture(rough), sad.sampler(), float3(1, 2, 3))
    out, pullback = sad.vjp(shade, m, np.float32([[0.5, 0.5]]))
    np.testing.assert_allclose(out.numpy(), [[0.75, 1.25, 1.75]], atol=UNIT)
    by_material = pullback(np.ones((1, 3), np.float32))[0]
    assert by_material.color.numpy().sum(axis=(0, 1)).tolist() == pytest.approx([1, 2, 3, 0])
    assert by_material.rough.numpy().sum() == pytest.approx(3.0)
    np.testing.assert_allclose(by_material.tint.numpy(), [0.5, 0.5, 0.5], atol=EXACT)
    assert by_material.smooth == 0


def test_functions_differentiate_by_textures(device: sad.Device) -> None:
    """Two reads of one texture, and numbers beside it."""
    base, _, _ = kernels_of("2d", 1)
    rng = np.random.default_rng(8)
    data, at = texels(rng, "2d", 1), places(rng, "2d", 30)
    t = texture_of(data, "2d", mips=False)

    def loss(t: Any, gain: Any) -> Any:
        first, second = base(t, sad.sampler(), at), base(t, sad.sampler("nearest"), at)
        return sad.sum(first * second) * gain

    value, (by_texture, by_gain) = sad.value_and_grad(loss, argnums=(0, 1))(t, 2.0)
    assert float(by_gain) == pytest.approx(float(value) / 2, rel=1e-5)
    step = rng.normal(size=(8, 16, 1))

    def reference_loss(data: np.ndarray) -> float:
        first, second = (reference.sample([data], at, s)[:, 0] for s in (SETTINGS[0], SETTINGS[3]))
        return float(2 * (first * second).sum())

    slope = (reference_loss(data + 1e-6 * step) - reference_loss(data - 1e-6 * step)) / 2e-6
    assert (by_texture.numpy() * step[..., 0]).sum() == pytest.approx(slope, rel=1e-3)
    assert sad.jvp(loss, (t, 2.0), (np.ones((8, 16), np.float32), None))[1].numpy() > 0
