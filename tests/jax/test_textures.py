"""Textures and samplers as arguments of wrapped functions, beside arrays of JAX."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shaderad as sad
from tests.wrapped.functions import (
    TEXELS,
    Material,
    Pair,
    textured,
    textured_loss,
    textured_parts,
)

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""
UV = np.float32([[0.4, 0.9], [1.1, 0.5], [0.7, 0.6]])
SMOOTH = sad.sampler(wrap="clamp")

pytestmark = pytest.mark.gpu
Run = Callable[..., Any]


def expected(t: sad.Texture, uv: Any) -> tuple[Any, Any]:
    """The loss and its gradient, as shaderad computes them itself."""
    loss, by_uv = sad.value_and_grad(textured_loss, argnums=2)(t, SMOOTH, np.asarray(uv))
    return float(loss), by_uv.numpy()


def assert_close(computed: Any, expected: Any) -> None:
    for x, y in zip(computed, expected, strict=True):
        np.testing.assert_allclose(x, y, **EXACT)


@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_textures_stand_anywhere_among_the_arguments(device: sad.Device, run: Run) -> None:
    wrapped, t = sad.jax.wrap(textured_parts), sad.texture(TEXELS)
    plain = sad.jax.wrap(textured)(Material(t, SMOOTH, 1.5), UV)  # pyright: ignore
    for parts in ({"t": t}, [t], (t,), Pair(t, 0.0)):
        out = run(lambda uv, p=parts: wrapped(p, uv, sampler=SMOOTH))(UV)
        np.testing.assert_allclose(out, plain, **EXACT)


@pytest.mark.parametrize("run", [lambda f, **_: f, jax.jit])
def test_another_texture_is_another_value(device: sad.Device, run: Run) -> None:
    wrapped = sad.jax.wrap(textured_loss)
    step = run(jax.value_and_grad(wrapped, argnums=2), static_argnums=(0, 1))
    tiled = np.tile(TEXELS, (2, 2, 1))
    for texels in (TEXELS, 2.0 * TEXELS, TEXELS, tiled):
        t = sad.texture(texels)
        assert_close(step(t, SMOOTH, UV), expected(t, UV))


def test_transforms_take_a_texture_as_a_constant(device: sad.Device) -> None:
    wrapped, t = sad.jax.wrap(textured_loss), sad.texture(TEXELS)
    rows = np.stack([UV, np.float32(0.5) * UV])
    wanted = [expected(t, row) for row in rows]
    batched = jax.vmap(jax.value_and_grad(wrapped, argnums=2), (None, None, 0))
    for values, by_rows in (
        batched(t, SMOOTH, rows),
        jax.jit(batched, static_argnums=(0, 1))(t, SMOOTH, rows),
        jax.lax.scan(
            lambda c, uv: (c, jax.value_and_grad(wrapped, argnums=2)(t, SMOOTH, uv)), 0.0, rows
        )[1],
        jax.vmap(jax.checkpoint(jax.value_and_grad(wrapped, argnums=2), static_argnums=(0, 1)),
                 (None, None, 0))(t, SMOOTH, rows),
    ):  # fmt: skip
        for result in zip(zip(values, by_rows, strict=True), wanted, strict=True):
            assert_close(*result)


def test_code_keeps_its_textures_until_caches_are_cleared(device: sad.Device) -> None:
    wrapped = sad.jax.wrap(textured_loss)
    alive: list[weakref.ref[sad.Texture]] = []

    def loss(uv: Any) -> Any:
        t = sad.texture(TEXELS)
        alive.append(weakref.ref(t))
        return wrapped(t, SMOOTH, uv)

    compiled = jax.jit(jax.grad(loss))
    for _ in range(2):
        by_uv = compiled(UV)
        gc.collect()
        np.testing.assert_allclose(by_uv, expected(sad.texture(TEXELS), UV)[1], **EXACT)
    assert len(alive) == 1
    jax.grad(loss)(UV)
    gc.collect()
    assert alive[0]() is not None
    assert len(alive) == 2
    jax.clear_caches()
    gc.collect()
    assert alive[1]() is None


def test_textures_in_place_of_arrays_are_refused(device: sad.Device) -> None:
    wrapped, t = sad.jax.wrap(textured_loss), sad.texture(TEXELS)
    for call in (
        lambda: jax.jit(wrapped)(t, SMOOTH, UV),
        lambda: jax.jit(lambda s: wrapped(t, s, UV))(SMOOTH),
        lambda: jax.grad(wrapped)(t, SMOOTH, UV),
        lambda: jax.jvp(lambda t: wrapped(t, SMOOTH, UV), (t,), (t,)),
        lambda: jax.vmap(wrapped, (0, None, 0))(t, SMOOTH, UV[:, None]),
        lambda: jax.lax.scan(lambda t, uv: (t, wrapped(t, SMOOTH, uv)), t, UV[:, None]),
        lambda: jax.checkpoint(wrapped)(t, SMOOTH, UV),
        lambda: jnp.sin(t),  # pyright: ignore
    ):
        with pytest.raises(sad.DerivativeError, match="SR0484"):
            call()
    with pytest.raises((sad.DerivativeError, TypeError), match=r"SR0484|not a valid JAX type"):
        jax.vjp(wrapped, t, SMOOTH, UV)


def test_textures_that_shaderad_differentiates_are_refused(device: sad.Device) -> None:
    wrapped, t = sad.jax.wrap(textured_loss), sad.texture(TEXELS)

    def loss(t: Any) -> Any:
        return sad.array(np.asarray(wrapped(t, SMOOTH, UV)))

    for transformed in (sad.grad(loss), sad.graph(loss)):
        with pytest.raises(sad.DerivativeError, match="SR0483"):
            transformed(t)
