"""The rasteriser of the mesh sample against brute force in NumPy: every triangle at every pixel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, int3

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, Any]

NO_FACE = 2**31 - 1
SIZE = 40
DEPTH = 2e-5
"""Relative: float32, and triangles seen at a grazing angle."""
PLACES = 1e-3
"""Of a triangle's extent, seen at any angle."""
EDGE = 1e-3
"""Pixels closer to an edge, in barycentric coordinates, may fall on either side."""


class Seen(NamedTuple):
    """What brute force finds at each pixel."""

    face: Array
    depth: Array
    weights: Array
    is_certain: Array
    """Neither at an edge nor where two triangles are about as near."""


def brute_force(positions: Array, corners: Array, camera: Any, size: int) -> Seen:
    """Edge functions on the screen, corrected for perspective, in float64."""
    frame = np.stack([camera.right, -camera.up, camera.forward], 1)
    local = (positions - camera.eye) @ frame
    z = local[:, 2]
    screen = (1 + camera.focal * local[:, :2] / z[:, None]) * (size / 2)
    a, b, c = np.moveaxis(screen[corners], 1, 0)[:, :, None, None]
    y, x = np.mgrid[:size, :size] + 0.5
    at = np.stack([x, y], -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        on_screen = np.stack([cross(b - at, c - at), cross(c - at, a - at), cross(a - at, b - at)])
        on_screen /= on_screen.sum(0)
        weights = on_screen / z[corners].T[:, :, None, None]
        nearness = weights.sum(0)
        weights /= nearness
    in_front = (z[corners] > 1e-3).all(1)[:, None, None]
    inside = (weights >= 0).all(0) & in_front
    depth = np.where(inside, 1 / np.where(inside, nearness, 1), np.inf)
    order = np.sort(depth, 0)
    is_clear = (order[0] == np.inf) | (order[1] > order[0] * (1 + 1e-4))
    at_edge = (np.abs(np.nan_to_num(weights, nan=1)).min(0) < EDGE) & in_front
    hit = order[0] < np.inf
    face = np.where(hit, depth.argmin(0), NO_FACE)
    picked = np.where(hit, face, 0)
    return Seen(
        face,
        order[0],
        np.take_along_axis(weights, picked[None, None], 1)[:, 0],
        is_clear & ~at_edge.any(0),
    )


def cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def rasterised(
    sample: SimpleNamespace, positions: Array, corners: Array, camera: Any, size: int
) -> tuple[Array, Array, Array]:
    """Faces, depths, and where in the faces."""
    k = sample.kernels
    surface = k.Surface(sad.array(corners, dtype=int3), sad.array(positions, dtype=float3))
    n, shape = len(corners), (size, size)
    depth = k.depths(surface, camera, dim=n, shapes={"depth": shape})
    shown = k.faces(surface, camera, depth, dim=n, shapes={"shown": shape})
    hits = k.locate(surface, camera, shown, dim=shape).numpy()
    np.testing.assert_array_equal(hits["face"], shown.numpy())
    return shown.numpy(), depth.numpy(), hits["uv"]


def check(
    sample: SimpleNamespace, positions: Array, corners: Array, camera: Any, size: int = SIZE
) -> Seen:
    wanted = brute_force(positions.astype(np.float64), corners, camera, size)
    face, depth, uv = rasterised(sample, positions, corners, camera, size)
    sure = wanted.is_certain
    np.testing.assert_array_equal(face[sure], wanted.face[sure])
    hit = sure & (wanted.face != NO_FACE)
    np.testing.assert_allclose(depth[hit], wanted.depth[hit], rtol=DEPTH)
    np.testing.assert_allclose(uv[hit].T, wanted.weights[1:, hit], atol=PLACES)
    np.testing.assert_array_equal(np.isinf(depth), face == NO_FACE)
    return wanted


def facing(sample: SimpleNamespace, distance: float = 3.0) -> Any:
    """A camera on the z axis that looks along it."""
    x, y, z = np.eye(3)
    return sample.kernels.Camera(eye=-distance * z, right=x, up=y, forward=z, focal=2.0)


def test_each_pixel_shows_the_nearest_of_many_triangles(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    draw = np.random.default_rng(5)
    middle = draw.uniform(-1.2, 1.2, (60, 1, 3))
    positions = (middle + draw.normal(0, 0.4, (60, 3, 3))).reshape(-1, 3).astype(np.float32)
    corners = np.arange(180).reshape(60, 3)
    camera = mesh_sample.scene.orbit(1.0, -0.4)
    seen = check(mesh_sample, positions, corners, camera)
    assert len(np.unique(seen.face[seen.is_certain])) > 20
    assert (seen.face[seen.is_certain] == NO_FACE).any()


def test_triangles_that_come_too_near_are_left_out_wholly(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    ahead = np.float32([[-1, -1, 0], [1, -1, 0], [0, 1, 0]])
    through = np.float32([[-1, -1, -4], [1, -1, -4], [0, 1, 2]])
    behind = ahead - np.float32([0, 0, 9])
    positions = np.concatenate([through, behind, ahead])
    corners = np.arange(9).reshape(3, 3)
    seen = check(mesh_sample, positions, corners, facing(mesh_sample))
    assert set(np.unique(seen.face)) == {2, NO_FACE}


def test_triangles_without_area_show_nowhere(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    line = np.float32([[-1, -1, -1], [1, 1, -1], [0, 0, -1]])
    point = np.zeros((3, 3), np.float32)
    edge_on = np.float32([[0, -1, -1], [0, 1, -1], [0, 0, 3]])
    ordinary = np.float32([[-1, -1, 0], [1, -1, 0], [0, 1, 0]])
    positions = np.concatenate([line, point, edge_on, ordinary])
    corners = np.arange(12).reshape(4, 3)
    face, depth, _ = rasterised(mesh_sample, positions, corners, facing(mesh_sample), 33)
    alone = rasterised(mesh_sample, ordinary, corners[:1], facing(mesh_sample), 33)
    np.testing.assert_array_equal(face == 3, alone[0] == 0)
    np.testing.assert_array_equal(depth, alone[1])


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_shared_edges_leave_no_holes(
    tilt: float, mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    """A grid whose edges, seen from the front, run through the middles of pixels."""
    side, size = 9, 32
    at = np.linspace(-1, 1, side)
    x, y = np.meshgrid(at, at)
    positions = np.stack([x, y, tilt * x], -1).reshape(-1, 3).astype(np.float32)
    first = np.arange(side * side).reshape(side, side)[:-1, :-1].reshape(-1, 1)
    quads = np.array([[0, 1, side], [1, side + 1, side]])
    corners = (first + quads[:, None]).reshape(-1, 3)
    # A quad is 4 pixels wide, and the first edge half a pixel off.
    shift = np.float32([1 / size, 1 / size, 0])
    camera = facing(mesh_sample)
    face, depth, _ = rasterised(mesh_sample, 1.5 * (positions + shift), corners, camera, size)
    covered = slice(4, -4)
    assert (face[covered, covered] != NO_FACE).all()
    assert np.isfinite(depth[covered, covered]).all()


def test_the_closed_mesh_has_no_holes(mesh_sample: SimpleNamespace, device: sad.Device) -> None:
    model = mesh_sample.scene.spot(0)
    size = 160
    camera = mesh_sample.scene.orbit(0.4)
    face, _, _ = rasterised(mesh_sample, model.positions, model.corners, camera, size)
    shown = face != NO_FACE
    around = shown[:-2, 1:-1] & shown[2:, 1:-1] & shown[1:-1, :-2] & shown[1:-1, 2:]
    assert shown[1:-1, 1:-1][around].all()
    # Of a closed mesh a camera sees what faces it.
    a, b, c = np.moveaxis(model.positions[model.corners[face[shown]]], 1, 0)
    away = np.einsum("nk,nk->n", np.cross(b - a, c - a), a - camera.eye) > 0
    assert away.mean() < 1e-3


def test_a_camera_that_looks_away_sees_nothing(
    mesh_sample: SimpleNamespace, device: sad.Device
) -> None:
    model = mesh_sample.scene.spot(0)
    camera = facing(mesh_sample, distance=-9.0)
    face, depth, _ = rasterised(mesh_sample, model.positions, model.corners, camera, 8)
    assert (face == NO_FACE).all()
    assert np.isinf(depth).all()
