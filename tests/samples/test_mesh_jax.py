"""The colours of the mesh sample, fitted by optax's Adam through the same kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import shaderad as sad

jax = pytest.importorskip("jax", reason="JAX is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")

pytestmark = pytest.mark.gpu

SIZE = 48
STEPS = 60
SAME = 0.1
"""In dB of PSNR: roundings grow over the steps."""


def on_jax(x: sad.Array) -> Any:
    return jax.numpy.asarray(x.numpy())


def test_optax_fits_colours_as_well(mesh_sample: SimpleNamespace, device: sad.Device) -> None:
    fit = mesh_sample.fit.ColorFit(SIZE, subdivisions=0)
    for _ in range(STEPS):
        fit.step()
    shade = sad.jax.wrap(mesh_sample.kernels.shade)
    look, found = fit._true, fit._hits.numpy()
    hits = {name: jax.numpy.asarray(found[name]) for name in found.dtype.names}
    shown = (found["face"] < fit.triangle_count)[..., None]
    target, colors = on_jax(fit.picture("target")), on_jax(fit._start)
    corners, normals = on_jax(fit._corners), on_jax(look.normals)
    adam = optax.adam(fit.lr, b1=0.9, b2=0.99)

    def loss_of(colors: Any) -> Any:
        mesh = {"corners": corners, "normals": normals, "colors": colors}
        miss = shown * (shade(mesh, fit.views[0], hits) - target)
        return (miss**2).sum() / (3.0 * shown.sum())

    @jax.jit
    def step(colors: Any, state: Any) -> Any:
        loss, gradient = jax.value_and_grad(loss_of)(colors)
        updates, state = adam.update(gradient, state)
        return optax.apply_updates(colors, updates), state, loss

    state = adam.init(colors)
    for _ in range(STEPS):
        colors, state, loss = step(colors, state)
    psnr = mesh_sample.fit.psnr
    assert psnr(float(loss)) == pytest.approx(psnr(fit.loss()), abs=SAME)
