"""The mesh sample's fit of positions on small pictures: its gradient, how far it comes, a build."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.runtime import base
from tests.samples.conftest import FOLDER
from tests.samples.loading import module_of

pytestmark = pytest.mark.gpu

SIZE = 64
OUTLINE = 0.1
"""Of a derivative, against a difference over pixels that outlines enter and leave."""


@pytest.fixture(scope="module")
def position_fit(mesh_sample: SimpleNamespace, device: sad.Device) -> Any:
    return mesh_sample.fit.PositionFit(SIZE)


def test_clip_space_has_vertices_where_pictures_show_them(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    camera = mesh_sample.scene.orbit(0.2, 0.1)
    points = np.random.default_rng(2).uniform(-1, 1, (9, 3)).astype(np.float32)
    positions = sad.array(points, dtype=float3)
    views = sad.array(mesh_sample.scene.together([camera]), dtype=mesh_sample.kernels.Camera)
    found = mesh_sample.kernels.project(views, positions, dim=(1, 9)).numpy()[0]
    away = points - camera.eye
    depth = away @ camera.forward
    across = np.stack([away @ camera.right, away @ camera.up], 1) * camera.focal / depth[:, None]
    np.testing.assert_allclose(found[:, :2] / found[:, 3:], across, atol=1e-5)
    np.testing.assert_allclose(found[:, 3], depth, rtol=1e-5)
    assert ((found[:, 2] > 0) & (found[:, 2] < found[:, 3])).all()
    sad.gradcheck(lambda p: mesh_sample.kernels.project(views, p, dim=(1, 9)), positions)


def test_outlines_alone_tell_how_far_a_mesh_of_one_colour_is_off(
    position_fit: Any, mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    fit, steps = position_fit, mesh_sample.position_steps
    grey = sad.array(np.full((fit.vertex_count, 3), 0.5), dtype=float3)
    corners, true, views = fit._corners, fit._true.positions, fit._cameras
    targets, _ = steps.watched(corners, true, grey, views, fit._canvas)

    @sad.graph
    def error(shift: Any) -> Any:
        found, _ = steps.seen(corners, true + shift, grey, views, targets.shape[1:])
        return sad.sum(sad.dot(found - targets, found - targets))

    shift, step = np.float32([0.01, 0.02, -0.01]), 0.01
    found = sad.grad(error)(sad.array(shift, dtype=float3)).numpy()
    around = [shift + sign * axis for axis in step * np.eye(3) for sign in (1, -1)]
    errors = np.reshape([float(error(sad.array(x, dtype=float3))) for x in around], (3, 2))
    expected = (errors[:, 0] - errors[:, 1]) / (2 * step)
    assert np.linalg.norm(found - expected) < OUTLINE * np.linalg.norm(expected)


def test_vertices_come_back_to_where_they_belong(position_fit: Any) -> None:
    position_fit.reset()
    assert position_fit.vertex_error().now == position_fit.vertex_error().start
    losses = []
    for _ in range(70):
        position_fit.step()
        losses.append(position_fit.loss())
    assert losses[-1] < losses[0] / 200
    now, start = position_fit.vertex_error()
    assert start > 0.04
    assert now < start / 8
    seen = position_fit._seen_twice
    assert 0.5 < seen.mean() < 1.0


def test_smoothing_solves_for_what_a_mesh_resists(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    """On a tetrahedron few sweeps are enough to solve for it."""
    corners = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    rough = np.random.default_rng(5).normal(size=(4, 3))
    table = mesh_sample.scene.neighbours_of(corners)
    np.testing.assert_array_equal(table, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])

    @sad.graph
    def smoothed(rough: Any, table: Any) -> Any:
        return mesh_sample.position_steps.smoothed(rough, table, 0.5)

    found = smoothed(sad.array(rough, dtype=float3), sad.array(table, dtype=int)).numpy()
    laplacian = 4 * np.eye(4) - np.ones((4, 4))
    np.testing.assert_allclose(
        found, np.linalg.solve(np.eye(4) + 0.5 * laplacian, rough), atol=1e-5
    )


def test_a_step_of_six_views_is_one_submission_and_reads_nothing(
    position_fit: Any, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    position_fit.reset()
    position_fit.step()
    first = position_fit.loss()
    submitted: list[int] = []
    submit = device.runtime.submit
    # What is due after many dispatches comes at the end of a step, and `wait` adds an empty one.
    monkeypatch.setattr(base, "DISPATCHES_A_SUBMISSION", 1 << 20)
    monkeypatch.setattr(device.runtime, "submit", lambda: (submitted.append(1), submit()))
    with monkeypatch.context() as patch:
        patch.setattr(device.runtime, "read", None)
        for _ in range(3):
            position_fit.step()
            device.runtime.wait()
    # One more where a number of the next step goes into a buffer that recorded commands read.
    assert len(submitted) in (3, 4)
    assert position_fit.loss() < first


def test_the_page_goes_down_as_the_fit_does(position_fit: Any) -> None:
    page = module_of(FOLDER / "web" / "prepare.py").FITS["positions"]
    assert page["scheduled"] == position_fit.COARSE
    position_fit.reset()
    for k, done in enumerate((0, position_fit.COARSE)):
        position_fit.steps_done = done
        *_, stiffness, outlier, lr = position_fit.arguments()
        told = {"lr": lr, "stiffness": stiffness, "outlier": outlier}
        assert {name: ends[k] for name, ends in page["schedule"].items()} == pytest.approx(told)
    position_fit.reset()


@pytest.mark.slow
def test_the_step_is_built_for_a_browser(mesh_sample: SimpleNamespace, tmp_path: Path) -> None:
    sad.build(FOLDER / "position_steps.py", tmp_path, targets="wgsl")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (step,) = [one for one in manifest["entries"] if one["name"] == "position_step"]
    assert step["targets"]["wgsl"]["primal"]
