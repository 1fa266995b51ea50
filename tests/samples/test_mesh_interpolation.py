"""The mesh sample on a small picture: its gradient, its fit, its pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from tests.samples.loading import SAMPLES

pytestmark = pytest.mark.gpu

FOLDER = SAMPLES / "mesh_interpolation"
SHADES = 0.5
"""Of 255, on average: six steps of the fit are shown, not twenty."""
FLOAT32_SUMS = 1e-5
"""Relative to the largest: a few hundred float32 terms, added in any order."""


@pytest.fixture
def problem(mesh_sample: ModuleType, device: sad.Device) -> object:
    """A coarse knot in a picture of 64 x 64 samples."""
    scene = sys.modules["scene"]
    knot = scene.torus_knot(60, 8)
    return mesh_sample.Problem(knot, scene.view_of(knot, 64))


def reference(problem, colors: np.ndarray) -> tuple[float, np.ndarray]:
    """Error and gradient in float64, from what is on the device."""
    samples = problem.samples.numpy()
    uv, light = samples["uv"].astype(np.float64), samples["light"].astype(np.float64)
    corner = problem.corners.numpy()[samples["face"]]
    weight = np.stack([1 - uv.sum(1), uv[:, 0], uv[:, 1]], 1)
    color = light * np.einsum("nk,nkc->nc", weight, colors[corner])
    miss = color - problem.target.numpy()
    gradient = np.zeros(colors.shape)
    np.add.at(gradient, corner, 2 * (light * miss)[:, None] * weight[..., None])
    return float((miss**2).sum()), gradient


def test_gradient_by_the_vertex_colours_matches_float64(problem) -> None:
    colors = np.random.default_rng(1).random((problem.vertex_count, 3)).astype(np.float32)
    error, gradient = problem.error_and_gradient(colors)
    wanted_error, wanted = reference(problem, colors.astype(np.float64))
    assert error == pytest.approx(wanted_error, rel=FLOAT32_SUMS)
    assert np.abs(gradient - wanted).max() <= FLOAT32_SUMS * np.abs(wanted).max()


def test_vertices_that_no_sample_shows_keep_their_colour(problem, mesh_sample) -> None:
    seen = np.zeros(problem.vertex_count, bool)
    seen[problem.corners.numpy()[problem.samples.numpy()["face"]]] = True
    assert not seen.all()
    np.testing.assert_array_equal(mesh_sample.fit(problem, 3)[~seen], 0.5)


def test_error_falls_at_every_plain_step(problem) -> None:
    step_sizes = problem.step_sizes()
    colors = np.full((problem.vertex_count, 3), 0.5, np.float32)
    errors = []
    for _ in range(6):
        error, gradient = problem.error_and_gradient(colors)
        errors.append(error)
        colors = colors - step_sizes * gradient
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]


def test_pictures_show_the_fit_close_to_the_target(
    mesh_sample: ModuleType, device: sad.Device, tmp_path: Path
) -> None:
    scene = sys.modules["scene"]
    knot = scene.torus_knot(200, 24)
    problem = mesh_sample.Problem(knot, scene.view_of(knot, 64))
    mesh_sample.write_pictures(problem, mesh_sample.fit(problem, 40), tmp_path)
    shown = {p.stem: np.asarray(Image.open(p)).astype(int) for p in tmp_path.glob("*.png")}
    assert set(shown) == {"start", "gradient", "fit", "target", "overview"}
    assert shown["overview"].shape == (32, 4 * 32, 3)

    def distance(a: str, b: str) -> float:
        return np.abs(shown[a] - shown[b]).mean()

    assert distance("fit", "target") < 0.25 * distance("start", "target")


def test_each_sample_shows_the_nearest_triangle(mesh_sample: ModuleType) -> None:
    scene = sys.modules["scene"]
    near, far = [[0, 0], [8, 0], [0, 8]], [[0, 0], [8, 0], [8, 8]]
    screen = np.array([far, near], float)
    depth = np.array([[2.0] * 3, [1.0] * 3])
    sample, face, uv = scene._visible(screen, depth, 8)
    shown = np.full(64, -1)
    shown[sample] = face
    shown = shown.reshape(8, 8)
    assert shown[0, 0] == 1  # both cover it, and the second is nearer
    assert shown[3, 6] == 0  # only the first covers it
    assert shown[7, 1] == -1
    weights = np.stack([1 - uv.sum(1), *uv.T], 1)
    at = np.einsum("nk,nkc->nc", weights, screen[face])
    np.testing.assert_allclose(at, np.stack([sample % 8 + 0.5, sample // 8 + 0.5], 1))


@pytest.mark.slow
def test_the_command_builds_the_kernels_and_writes_the_pictures(
    mesh_sample: ModuleType, device: sad.Device, tmp_path: Path
) -> None:
    runtime = device.capabilities.runtime
    mesh_sample.main(["--runtime", runtime, "--out", str(tmp_path), "--steps", "6"])
    assert len(list(tmp_path.glob("*.png"))) == 5
    manifest = json.loads((tmp_path / "build/manifest.json").read_text())
    assert [kernel["name"] for kernel in manifest["kernels"]] == ["shade", "squared_error"]
    for kernel in manifest["kernels"]:
        for target in ("spirv", "hlsl", "wgsl"):
            for mode in ("primal", "backward"):
                (entry,) = kernel["targets"][target][mode]
                assert (tmp_path / "build" / entry["file"]).stat().st_size
    fit = np.asarray(Image.open(tmp_path / "overview.png")).astype(int)
    expected = np.asarray(Image.open(FOLDER / "expected.png")).astype(int)
    assert fit.shape == expected.shape
    assert np.abs(fit - expected).mean() < SHADES
