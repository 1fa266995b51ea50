"""Normals and Laplacians against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, render

pytestmark = pytest.mark.gpu

CLOSE = 1e-5


def patch(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A bumpy square of 4 by 5 vertices, and one vertex without triangles."""
    rng = np.random.default_rng(seed)
    y, x = (k.ravel() for k in np.mgrid[:4, :5])
    places = np.column_stack([x, y, np.zeros(20)]) + rng.uniform(-0.3, 0.3, (20, 3))
    a = (y * 5 + x).reshape(4, 5)[:-1, :-1].ravel()
    faces = np.concatenate([np.stack([a, a + 1, a + 6], 1), np.stack([a, a + 6, a + 5], 1)])
    return np.float32(np.vstack([places, [[9, 9, 9]]])), np.int32(faces)


def test_normals_are_the_sum_of_those_of_triangles_by_area(device: sad.Device) -> None:
    places, faces = patch()
    a, b, c = (places[faces[:, k]].astype(np.float64) for k in range(3))
    summed = np.zeros((21, 3))
    for k in range(3):
        np.add.at(summed, faces[:, k], np.cross(b - a, c - a))
    length = np.linalg.norm(summed, axis=1, keepdims=True)
    expected = np.divide(summed, length, out=np.zeros_like(summed), where=length > 0)
    assert np.allclose(render.normals(places, faces).numpy(), expected, atol=CLOSE)
    assert np.all(expected[-1] == 0)


def test_laplacian_leads_to_the_mean_of_the_neighbours(device: sad.Device) -> None:
    places, faces = patch(1)
    summed, count = np.zeros((21, 3)), np.zeros((21, 1))
    for face in faces:
        for k in range(3):
            others = face[[(k + 1) % 3, (k + 2) % 3]]
            summed[face[k]] += places[others].sum(0)
            count[face[k]] += 2
    expected = np.where(count > 0, summed / np.maximum(count, 1) - places, 0)
    found = render.laplacian(sad.array(places, dtype=float3), faces).numpy()
    assert np.allclose(found, expected, atol=CLOSE)
    assert np.all(found[-1] == 0)
    # Inside, that is the mean over the six neighbours.
    inner = 6
    around = sorted({int(v) for face in faces if inner in face for v in face} - {inner})
    assert np.allclose(found[inner], places[around].mean(0) - places[inner], atol=CLOSE)


def test_they_are_differentiable(device: sad.Device) -> None:
    places, faces = patch(2)
    positions = sad.array(places[:-1], dtype=float3)
    sad.gradcheck(lambda p: render.normals(p, faces), positions)
    sad.gradcheck(lambda p: render.laplacian(p, faces), positions)


def test_index_out_of_range_is_reported(device: sad.Device) -> None:
    places, faces = patch()
    faces = faces.copy()
    faces[3, 1] = 21
    with pytest.raises(sad.BoundsError):
        render.normals(places, faces).numpy()
    with pytest.raises(sad.BoundsError):
        render.laplacian(sad.array(places, dtype=float3), faces).numpy()
