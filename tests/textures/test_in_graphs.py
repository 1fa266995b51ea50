"""Kernels that read textures in graphs, loops, batches, and transforms of any order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float4

RNG = np.random.default_rng(7)
PICTURE = np.float32(RNG.uniform(0.1, 1.0, (8, 8, 4)))
AT = np.float32(RNG.uniform(0.05, 0.95, (6, 2)))
PICTURE_DOT = np.float32(RNG.normal(size=PICTURE.shape))
AT_DOT = np.float32(RNG.normal(size=AT.shape))
SMOOTH = sad.sampler("linear", "clamp")
STEP = 1e-3


@sad.kernel
def look(
    i: sad.Index,
    t: sad.Texture2D[float4],
    s: sad.Sampler,
    at: sad.In[float2],
    level: float,
    c: sad.Out[float4],
):
    c[i] = t.sample_level(s, at[i], level)


@sad.struct
class Material:
    albedo: sad.Texture2D[float4]
    filter: sad.Sampler
    gain: float


@sad.kernel
def shade(i: sad.Index, m: Material, at: sad.In[float2], c: sad.Out[float4]):
    c[i] = m.gain * m.albedo.sample(m.filter, at[i])


def energy(t: Any, at: Any) -> Any:
    c = look(t, SMOOTH, at, 0.3)
    return sad.sum(sad.dot(c, c))


def plain(picture: np.ndarray) -> sad.Texture:
    return sad.texture(picture)


def with_mips(picture: np.ndarray) -> sad.Texture:
    return sad.texture(picture, mips=True)


FORMS = pytest.mark.parametrize("make", [plain, with_mips], ids=["plain", "mips"])


@FORMS
def test_gradients_of_graphs_are_those_of_functions(
    device: sad.Device, make: Callable[[np.ndarray], sad.Texture]
) -> None:
    t, whole = make(PICTURE), sad.graph(energy)
    np.testing.assert_allclose(whole(t, AT), energy(t, AT), rtol=1e-6)
    expected = sad.grad(energy, (0, 1))(t, AT)
    for gradient in (sad.grad(whole, (0, 1)), sad.graph(sad.grad(energy, (0, 1)))):
        for x, y in zip(gradient(t, AT), expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


@FORMS
def test_tangents_are_pushed_through_graphs(
    device: sad.Device, make: Callable[[np.ndarray], sad.Texture]
) -> None:
    t = make(PICTURE)
    by_t, by_at = sad.grad(energy, (0, 1))(t, AT)
    expected = np.sum(by_t.numpy() * PICTURE_DOT) + np.sum(by_at.numpy() * AT_DOT)
    dots = (PICTURE_DOT, AT_DOT)
    for function in (energy, sad.graph(energy)):
        np.testing.assert_allclose(sad.jvp(function, (t, AT), dots)[1], expected, rtol=1e-4)
    inside = sad.graph(lambda t, at: sad.jvp(energy, (t, at), dots)[1])
    np.testing.assert_allclose(inside(t, AT), expected, rtol=1e-4)


@FORMS
def test_second_derivatives_agree_with_differences(
    device: sad.Device, make: Callable[[np.ndarray], sad.Texture]
) -> None:
    gradient = sad.grad(energy, (0, 1))

    def moved(step: float) -> list[np.ndarray]:
        at = gradient(make(PICTURE + step * PICTURE_DOT), AT + step * AT_DOT)
        return [x.numpy() for x in at]

    products = sad.hvp(energy, (make(PICTURE), AT), (PICTURE_DOT, AT_DOT))
    for x, after, before in zip(products, moved(STEP), moved(-STEP), strict=True):
        expected = (after - before) / (2 * STEP)
        np.testing.assert_allclose(x.numpy(), expected, atol=2e-3 * np.abs(expected).max())


@sad.kernel
def brightness(i: sad.Index, m: Material, at: sad.In[float2], total: sad.Add[float]):
    c = m.albedo.sample(m.filter, at[i])
    total[0] += m.gain * c.x * c.y


def test_transforms_of_gradients_of_kernels_take_textures(device: sad.Device) -> None:
    args, call = (Material(sad.texture(PICTURE), SMOOTH, 0.7), AT), {"shapes": {"total": 1}}
    dots = Material(PICTURE_DOT, None, 0.5), AT_DOT
    by_material, by_at = sad.jvp(sad.grad(brightness, (0, 1)), args, dots, **call)[1]
    expected = sad.hvp(brightness, args, dots, **call)
    np.testing.assert_allclose(by_material.albedo.numpy(), expected[0].albedo.numpy(), atol=1e-5)
    np.testing.assert_allclose(by_at.numpy(), expected[1].numpy(), rtol=1e-4, atol=1e-4)


def test_given_levels_have_a_gradient_each(device: sad.Device) -> None:
    levels = [PICTURE[:4, :4], PICTURE[4:6, 4:6]]
    t = sad.texture(levels)
    expected = sad.grad(energy)(t, AT)
    for gradient in (sad.grad(sad.graph(energy)), sad.graph(sad.grad(energy))):
        for x, y in zip(gradient(t, AT), expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


def test_structs_hold_textures(device: sad.Device) -> None:
    def bright(m: Any, at: Any) -> Any:
        c = shade(m, at)
        return sad.sum(sad.dot(c, c))

    m = Material(sad.texture(PICTURE), SMOOTH, 0.7)
    expected = sad.grad(bright)(m, AT)
    for gradient in (sad.grad(sad.graph(bright)), sad.graph(sad.grad(bright))):
        found = gradient(m, AT)
        np.testing.assert_allclose(found.albedo.numpy(), expected.albedo.numpy(), rtol=1e-5)
        np.testing.assert_allclose(found.gain, expected.gain, rtol=1e-5)


def test_a_captured_texture_is_read_as_it_is_now(device: sad.Device) -> None:
    scene = {"t": sad.texture(PICTURE)}
    graph = sad.graph(lambda at: look(scene["t"], SMOOTH, at, 0.0))
    first = graph(AT).numpy()
    np.testing.assert_allclose(first, look(scene["t"], SMOOTH, AT, 0.0).numpy())
    scene["t"] = sad.texture(PICTURE[::-1].copy())
    second = graph(AT).numpy()
    np.testing.assert_allclose(second, look(scene["t"], SMOOTH, AT, 0.0).numpy())
    assert np.abs(second - first).max() > 0.01


def test_a_graph_is_not_traced_again_for_another_picture(device: sad.Device) -> None:
    traces = count()

    @sad.graph
    def traced(t: Any, at: Any) -> Any:
        next(traces)
        return energy(t, at)

    for picture in (PICTURE, PICTURE[::-1].copy(), PICTURE * np.float32(0.5)):
        t = sad.texture(picture)
        np.testing.assert_allclose(traced(t, AT), energy(t, AT), rtol=1e-6)
    assert next(traces) == 1
    small = sad.texture(PICTURE[:4].copy())
    np.testing.assert_allclose(traced(small, AT), energy(small, AT), rtol=1e-6)


def test_loops_call_them(device: sad.Device) -> None:
    def step(t: Any, at: Any) -> Any:
        c = look(t, SMOOTH, at, 0.0)
        return at + 0.1 * sad.stack([c.x, c.y], -1)

    def looped(t: Any, at: Any) -> Any:
        return sad.sum(sad.fori_loop(0, 3, lambda _, at: step(t, at), at) ** 2)

    def unrolled(t: Any, at: Any) -> Any:
        return sad.sum(step(t, step(t, step(t, at))) ** 2)

    t, graph = sad.texture(PICTURE), sad.graph(looped)
    np.testing.assert_allclose(graph(t, AT), unrolled(t, AT), rtol=1e-5)
    pairs = zip(sad.grad(graph, (0, 1))(t, AT), sad.grad(unrolled, (0, 1))(t, AT), strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def test_batches_share_a_texture(device: sad.Device) -> None:
    t = sad.texture(PICTURE)
    ats = np.float32(RNG.uniform(0.05, 0.95, (3, 6, 2)))
    found = sad.vmap(lambda at: look(t, SMOOTH, at, 0.0))(ats).numpy()
    expected = [look(t, SMOOTH, at, 0.0).numpy() for at in ats]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6)
    for argnum in (0, 1):
        gradient = sad.grad(energy, argnum)
        found = sad.vmap(lambda at, gradient=gradient: gradient(t, at))(ats).numpy()
        expected = [gradient(t, at).numpy() for at in ats]
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-5, atol=1e-6)


@sad.kernel
def squared(
    i: sad.Index,
    t: sad.Texture2D[float4],
    s: sad.Sampler,
    at: sad.In[float2],
    k: float,
    y: sad.Out[float],
):
    c = t.sample(s, at[i])
    y[i] = k * sad.dot(c, c)


def test_a_batch_of_gradients_reads_the_texture(device: sad.Device) -> None:
    t, gains = sad.texture(PICTURE), np.float32([1.0, 2.0, -0.5])

    def gradient(k: Any) -> Any:
        return sad.grad(lambda t: sad.sum(squared(t, SMOOTH, AT, k)))(t)

    expected = np.stack([gradient(float(k)).numpy() for k in gains])
    for batch in (sad.vmap(gradient), sad.graph(sad.vmap(gradient))):
        np.testing.assert_allclose(batch(gains).numpy(), expected, rtol=1e-5, atol=1e-6)
    by_gain = sad.grad(lambda gains: sad.sum(sad.vmap(gradient)(gains).x))(gains)
    np.testing.assert_allclose(by_gain, np.full(3, expected[0, ..., 0].sum()), rtol=1e-4)


def test_a_texture_has_no_axis_to_map(device: sad.Device) -> None:
    with pytest.raises(sad.LanguageError, match=r"SR0400.*argument 0"):
        sad.vmap(energy)(sad.texture(PICTURE), AT[None])
    mapped = sad.vmap(energy, in_axes=(None, 0))(sad.texture(PICTURE), AT[None])
    np.testing.assert_allclose(mapped, [energy(sad.texture(PICTURE), AT)], rtol=1e-6)


def test_numbers_and_sizes_for_kernels_need_no_dispatch(device: sad.Device) -> None:
    graph = sad.graph(lambda t, at: look(t, SMOOTH, at, 0.5))
    text = graph.explain(sad.texture(PICTURE), sad.array(AT, dtype=float2))
    assert "dispatches: 1," in text
