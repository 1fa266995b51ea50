"""Matrices of cameras against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, float4x4, render

pytestmark = pytest.mark.gpu

CLOSE = 1e-5


def test_look_at_puts_the_target_on_the_axis_and_up_above(device: sad.Device) -> None:
    eye, target = np.float32([1, 2, 3]), np.float32([-0.5, 1, -1])
    view = render.look_at(eye, target).numpy()
    rotation = view[:3, :3]
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=CLOSE)
    assert np.isclose(np.linalg.det(rotation), 1, atol=CLOSE)
    assert np.allclose(view @ [*eye, 1], [0, 0, 0, 1], atol=CLOSE)
    distance = np.linalg.norm(eye - target)
    assert np.allclose(view @ [*target, 1], [0, 0, -distance, 1], atol=CLOSE)
    above = view @ [target[0], target[1] + 1, target[2], 1]
    assert abs(above[0]) < CLOSE
    assert above[1] > 0


def test_perspective_takes_the_corners_of_its_frustum_to_those_of_clip_space(
    device: sad.Device,
) -> None:
    fov_y, aspect, near, far = 0.9, 1.6, 0.5, 20.0
    matrix = render.perspective(fov_y, aspect, near, far).numpy()
    for distance, depth in ((near, 0.0), (far, 1.0)):
        top = distance * np.tan(fov_y / 2)
        for sx, sy in ((-1, -1), (1, 1)):
            x, y, z, w = matrix @ [sx * top * aspect, sy * top, -distance, 1]
            assert np.allclose([x / w, y / w, z / w], [sx, sy, depth], atol=CLOSE)
            assert np.isclose(w, distance)


def test_orthographic_takes_its_box_to_clip_space(device: sad.Device) -> None:
    matrix = render.orthographic(3.0, 2.0, 1.0, 5.0).numpy()
    for distance, depth in ((1.0, 0.0), (5.0, 1.0)):
        found = matrix @ [3.0, -1.5, -distance, 1]
        assert np.allclose(found, [1, -1, depth, 1], atol=CLOSE)


def test_transform_takes_views_and_positions(device: sad.Device) -> None:
    rng = np.random.default_rng(0)
    positions = np.float32(rng.normal(size=(5, 3)))
    eyes = np.float32(rng.normal((0, 0, 4), size=(4, 3)))
    matrices = render.perspective(0.8, 1.0, 0.1, 10.0) @ render.look_at(eyes, (0.0, 0.0, 0.0))
    assert matrices.shape == (4,)
    together = render.transform(matrices, positions)
    assert together.shape == (4, 5)
    padded = np.column_stack([positions, np.ones(5)])
    for view in range(4):
        alone = render.transform(matrices[view], positions)
        assert alone.shape == (5,)
        expected = padded @ matrices.numpy()[view].T
        assert np.allclose(alone.numpy(), expected, atol=CLOSE)
        assert np.allclose(together.numpy()[view], expected, atol=CLOSE)


def test_cameras_are_differentiable(device: sad.Device) -> None:
    def clip(eye, target, fov_y, positions):
        matrix = render.perspective(fov_y, 1.5, 0.5, 9.0) @ render.look_at(eye, target)
        return render.transform(matrix, positions)

    rng = np.random.default_rng(1)
    positions = sad.array(rng.normal(size=(4, 3)), dtype=float3)
    eye, target = (sad.array(x, dtype=float3) for x in ([1.0, 2.0, 3.0], [0.1, 0.2, -0.3]))
    sad.gradcheck(clip, eye, target, sad.array(0.8), positions)


def test_wrong_arguments_are_named(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match=r"SR0330.*`eye`"):
        render.look_at((0.0, 1.0), (0.0, 0.0, 0.0))
    matrix = sad.array(np.eye(4), dtype=float4x4)
    with pytest.raises(sad.ShapeError, match=r"SR0330.*`positions`"):
        render.transform(matrix, np.zeros((3, 2), np.float32))
