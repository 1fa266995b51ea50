"""The mesh sample's fit of positions on small pictures: its gradient, how far it comes, a build."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, render
from shaderad.render.kernels import silhouettes
from shaderad.runtime import base
from tests.samples.conftest import FOLDER
from tests.samples.loading import module_of

pytestmark = pytest.mark.gpu

SIZE = 64
FLOAT32 = 2e-3
"""Relative to the largest: barycentric coordinates are quotients of small differences."""
STEP = 1e-6
OUTLINE = 0.1
"""Of a derivative, against a difference over pixels that outlines enter and leave."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(scope="module")
def position_fit(mesh_sample: SimpleNamespace, device: sad.Device) -> Any:
    return mesh_sample.fit.PositionFit(SIZE)


class Oracle:
    """The fit's error in float64, with the triangles and outlines that the device finds at start.

    Those have no derivative, in the fit as here.
    """

    def __init__(self, fit: Any, project: Any) -> None:
        self.corners, self.colors = fit._corners.numpy(), np.float64(fit._true.colors.numpy())
        self.cameras, self.targets = fit.views, np.float64(fit._plain_targets.numpy())
        clip = project(fit._cameras, fit._start, dim=(len(fit.views), fit.vertex_count))
        fragments = render.rasterize(clip, fit._corners, (fit.size, fit.size))
        mates, self.face = render.adjacency(fit._corners), fragments.face.numpy()
        found = (
            silhouettes.find_outlines(
                clip,
                fit._corners,
                mates,
                fragments.face,
                fragments.depth,
                down,
                dim=self.face.shape,
            )
            for down in (0, 1)
        )
        self.outlines = [one.numpy() for one in found]

    def errors(self, positions: Floats, outlier: float) -> tuple[float, float]:
        """The error that is descended, and the mean of squares."""
        found = np.stack([self._picture(positions, view) for view in range(len(self.cameras))])
        square, count = ((found - self.targets) ** 2).sum(-1), (self.face >= 0).sum()
        robust = square / (1 + square / outlier**2)
        return robust.sum() / count, square.sum() / (3 * count)

    def _picture(self, positions: Floats, view: int) -> Floats:
        camera, face = self.cameras[view], self.face[view]
        axes = [np.float64(getattr(camera, name)) for name in ("right", "up", "forward")]
        away = positions - np.float64(camera.eye)
        right, up, depth = (away @ axis for axis in axes)
        seen = np.stack([camera.focal * right, camera.focal * up, depth], -1)
        y, x = np.mgrid[0 : len(face), 0 : len(face)]
        rays = np.stack([2 * (x + 0.5) / len(face) - 1, 1 - 2 * (y + 0.5) / len(face)], -1)
        rays = np.concatenate([rays, np.ones((*face.shape, 1))], -1)
        # Volumes of ray and edges: barycentric coordinates but for their sum.
        a, b, c = np.moveaxis(seen[self.corners[face]], -2, 0)
        volumes = [(rays * np.cross(p, q)).sum(-1) for p, q in ((b, c), (c, a), (a, b))]
        weight = np.stack(volumes, -1) / np.sum(volumes, 0)[..., None]
        color = np.einsum("yxk,yxkc->yxc", weight, self.colors[self.corners[face]])
        color[face < 0] = 0
        mixed = color.copy()
        for down, outlines in enumerate(self.outlines):
            y, x = np.nonzero(outlines[view, :, :, 0] >= 0)
            across = np.cross(*np.moveaxis(seen[outlines[view, y, x]], -2, 0))
            other = y + down, x + 1 - down
            here, there = ((rays[at] * across).sum(-1) for at in ((y, x), other))
            share = np.clip(here / (here - there), 0, 1)[:, None] - 0.5
            change = color[y, x] - color[other]
            np.add.at(mixed, other, np.maximum(share, 0) * change)
            np.add.at(mixed, (y, x), np.minimum(share, 0) * change)
        return mixed


def test_gradient_by_positions_matches_differences_in_float64(
    position_fit: Any, mesh_sample: SimpleNamespace
) -> None:
    position_fit.reset()
    oracle, draw = Oracle(position_fit, mesh_sample.kernels.project), np.random.default_rng(8)
    *_, outlier, _ = position_fit.arguments()
    position_fit.step()
    start = position_fit._start.numpy().astype(np.float64)
    found = position_fit._gradient.numpy()
    assert position_fit.loss() == pytest.approx(oracle.errors(start, outlier)[1], rel=1e-3)

    by_size = np.argsort(np.abs(found), axis=None)
    places = np.concatenate([by_size[-12:], draw.choice(by_size, 12)])
    wanted = []
    for place in places:
        ahead, behind = start.copy(), start.copy()
        ahead.flat[place] += STEP
        behind.flat[place] -= STEP
        up, down = (oracle.errors(p, outlier)[0] for p in (ahead, behind))
        wanted.append((up - down) / (2 * STEP))
    np.testing.assert_allclose(found.flat[places], wanted, atol=FLOAT32 * abs(found).max())


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
    # What is left is at outlines: their coverage is that of straight edges between pixels.
    assert losses[-1] < losses[0] / 200
    now, start = position_fit.vertex_error()
    assert start > 0.04
    assert now < start / 16
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
    monkeypatch.setattr(base, "DISPATCHES_PER_SUBMISSION", 1 << 20)
    submit()  # says after how many dispatches the next is due
    monkeypatch.setattr(device.runtime, "submit", lambda: (submitted.append(1), submit()))
    with monkeypatch.context() as patch:
        patch.setattr(device.runtime, "read", None)
        for _ in range(3):
            position_fit.step()
            device.runtime.wait()
    assert len(submitted) == 3
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
