"""Files and formulas -> NumPy: a mesh, the true colours of its vertices, cameras around it.

Everything here runs once, before the fit. Angles are radians, and colours are linear from 0 to 1.
The model is 1.7 high and looks along -z, and y is up.

`spot.ply` is Spot by Keenan Crane, released into the public domain by its author (CMU, Keenan's 3D
model repository): 2,930 vertices, 5,856 triangles, closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from kernels import Camera

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

SPOT = Path(__file__).parent / "spot.ply"
AIM = np.array([0.0, 0.07, 0.1])
"""The target of cameras, about the middle of the model."""
FOCAL = 3.2
DISTANCE = 3.4
"""The distance at which the model fills most of a picture."""
TURN, LIFT = 0.55, 0.28
"""The angles of a view that shows its face and a flank."""
HIGH = 1.2
"""The lift of a camera almost above the model."""


@dataclass(frozen=True)
class Model:
    """A closed mesh with colours."""

    corners: Ints
    """Three vertex indices per triangle."""
    positions: Floats
    normals: Floats
    colors: Floats


def spot(subdivisions: int = 1) -> Model:
    """Spot, painted.

    Args:
        subdivisions: The number of Loop subdivisions, each of which makes four triangles of one.
            With one, the mesh has 23,424 triangles, which resolve the edges of the patches.
    """
    mesh: Any = trimesh.load(SPOT, process=False)
    positions, corners = mesh.vertices, mesh.faces
    if subdivisions:
        positions, corners = trimesh.remesh.subdivide_loop(positions, corners, subdivisions)
    positions = np.asarray(positions, np.float64)
    return Model(np.asarray(corners), positions, normals_of(positions, corners), paint(positions))


def normals_of(positions: Floats, corners: Ints) -> Floats:
    """The mean of the adjacent triangles' normals at each vertex, weighted by area."""
    a, b, c = np.moveaxis(positions[corners], 1, 0)
    across = np.cross(b - a, c - a)
    total = np.zeros_like(positions)
    for k in range(3):
        np.add.at(total, corners[:, k], across)
    return unit(total)


def unit(v: Floats) -> Floats:
    """`v` scaled to length 1 along its last axis."""
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def orbit(turn: float = TURN, lift: float = LIFT, distance: float = DISTANCE) -> Camera:
    """A camera that looks at the model.

    Args:
        turn: The angle around the vertical axis; at 0 the model looks into the camera.
        lift: The angle above the horizon, less than a quarter turn.
        distance: The distance from the middle of the model.
    """
    level = np.cos(lift)
    back = np.array([np.sin(turn) * level, np.sin(lift), -np.cos(turn) * level])
    right = unit(np.cross(-back, [0.0, 1.0, 0.0]))
    up = np.cross(right, -back)
    return Camera(eye=AIM + distance * back, right=right, up=up, forward=-back, focal=FOCAL)


def around() -> tuple[Camera, ...]:
    """Cameras on all sides: one at each quarter turn, one above, one below."""
    quarters = (orbit(TURN + k * np.pi / 2) for k in range(4))
    return (*quarters, orbit(lift=HIGH), orbit(lift=-HIGH))


def dented(positions: Floats, share: float = 0.06) -> Floats:
    """The model with smooth dents of at most `share` of its length."""
    draw, moved = np.random.default_rng(7), np.zeros_like(positions)
    for _ in range(4):
        waves = wave(draw, positions, draw.uniform(0.7, 1.4))
        moved += waves[:, None] * draw.normal(size=3)
    length = np.ptp(positions, axis=0).max()
    return positions + moved * (share * length / np.linalg.norm(moved, axis=1).max())


def marbled(positions: Floats) -> Floats:
    """Colours that differ all over the model, by long and short waves.

    Long waves guide parts that are far off, and short ones make positions exact.
    """
    draw, color = np.random.default_rng(1), np.full_like(positions, 0.5)
    for length, height in ((1.2, 0.1), (0.6, 0.09), (0.3, 0.06)):
        for channel in (0, 1, 2, 0, 1, 2):
            color[:, channel] += height * wave(draw, positions, length)
    return np.clip(color, 0.02, 0.98)


def wave(draw: np.random.Generator, positions: Floats, length: float) -> Floats:
    """A plane wave in some direction."""
    way = unit(draw.normal(size=3)) * (2 * np.pi / length)
    return np.sin(positions @ way + draw.uniform(0, 2 * np.pi))


def neighbours_of(corners: Ints) -> Ints:
    """The vertices that share an edge with each; -1 fills up the rows."""
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    count = np.bincount(edges[:, 0])
    place = np.arange(len(edges)) - np.repeat(np.cumsum(count) - count, count)
    table = np.full((len(count), count.max()), -1)
    table[edges[:, 0], place] = edges[:, 1]
    return table


def seen_by(shown: Ints, corners: Ints) -> Ints:
    """The number of pictures that show each vertex; `shown` has one triangle per pixel, or -1."""
    seen = np.zeros((len(shown), corners.max() + 1), bool)
    for row, faces in zip(seen, shown, strict=True):
        row[corners[faces[faces >= 0]]] = True
    return seen.sum(0)


def together(cameras: Sequence[Camera]) -> dict[str, Floats]:
    """Cameras as a dict of arrays, from which `sad.array` makes an array of structs."""
    names = ("eye", "right", "up", "forward", "focal")
    return {name: np.stack([getattr(camera, name) for camera in cameras]) for name in names}


def paint(positions: Floats) -> Floats:
    """Warm white with brown patches, a rosy muzzle, dark hooves and eyes, horns of ivory."""
    x, y, z = positions.T
    color = np.broadcast_to(MILK, positions.shape)
    waves = np.sin(positions @ WAVES.T + PHASES).sum(-1)
    color = over(color, COCOA, step(0.30, 0.85, waves))
    color = over(color, ROSE, step(-0.50, -0.58, z) * step(0.40, 0.34, y))
    for side in (-1.0, 1.0):
        eye = np.linalg.norm(positions - np.array([side, 1.0, 1.0]) * EYE, axis=1)
        color = over(color, HOOF, step(0.095, 0.06, eye))
    color = over(color, HOOF, step(-0.60, -0.64, y))
    return over(color, IVORY, step(0.73, 0.79, y) * step(0.10, 0.13, np.abs(x)))


def step(low: float, high: float, x: Floats) -> Floats:
    """From 0 at `low` to 1 at `high`, smoothly; `high` may be the lower one."""
    t = np.clip((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def over(below: Floats, color: Floats, share: Floats) -> Floats:
    return below + share[:, None] * (color - below)


WAVES = np.array([[6.1, 2.0, 3.5], [-2.8, 5.3, 4.4], [3.7, -6.4, 5.9], [8.0, 4.7, -4.9]])
PHASES = np.array([0.6, 2.1, 4.0, 1.3])
EYE = np.array([0.20, 0.52, -0.50])
MILK = np.array([0.86, 0.80, 0.70])
COCOA = np.array([0.15, 0.05, 0.022])
ROSE = np.array([0.80, 0.36, 0.30])
HOOF = np.array([0.03, 0.024, 0.022])
IVORY = np.array([0.78, 0.62, 0.36])
