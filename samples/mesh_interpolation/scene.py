"""A torus knot, seen from a fixed camera: which triangle each picture sample shows, and its light.

Everything here is NumPy and happens once; the kernels get its arrays. Lengths are in units of the
knot's outer radius, angles in radians, colours linear and in 0..1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

TURN = 2.0 * np.pi
TUBE_RADIUS = 0.25
CAMERA_DISTANCE = 4.2
CAMERA_AIM = np.array([0.02, -0.04, 0.0])
FOCAL_LENGTH = 3.3
KEY_LIGHT = np.array([-0.45, 0.65, 0.61])
RIM_LIGHT = np.array([0.75, -0.15, -0.25])


@dataclass(frozen=True)
class Knot:
    """A closed tube, as a grid of `around` times `along` vertices whose edges are glued."""

    positions: Floats
    normals: Floats
    corners: Ints
    """Three vertex indices a triangle."""
    tube: Floats
    """Where each triangle corner lies on the tube: turns (along, across), not wrapped."""


@dataclass(frozen=True)
class View:
    """The samples of a picture that show the mesh."""

    size: int
    """Samples along each edge of the square picture."""
    sample: Ints
    """Which sample of the picture, in row-major order; the others show the background."""
    face: Ints
    uv: Floats
    """Barycentric coordinates of corners 1 and 2, corrected for perspective."""
    light: Floats
    paint: Floats
    """The colour that the target has there: finer than the mesh's vertices can say."""


def torus_knot(along: int = 320, across: int = 56) -> Knot:
    """The (2, 3) torus knot as a tube of ``2 * along * across`` triangles."""
    s, t = np.meshgrid(np.arange(along), np.arange(across), indexing="ij")
    centre, frame = _curve(TURN * np.arange(along) / along)
    angle = TURN * t / across
    normals = (
        np.cos(angle)[..., None] * frame[:, None, 0] + np.sin(angle)[..., None] * frame[:, None, 1]
    )
    positions = centre[:, None] + TUBE_RADIUS * normals

    quad = np.stack([s, t, s + 1, t, s + 1, t + 1, s, t + 1], -1).reshape(-1, 4, 2)
    # The diagonal that runs with the paint's bands: across it they would come out as saw teeth.
    ends = quad[:, [[0, 1, 3], [1, 2, 3]]].reshape(-1, 3, 2)
    corners = ends[..., 0] % along * across + ends[..., 1] % across
    return Knot(positions.reshape(-1, 3), normals.reshape(-1, 3), corners, ends / (along, across))


def _curve(turn: Floats) -> tuple[Floats, Floats]:
    """Points of the centre line, and two unit vectors across it at each."""

    def point(a: Floats) -> Floats:
        radius = 0.66 + 0.30 * np.cos(3 * a)
        return np.stack([radius * np.cos(2 * a), radius * np.sin(2 * a), 0.42 * np.sin(3 * a)], -1)

    tangent = unit(point(turn + 1e-4) - point(turn - 1e-4))
    outward = unit(point(turn) * (1.0, 1.0, 0.4))
    first = unit(outward - tangent * (outward * tangent).sum(-1, keepdims=True))
    return point(turn), np.stack([first, np.cross(tangent, first)], 1)


def unit(v: Floats) -> Floats:
    """`v` scaled to length 1 along its last axis."""
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def view_of(knot: Knot, size: int) -> View:
    """Rasterises `knot` at `size` times `size` samples, with light and paint at each."""
    eye, screen, depth = _projected(knot.positions, size)
    sample, face, screen_uv = _visible(screen[knot.corners], depth[knot.corners], size)
    # Linear on the screen is not linear on the triangle: weigh each corner by 1 / depth.
    weights = np.concatenate([1.0 - screen_uv.sum(1, keepdims=True), screen_uv], 1)
    weights /= depth[knot.corners[face]]
    weights /= weights.sum(1, keepdims=True)

    def at_samples(corner_values: Floats) -> Floats:
        return np.einsum("nk,nkc->nc", weights, corner_values)

    normal = unit(at_samples(knot.normals[knot.corners[face]]))
    to_eye = unit(eye - at_samples(knot.positions[knot.corners[face]]))
    paint = painted(at_samples(knot.tube[face]))
    return View(size, sample, face, weights[:, 1:], lit(normal, to_eye), paint)


def _projected(positions: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """The camera, and screen position (in samples) and depth of each vertex."""
    towards_eye = unit(np.array([0.0, -0.45, 1.0]))
    eye = CAMERA_AIM + CAMERA_DISTANCE * towards_eye
    forward = -towards_eye
    right = unit(np.cross(forward, [0.0, 1.0, 0.0]))
    up = np.cross(right, forward)
    local = (positions - eye) @ np.stack([right, -up, forward], 1)
    screen = (1.0 + FOCAL_LENGTH * local[:, :2] / local[:, 2:]) * (size / 2)
    return eye, screen, local[:, 2]


def _visible(screen: Floats, depth: Floats, size: int) -> tuple[Ints, Ints, Floats]:
    """The nearest triangle at each covered sample: sample, face, barycentrics on the screen.

    Args:
        screen: Positions in samples, of shape (faces, 3, 2).
        depth: Distances from the camera along its axis, of shape (faces, 3).
        size: Samples along each edge.
    """
    face, x, y = _box_samples(screen, size)
    origin = screen[face, 0]
    first, second = screen[face, 1] - origin, screen[face, 2] - origin
    to_sample = np.stack([x + 0.5, y + 0.5], 1) - origin
    area = _cross(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = _cross(to_sample, second) / area, _cross(first, to_sample) / area
    inside = (u >= 0) & (v >= 0) & (u + v <= 1)
    face, x, y, uv = face[inside], x[inside], y[inside], np.stack([u, v], 1)[inside]

    weights = np.stack([1 - uv.sum(1), *uv.T], 1)
    nearness = (weights / depth[face]).sum(1)
    sample = y * size + x
    order = np.lexsort((-nearness, sample))
    _, nearest = np.unique(sample[order], return_index=True)
    kept = order[nearest]
    return sample[kept], face[kept], uv[kept]


def _box_samples(screen: Floats, size: int) -> tuple[Ints, Ints, Ints]:
    """Face, x and y of every sample in the bounding box of every face."""
    low = np.clip(np.floor(screen.min(1)).astype(int), 0, size)
    extent = np.clip(np.ceil(screen.max(1)).astype(int), 0, size) - low
    count = extent.prod(1)
    face = np.repeat(np.arange(len(screen)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    width = extent[face, 0]
    return face, low[face, 0] + within % width, low[face, 1] + within // width


def _cross(a: Floats, b: Floats) -> Floats:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def lit(normal: Floats, to_eye: Floats) -> Floats:
    """The light that arrives at a surface: a warm key, a sky, and a cool rim."""
    key = np.clip(normal @ unit(KEY_LIGHT), 0, None)
    sky = 0.5 + 0.5 * normal[:, 1]
    facing = np.clip((normal * to_eye).sum(1), 0, 1)
    rim = (1 - facing) ** 3 * np.clip(0.5 + normal @ unit(RIM_LIGHT), 0, None)
    return (
        key[:, None] * (1.05, 0.98, 0.86)
        + sky[:, None] * (0.10, 0.13, 0.19)
        + rim[:, None] * (0.25, 0.45, 0.75)
        + 0.035
    )


def painted(tube: Floats) -> Floats:
    """The target's colours: bands that wind around the tube, and veins in them."""
    along, across = TURN * tube.T
    warp = 0.5 * np.sin(7 * along + 2 * across) + 0.35 * np.sin(11 * along - 3 * across)
    hue = 0.5 + 0.5 * np.sin(9 * along + 2 * across + warp)[:, None]
    phase = TURN * (0.5 * hue + (0.02, 0.17, 0.34) + 0.3 * np.sin(along)[:, None])
    vein = np.exp(-18 * np.sin(12 * along + 2 * across + 1.6 * warp) ** 2)[:, None]
    band = 0.52 + 0.42 * np.cos(phase)
    return np.clip(band * (1 - 0.8 * vein) + vein * (0.78, 0.64, 0.4), 0.02, 0.98)
