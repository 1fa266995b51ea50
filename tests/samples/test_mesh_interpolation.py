"""The mesh sample on small pictures: its gradients, its fit, what a step submits, its pictures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.runtime import base

pytestmark = pytest.mark.gpu

SIZE = 48
FLOAT32_SUMS = 2e-5
"""Relative to the largest: a few hundred float32 terms, added in any order."""


@pytest.fixture(scope="module")
def color_fit(mesh_sample: SimpleNamespace, device: sad.Device) -> Any:
    """A fit of the coarse mesh, in a small picture."""
    return mesh_sample.fit.ColorFit(SIZE, subdivisions=0)


def test_gradient_by_colours_matches_float64(color_fit: Any) -> None:
    """The error is quadratic in them: pictures of two colourings say what it must be."""
    color_fit.reset()
    color_fit.step()
    hits, corners = color_fit._hits.numpy(), color_fit._corners.numpy()
    shown = hits["face"] < len(corners)
    start, target = (color_fit.picture(x).numpy().astype(np.float64) for x in ("start", "target"))
    light = start[shown] / 0.5  # Grey, lit.
    uv = hits["uv"][shown].astype(np.float64)
    weight = np.stack([1 - uv.sum(1), *uv.T], 1)
    miss = (start - target)[shown]
    wanted = np.zeros((len(color_fit._start), 3))
    np.add.at(wanted, corners[hits["face"][shown]], (2 * light * miss)[:, None] * weight[..., None])
    wanted /= 3 * shown.sum()
    assert color_fit.loss() == pytest.approx((miss**2).mean(), rel=FLOAT32_SUMS)
    found = color_fit._gradient.numpy()
    assert np.abs(found - wanted).max() <= FLOAT32_SUMS * np.abs(wanted).max()


def test_colours_come_back_from_their_picture(color_fit: Any, mesh_sample: SimpleNamespace) -> None:
    color_fit.reset()
    losses = []
    for _ in range(60):
        color_fit.step()
        losses.append(color_fit.loss())
    assert color_fit.steps_done == 60
    assert mesh_sample.fit.psnr(losses[0]) < 20
    assert mesh_sample.fit.psnr(losses[-1]) > 38
    assert mesh_sample.fit.psnr(min(losses[:20])) < mesh_sample.fit.psnr(min(losses[20:40]))
    error = color_fit.picture("difference").numpy()
    assert (error**2).mean() < losses[-1]


def test_normals_are_found_by_the_light(mesh_sample: SimpleNamespace, device: sad.Device) -> None:
    fit = mesh_sample.fit.NormalFit(SIZE, subdivisions=0)
    fit.step()
    assert mesh_sample.fit.psnr(fit.loss()) < 16
    for _ in range(59):
        fit.step()
    assert mesh_sample.fit.psnr(fit.loss()) > 34
    assert (fit.picture("difference").numpy() ** 2).mean() < fit.loss()
    # What the light told is closer to the truth than what nobody told.
    shown = fit._hits.numpy()["face"]
    seen = np.unique(fit._corners.numpy()[shown[shown < fit.triangle_count]])
    found, start, true = (x.numpy()[seen] for x in (fit._fitted, fit._start, fit._true.normals))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    assert (found * true).sum(1).mean() > (start * true).sum(1).mean() + 0.1


def test_vertices_that_no_pixel_shows_keep_their_colour(color_fit: Any) -> None:
    color_fit.reset()
    for _ in range(3):
        color_fit.step()
    hits, corners = color_fit._hits.numpy(), color_fit._corners.numpy()
    seen = np.zeros(len(color_fit._start), bool)
    seen[corners[hits["face"][hits["face"] < len(corners)]]] = True
    assert not seen.all()
    colors = color_fit._fitted.numpy()
    np.testing.assert_array_equal(colors[~seen], 0.5)
    assert (colors[seen] != 0.5).any(1).mean() > 0.95


def test_a_perfect_fit_has_no_noise(mesh_sample: SimpleNamespace) -> None:
    assert mesh_sample.fit.psnr(0.01) == pytest.approx(20.0)
    assert mesh_sample.fit.psnr(0.0) == np.inf


def test_an_error_of_nothing_is_no_perfect_fit(mesh_sample: SimpleNamespace) -> None:
    assert np.isnan(mesh_sample.fit.psnr(np.nan))


def test_a_fit_begins_anew_on_its_own_device_and_without_a_gradient(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    with sad.open_device(device.capabilities.runtime) as own:
        fit = mesh_sample.fit.ColorFit(8, subdivisions=0)
        fit.step()
        with device:
            fit.reset()
        assert fit._loss.device is own
        assert not fit._gradient.numpy().any()
        assert fit.loss() == np.inf


def test_a_step_is_one_submission_and_reads_nothing(
    color_fit: Any, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    color_fit.reset()
    color_fit.step()
    first = color_fit.loss()
    submitted: list[int] = []
    submit = device.runtime.submit
    # What is due after many dispatches comes at the end of a step, and `wait` adds an empty one.
    monkeypatch.setattr(base, "DISPATCHES_PER_SUBMISSION", 1 << 20)
    monkeypatch.setattr(device.runtime, "submit", lambda: (submitted.append(1), submit()))
    with monkeypatch.context() as patch:
        patch.setattr(device.runtime, "read", None)
        for _ in range(2):
            color_fit.step()
            device.runtime.wait()
    assert len(submitted) == 2
    assert color_fit.loss() < first


def test_the_learning_rate_changes_without_another_trace(
    color_fit: Any, mesh_sample: SimpleNamespace
) -> None:
    moved = []
    for lr in (0.01, 0.03):
        color_fit.reset()
        color_fit.lr = lr
        color_fit.step()
        moved.append(np.abs(color_fit._fitted.numpy() - 0.5).max())
    # The first step of Adam is as long as the rate.
    np.testing.assert_allclose(moved, [0.01, 0.03], rtol=1e-4)


def test_pictures_show_what_they_are_called(color_fit: Any, mesh_sample: SimpleNamespace) -> None:
    color_fit.reset()
    color_fit.lr = 0.05
    for _ in range(5):
        color_fit.step()
    shows = ("fit", "start", "target", "difference", "gradient")
    seen = {show: color_fit.picture(show).numpy() for show in shows}
    assert all(picture.shape == (SIZE, SIZE, 3) for picture in seen.values())
    np.testing.assert_allclose(seen["difference"], abs(seen["fit"] - seen["target"]), atol=1e-6)
    assert abs(seen["fit"] - seen["target"]).mean() < abs(seen["start"] - seen["target"]).mean()
    # Red is the first to glow: of black and white shades the channels would be equal.
    assert seen["gradient"][..., 0].mean() > 1.5 * seen["gradient"][..., 2].mean()
    turned = mesh_sample.scene.orbit(2.5)
    behind = {show: color_fit.picture(show, turned).numpy() for show in ("fit", "start", "target")}
    assert abs(behind["target"] - seen["target"]).mean() > 0.02
    # Most of what the fit never saw is as grey as it was.
    assert abs(behind["fit"] - behind["start"]).mean() < abs(seen["fit"] - seen["start"]).mean()


def test_shading_has_the_gradients_of_finite_differences(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    kernels, draw = mesh_sample.kernels, np.random.default_rng(3)
    corners = sad.array(np.array([[0, 1, 2], [1, 3, 2]]), dtype=sad.int3)
    positions = np.float32([[-1, -1, 0], [1, -1, 0.2], [-1, 1, 0.1], [1, 1, -0.1]])
    camera = mesh_sample.scene.orbit(0.2, 0.1, distance=6.0)
    surface = kernels.Surface(corners, sad.array(positions, dtype=float3))
    hits = mesh_sample.steps.rasterised(surface, camera, (6, 6))
    assert 10 < (hits.numpy()["face"] < 2).sum() < 36
    normals = np.array([0.3, 0.2, -1.0]) + draw.normal(0, 0.5, (4, 3))
    arrays = [sad.array(x, dtype=float3) for x in (normals, draw.random((4, 3)))]

    def shaded(normals: Any, colors: Any) -> Any:
        mesh = kernels.Mesh(corners, normals, colors)
        return kernels.shade(mesh, camera, hits, dim=(6, 6))

    sad.gradcheck(shaded, *arrays)


def test_a_mesh_behind_pointers_looks_the_same_and_has_the_same_gradients(
    color_fit: Any, mesh_sample: SimpleNamespace
) -> None:
    kernels, soup = mesh_sample.kernels, mesh_sample.soup
    corners, (_, normals, colors) = color_fit._corners, color_fit._true
    rest = (color_fit.views[0], color_fit._hits)
    mesh, apart = kernels.Mesh(corners, normals, colors), soup.soup_of(corners, normals, colors)
    seen, pullback = sad.vjp(kernels.shade, mesh, *rest, dim=(SIZE, SIZE))
    seen_apart, pullback_apart = sad.vjp(soup.shade_soup, apart, *rest, dim=(SIZE, SIZE))
    np.testing.assert_allclose(seen_apart.numpy(), seen.numpy(), rtol=1e-6)
    cotangent = np.random.default_rng(2).normal(size=(SIZE, SIZE, 3))
    by_mesh, by_soup = pullback(cotangent)[0], pullback_apart(cotangent)[0]
    for name in ("normals", "colors"):
        wanted, found = getattr(by_mesh, name).numpy(), np.zeros((len(normals), 3))
        by_triangle = getattr(by_soup, name).numpy()
        for k, corner in enumerate(("v0", "v1", "v2")):
            np.add.at(found, corners.numpy()[:, k], by_triangle[corner])
        assert abs(wanted).max() > 0
        assert np.abs(found - wanted).max() <= FLOAT32_SUMS * np.abs(wanted).max()


def test_a_fit_has_a_size_of_its_own(
    mesh_sample: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = mesh_sample.fit
    monkeypatch.setitem(fits.ATTRIBUTES, "colors", lambda size=7: size)
    assert (fits.fit_of("colors"), fits.fit_of("colors", 3)) == (7, 3)
