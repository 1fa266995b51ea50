"""Each script of samples/first_steps gives the numbers that its reader is told to expect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from tests.samples.loading import SAMPLES, first_step

pytestmark = pytest.mark.gpu

SCRIPTS = sorted((SAMPLES / "first_steps").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_runs_and_prints(
    script: Path, device: sad.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    first_step(script.stem).main()
    device.synchronize()
    assert capsys.readouterr().out


def test_square_has_slope_6_forward_and_6_and_8_backward(device: sad.Device) -> None:
    square = first_step("square")
    x, y = np.float32([3.0]), np.float32([4.0])
    assert square.slope_by_x(x, y, dim=1).numpy() == [6.0]
    dx, dy = square.gradient(x, y, dim=1)
    assert dx.numpy() == [6.0]
    assert dy.numpy() == [8.0]


def test_points_and_a_uniform_point_get_gradients_field_by_field(device: sad.Device) -> None:
    point = first_step("point")
    energy, (by_points, by_goal) = point.energy_and_gradients(point.POINTS, point.GOAL)
    # The points sit at (1, 3) and (3, 1) once moved, the goal at (1, 1).
    assert energy == 4.0
    expected = np.array([(0.0, 2.0, 0), (2.0, 0.0, 0)], point.POINT)
    np.testing.assert_array_equal(by_points.numpy(), expected)
    assert isinstance(by_goal, point.Point)
    assert (float(by_goal.x), float(by_goal.y), int(by_goal.label)) == (-2.0, -2.0, 0)


def test_custom_derivatives_of_square_serve_vjp_and_jvp(device: sad.Device) -> None:
    squares = first_step("custom_derivative").squares
    x, y = np.float32([3.0, 1.0]), np.float32([4.0, -2.0])
    z, pullback = sad.vjp(squares, x, y, dim=2)
    np.testing.assert_array_equal(z.numpy(), [25.0, 5.0])
    dx, dy = pullback(np.float32([1.0, 10.0]))
    np.testing.assert_array_equal(dx.numpy(), [6.0, 20.0])
    np.testing.assert_array_equal(dy.numpy(), [8.0, -40.0])
    _, z_dot = sad.jvp(squares, (x, y), (np.float32([1, 0]), np.float32([0, 1])), dim=2)
    np.testing.assert_array_equal(z_dot.numpy(), [6.0, -4.0])


def test_own_backward_of_a_read_sums_over_threads_on_one_element(device: sad.Device) -> None:
    sample = first_step("gradient_buffer")
    y, pullback = sad.vjp(sample.weighted, sample.WEIGHTS, sample.WHICH, sample.X, dim=6)
    np.testing.assert_array_equal(y.numpy(), [0.5, -2.0, 1.5, 2.0, -5.0, 3.0])
    by_weights, by_which, by_x = pullback(np.ones(6, np.float32))
    np.testing.assert_array_equal(by_weights.numpy(), [14.0, 0.0, 7.0])
    assert by_which is None
    np.testing.assert_array_equal(by_x.numpy(), [0.5, -1.0, 0.5, 0.5, -1.0, 0.5])


def test_many_threads_on_one_weight_lose_no_cotangent(device: sad.Device) -> None:
    weighted = first_step("gradient_buffer").weighted
    count = 100_000
    which = np.arange(count, dtype=np.int32) % 2
    _, pullback = sad.vjp(weighted, np.ones(2), which, np.ones(count), dim=count)
    # Sums of ones are whole numbers below 2^24: exact in any order.
    np.testing.assert_array_equal(pullback(np.ones(count))[0].numpy(), [count / 2, count / 2])


def test_component_writes_with_cotangent_ones_give_9_for_every_x(device: sad.Device) -> None:
    spread = first_step("components").spread
    x = np.float32([1.0, -2.0, 0.5, 0.0])
    y, pullback = sad.vjp(spread, x, dim=4)
    np.testing.assert_array_equal(y.numpy(), x[:, None] * [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(pullback(np.ones((4, 3)))[0].numpy(), [9.0] * 4)


def test_components_added_into_a_local_array_get_their_weights_back(device: sad.Device) -> None:
    weigh = first_step("components").weigh
    a = np.float32([[1, 2, 3], [4, 5, 6]])
    total, pullback = sad.vjp(weigh, a, dim=2)
    np.testing.assert_array_equal(total.numpy(), [14.0, 32.0])
    by_a = pullback(np.float32([1, 10]))[0]
    np.testing.assert_array_equal(by_a.numpy(), [[1, 2, 3], [10, 20, 30]])


def test_triangles_and_exposure_get_gradients_in_their_own_form(device: sad.Device) -> None:
    sample = first_step("triangles")
    color, pullback = sad.vjp(sample.shade, sample.TRIANGLES, sample.FACE, sample.UV, 2.0, dim=3)
    np.testing.assert_array_equal(color.numpy(), [[1, 1.5, 1.5], [2, 1, 1], [2, 0, 0]])
    by_triangles, by_face, _, by_exposure = pullback(np.ones((3, 3)))
    found = by_triangles.numpy()
    weights = {"v0": (2.0, 1.0), "v1": (0.0, 1.5), "v2": (0.0, 1.5)}
    for corner, weight in weights.items():
        np.testing.assert_array_equal(found[corner][:, :3], np.repeat([weight], 3, 0).T)
        np.testing.assert_array_equal(found[corner][:, 3], 0.0)
    assert by_face is None
    assert float(by_exposure) == 5.0
    red = np.tile(np.float32([1, 0, 0]), (3, 1))
    np.testing.assert_array_equal(pullback(red)[2].numpy(), [[-2, 0], [-2, 0], [2, 0]])


def test_mesh_gradients_add_up_at_shared_vertices(device: sad.Device) -> None:
    sample = first_step("mesh")
    mesh = sample.Mesh(sample.VERTICES, sample.CORNERS)
    points, pullback = sad.vjp(sample.sample, mesh, sample.FACE, sample.UV, dim=3)
    np.testing.assert_array_equal(
        points.numpy(), [[0.25, 0.25, 0], [1, 0.5, 0.5], [0.5, 0.75, 0.25]]
    )
    by_mesh, by_face, by_uv = pullback(np.ones((3, 3)))
    assert isinstance(by_mesh, sample.Mesh)
    expected = [[0.5] * 3, [1.0] * 3, [0.75] * 3, [0.75] * 3]
    np.testing.assert_array_equal(by_mesh.vertices.numpy(), expected)
    assert by_face is None
    # Along an edge of a face: the sum of what the vertices at its ends differ by.
    np.testing.assert_array_equal(by_uv.numpy(), [[1, 1], [2, 0], [2, 0]])


def test_gradient_of_the_mesh_agrees_with_finite_differences(device: sad.Device) -> None:
    sample = first_step("mesh")
    mesh = sample.Mesh(sample.VERTICES, sample.CORNERS)
    sad.gradcheck(sample.sample, mesh, sample.FACE, sample.UV, dim=3)


def test_a_scene_of_pointers_gets_a_scene_of_gradients(device: sad.Device) -> None:
    pointers = first_step("pointers")
    out, pullback = sad.vjp(pointers.heights, pointers.make_scene(), dim=2)
    # (1 + 2 + 3 * 4) / 2, and (1 + 1 + 1 * 1 + 5 + 2 * 2) / 2.
    np.testing.assert_array_equal(out.numpy(), [7.5, 6.0])
    (found,) = pullback(np.float32([1.0, 10.0]))
    one, two = (mesh.triangles.numpy() for mesh in found.meshes)
    # The first corner's x, through the sample's own derivative, from both threads.
    np.testing.assert_array_equal(one["v0"], [[5.5, 0.5, 0]])
    np.testing.assert_array_equal(one["v1"][:, 1], [2.0])
    np.testing.assert_array_equal(two["v0"], [[0, 5, 0], [0, 5, 0]])
    np.testing.assert_array_equal(two["v2"][:, 1], [5.0, 10.0])
    assert float(found.exposure) == 15.0 + 120.0


def test_newtons_method_ends_where_every_link_is_1(device: sad.Device) -> None:
    curvature = first_step("curvature")
    path = curvature.newton(curvature.START)
    energies = [energy for _, energy in path]
    assert energies == sorted(energies, reverse=True)
    x, energy = path[-1]
    assert energy < 1e-8
    np.testing.assert_allclose(x, 1.0, atol=1e-3)
