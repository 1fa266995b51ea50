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
FLOAT32 = 2e-3
"""Relative to the largest: barycentric coordinates are quotients of small differences."""
STEP = 1e-6

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(scope="module")
def position_fit(mesh_sample: SimpleNamespace, device: sad.Device) -> Any:
    return mesh_sample.fit.PositionFit(SIZE)


class Oracle:
    """The error of the start in float64, with the triangles that the device found in each pixel."""

    def __init__(self, fit: Any, sample: SimpleNamespace) -> None:
        self.corners, self.colors = fit._corners.numpy(), fit._true.colors.numpy().astype(float)
        self.views, self.count = [], 0
        arrays = (fit.views, fit._plain_targets.numpy(), fit._outlined.numpy())
        for camera, target, outlined in zip(*arrays, strict=True):
            weight, shown = self._found(fit, sample, camera)
            pixels = np.nonzero(weight * outlined)
            self.count += len(pixels[0])
            faces = self.corners[shown[pixels]]
            eye, rays = self._rays(camera, pixels, len(shown))
            self.views.append((eye, rays, faces, target[pixels].astype(float)))

    @staticmethod
    def _found(fit: Any, sample: SimpleNamespace, camera: Any) -> Any:
        surface = sample.kernels.Surface(fit._corners, fit._start)
        shape, count = (fit.size, fit.size), fit.triangle_count
        depth = sample.kernels.depths(surface, camera, dim=count, shapes={"depth": shape})
        shown = sample.kernels.faces(surface, camera, depth, dim=count, shapes={"shown": shape})
        jump = sample.position_steps.JUMP
        return sample.position_steps.inside(depth, jump, dim=shape).numpy(), shown.numpy()

    @staticmethod
    def _rays(camera: Any, pixels: Any, size: int) -> tuple[Floats, Floats]:
        right, up, forward, eye = (
            np.float64(getattr(camera, name)) for name in ("right", "up", "forward", "eye")
        )
        y, x = ((2 * (p[:, None] + 0.5) / size - 1) / camera.focal for p in pixels)
        return eye, forward + right * x - up * y

    def errors(self, positions: Floats, outlier: float) -> tuple[float, float]:
        """The sum that is descended, and the mean of squares."""
        robust = square = 0.0
        for eye, rays, faces, target in self.views:
            a, b, c = np.moveaxis(positions[faces] - eye, 1, 0)
            # Volumes of ray and edges: barycentric coordinates but for their sum.
            volumes = [np.cross(p, q) for p, q in ((b, c), (c, a), (a, b))]
            weight = np.stack([(rays * one).sum(1) for one in volumes], 1)
            weight /= weight.sum(1, keepdims=True)
            miss = np.einsum("nk,nkc->nc", weight, self.colors[faces]) - target
            e = (miss**2).sum(1)
            robust, square = robust + (e / (1 + e / outlier**2)).sum(), square + e.sum()
        return robust, square / (3 * self.count)


def test_gradient_by_positions_matches_differences_in_float64(
    position_fit: Any, mesh_sample: SimpleNamespace
) -> None:
    position_fit.reset()
    position_fit.step()
    oracle, draw = Oracle(position_fit, mesh_sample), np.random.default_rng(8)
    outlier = mesh_sample.position_steps.OUTLIER
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


def test_a_pixel_has_the_gradients_of_finite_differences_by_positions(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    kernels, shape = mesh_sample.kernels, (6, 6)
    corners = sad.array(np.array([[0, 1, 2], [1, 3, 2]]), dtype=sad.int3)
    start = np.float32([[-1, -1, 0], [1, -1, 0.2], [-1, 1, 0.1], [1, 1, -0.1]])
    colors = sad.array(np.random.default_rng(2).random((4, 3)), dtype=float3)
    camera = mesh_sample.scene.orbit(0.2, 0.1, distance=6.0)
    positions = sad.array(start, dtype=float3)
    hits = mesh_sample.steps.rasterised(kernels.Surface(corners, positions), camera, shape)
    shown = sad.array(hits.numpy()["face"], dtype=int)
    assert (shown.numpy() < 2).sum() > 10

    def painted(positions: Any) -> Any:
        hits = kernels.locate(kernels.Surface(corners, positions), camera, shown, dim=shape)
        mesh = kernels.Mesh(corners, colors, colors)
        return mesh_sample.position_steps.paint(mesh, hits, dim=shape)

    sad.gradcheck(painted, positions)


def test_vertices_come_back_to_where_they_belong(position_fit: Any) -> None:
    position_fit.reset()
    assert position_fit.vertex_error().now == position_fit.vertex_error().start
    losses = []
    for _ in range(70):
        position_fit.step()
        losses.append(position_fit.loss())
    assert losses[-1] < losses[0] / 300
    now, start = position_fit.vertex_error()
    assert start > 0.04
    assert now < start / 8
    seen = position_fit._seen_twice
    assert 0.5 < seen.mean() < 1.0


def test_pictures_of_nothing_but_outlines_move_no_vertex(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    fit = mesh_sample.fit.PositionFit(2)
    fit.step()
    np.testing.assert_array_equal(fit._fitted.numpy(), fit._start.numpy())
    assert np.isnan(fit.loss())


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


def test_outlines_count_for_nothing(mesh_sample: SimpleNamespace, device: sad.Device) -> None:
    depth = np.full((7, 7), np.inf)
    depth[1:6, 1:5], depth[1:6, 5:] = 2.0, 2.5
    array = sad.array(depth)
    weight = mesh_sample.position_steps.inside(array, 0.1, dim=(7, 7)).numpy()
    wanted = np.zeros((7, 7))
    wanted[2:5, 2:4] = 1
    np.testing.assert_array_equal(weight, wanted)
    weight = mesh_sample.position_steps.inside(array, 1.0, dim=(7, 7)).numpy()
    wanted[2:5, 2:6] = 1
    np.testing.assert_array_equal(weight, wanted)


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
    assert len(submitted) == 3
    assert position_fit.loss() < first


def test_the_page_goes_down_as_the_fit_does(position_fit: Any) -> None:
    page = module_of(FOLDER / "web" / "prepare.py").FITS["positions"]
    assert page["scheduled"] == position_fit.COARSE
    position_fit.reset()
    for k, done in enumerate((0, position_fit.COARSE)):
        position_fit.steps_done = done
        *_, stiffness, lr = position_fit.arguments()
        told = {"lr": pytest.approx(lr), "stiffness": pytest.approx(stiffness)}
        assert {name: ends[k] for name, ends in page["schedule"].items()} == told
    position_fit.reset()


@pytest.mark.slow
def test_the_step_is_built_for_a_browser(mesh_sample: SimpleNamespace, tmp_path: Path) -> None:
    sad.build(FOLDER / "position_steps.py", tmp_path, targets="wgsl")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (step,) = [one for one in manifest["entries"] if one["name"] == "position_step"]
    assert step["targets"]["wgsl"]["primal"]
