"""Textures, samplers and other leaves that are no arrays in functions that operators call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2

PICTURE = np.random.default_rng(3).uniform(size=(4, 4)).astype(np.float32)
CHANGE = np.random.default_rng(4).uniform(size=(4, 4)).astype(np.float32)
AT = np.float32([[0.3, 0.4], [0.6, 0.55]])
SMOOTH, SHARP = sad.sampler("linear", wrap="clamp"), sad.sampler("nearest")


@sad.kernel
def look(
    i: sad.Index, t: sad.Texture2D[float], s: sad.Sampler, at: sad.In[float2], y: sad.Out[float]
):
    y[i] = t.sample_level(s, at[i], 0.5)


def energy(t: Any, s: Any, at: Any) -> Any:
    return sad.sum(look(t, s, at, dim=2) ** 2)


def mipmapped() -> sad.Texture:
    return sad.texture(PICTURE, mips=True)


def in_graph(function: Callable[..., Any]) -> Callable[..., Any]:
    return sad.graph(lambda *args: function(*args))


def as_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


PLACES = pytest.mark.parametrize("place", [as_is, in_graph])


@PLACES
def test_checkpoints_take_textures_and_samplers(
    device: sad.Device, place: Callable[..., Any]
) -> None:
    t = mipmapped()
    gradients = sad.grad(place(sad.checkpoint(energy)), (0, 2))(t, SMOOTH, AT)
    for x, y in zip(gradients, sad.grad(energy, (0, 2))(t, SMOOTH, AT), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


def test_checkpoints_pass_leaves_that_are_no_arrays_on(device: sad.Device) -> None:
    def function(x: Any, rule: str, nothing: None) -> Any:
        assert rule == "square"
        return {"loss": sad.sum(x * x), "sampler": SMOOTH, "rule": rule, "nothing": nothing}

    out = sad.checkpoint(function)(AT, "square", None)
    assert (out["sampler"], out["rule"], out["nothing"]) == (SMOOTH, "square", None)
    np.testing.assert_allclose(out["loss"].numpy(), np.sum(AT**2), rtol=1e-6)


@PLACES
def test_cotangents_of_custom_rules_have_the_form_of_gradients(
    device: sad.Device, place: Callable[..., Any]
) -> None:
    scaled = sad.custom_vjp(energy)

    def backward(residuals: Any, bar: Any) -> Any:
        by_t, by_at = sad.grad(energy, (0, 2))(*residuals)
        return 3.0 * bar * by_t, None, 2.0 * bar * by_at

    scaled.defvjp(lambda t, s, at: (energy(t, s, at), (t, s, at)), backward)
    t = mipmapped()
    by_t, by_at = sad.grad(place(scaled), (0, 2))(t, SMOOTH, AT)
    expected_t, expected_at = sad.grad(energy, (0, 2))(t, SMOOTH, AT)
    np.testing.assert_allclose(by_t.numpy(), 3.0 * expected_t.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_at.numpy(), 2.0 * expected_at.numpy(), rtol=1e-5, atol=1e-6)


@PLACES
def test_derivatives_of_a_texture_that_is_returned_are_the_same(
    device: sad.Device, place: Callable[..., Any]
) -> None:
    def kept(t: Any) -> Any:
        return {"texture": t, "loss": 1.0}

    t = mipmapped()
    _, pullback = sad.vjp(place(kept), t)
    (by_t,) = pullback({"texture": CHANGE, "loss": None})
    np.testing.assert_allclose(by_t.numpy(), CHANGE, atol=1e-6)
    _, dot = sad.jvp(place(kept), (t,), (CHANGE,))
    np.testing.assert_allclose(dot["texture"].numpy(), CHANGE, atol=1e-6)

    def pulled(t: Any) -> Any:
        return sad.vjp(kept, t)[1]({"texture": CHANGE, "loss": None})[0]

    np.testing.assert_allclose(sad.graph(pulled)(t).numpy(), CHANGE, atol=1e-6)


def test_given_levels_of_custom_rules_have_a_cotangent_each(device: sad.Device) -> None:
    t, levels = sad.texture([PICTURE, PICTURE[:2, :2]]), (CHANGE, CHANGE[:2, :2])
    rule = sad.custom_vjp(lambda t: 1.0)
    rule.defvjp(lambda t: (1.0, ()), lambda _, bar: (levels,))
    for x, y in zip(sad.grad(rule)(t), levels, strict=True):
        np.testing.assert_allclose(x.numpy(), y)


def test_loops_carry_samplers(device: sad.Device) -> None:
    t = sad.texture(PICTURE)

    def total(at: Any) -> Any:
        def step(carry: Any) -> Any:
            loss = carry["loss"] + energy(t, carry["sampler"], carry["at"])
            return {"loss": loss, "sampler": carry["sampler"], "at": 0.9 * carry["at"]}

        init = {"loss": 0.0, "sampler": SMOOTH, "at": at}
        last = sad.fori_loop(2, lambda _, carry: step(carry), init)
        rows, places = sad.loop(lambda c, x: (step(c), (c["at"], SMOOTH)), init, (AT[:, 0], None))
        whole = sad.while_loop(lambda c: c["loss"] < 1e-3, step, init, 2)
        assert last["sampler"] == rows["sampler"] == whole["sampler"] == places[1] == SMOOTH
        return last["loss"] + 10.0 * rows["loss"]

    def unrolled(at: Any) -> Any:
        return 11.0 * (energy(t, SMOOTH, at) + energy(t, SMOOTH, 0.9 * at))

    at = sad.array(AT)
    gradient = sad.grad(total)(at)
    np.testing.assert_allclose(gradient.numpy(), sad.grad(unrolled)(at).numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    ("init", "new"), [(SMOOTH, SHARP), (SMOOTH, None), (None, 1.0), (1.0, None), ("a", "b")]
)
def test_carries_that_are_no_arrays_stay(device: sad.Device, init: Any, new: Any) -> None:
    with pytest.raises(sad.LanguageError, match="SR0333"):
        sad.fori_loop(2, lambda k, c: (c[0] + 1.0, new), (0.0, init))


def test_textures_are_captured_by_loops_and_not_carried(device: sad.Device) -> None:
    t = sad.texture(PICTURE)
    with pytest.raises(sad.LanguageError, match="SR0402"):
        sad.fori_loop(2, lambda k, c: c, (0.0, {"t": t}))
    with pytest.raises(sad.LanguageError, match="SR0402"):
        sad.while_loop(lambda c: True, lambda c: c, t, 2)
    with pytest.raises(sad.LanguageError, match="SR0402"):
        sad.loop(lambda c, x: (c, 0.0), 0.0, t)
    with pytest.raises(sad.LanguageError, match="SR0402"):
        sad.loop(lambda c, x: (c, t), 0.0, AT)


def test_batches_share_samplers(device: sad.Device) -> None:
    t = sad.texture(PICTURE)
    batch = sad.vmap(lambda s, at: (look(t, s, at, dim=2), s))
    values, sampler = batch(SMOOTH, np.stack([AT, 0.5 * AT]))
    assert sampler == SMOOTH
    for row, at in zip(values.numpy(), (AT, 0.5 * AT), strict=True):
        np.testing.assert_allclose(row, look(t, SMOOTH, at, dim=2).numpy(), rtol=1e-5)
    with pytest.raises(sad.LanguageError, match="SR0332"):
        sad.map(lambda x: (x, SMOOTH), AT)
