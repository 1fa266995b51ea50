"""Kernels that take pointers or `checks` inside of graphs, and under transforms of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu


@sad.struct
class Mesh:
    scale: float
    points: sad.Pointer[float]


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]
    gain: float


@sad.struct
class Row:
    values: sad.Pointer[sad.half]


@sad.kernel
def energy(i: sad.Index, scene: Scene, x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for m in range(len(scene.meshes)):
        mesh = scene.meshes[m]
        for k in range(len(mesh.points)):
            total += mesh.scale * mesh.points[k] * mesh.points[k]
    y[i] = sad.sin(total * scene.gain) * x[i]


@sad.kernel
def halves(i: sad.Index, rows: sad.In[Row], y: sad.Out[float]):
    total = 0.0
    for k in range(len(rows[i].values)):
        total += float(rows[i].values[k]) * float(k + 1)
    y[i] = total * total


@sad.kernel
def cubed(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i] * x[i]


def scene_of(a: Any, b: Any, gain: float = 0.05) -> Scene:
    meshes = [Mesh(2.0, sad.pointer(a)), Mesh(0.5, sad.pointer(b)), Mesh(9.0, sad.pointer(None))]
    return Scene(meshes=sad.pointer(meshes), gain=gain)


def result(a: Any, b: Any, x: Any) -> Any:
    return energy(scene_of(a, b), x, dim=2)


def loss(a: Any, b: Any, x: Any) -> Any:
    y = result(a, b, x)
    return sad.sum(y * y)


def expected(a: np.ndarray, b: np.ndarray, x: np.ndarray, gain: float = 0.05) -> np.ndarray:
    return np.sin((2 * np.sum(a * a) + 0.5 * np.sum(b * b)) * gain) * x


A, B, X = np.array([1.0, 2.0, 0.5]), np.array([0.25, 3.0]), np.array([1.0, -2.0])


def arrays(*given: np.ndarray) -> list[sad.Array]:
    return [sad.array(one) for one in given]


def test_one_trace_serves_pointers_of_every_length(device: sad.Device) -> None:
    graph = sad.graph(result)
    for a, b in ((A, B), (B, A), (A[:1], A), (np.zeros(0), B), (A, A)):
        np.testing.assert_allclose(
            graph(*arrays(a, b, X)).numpy(), expected(a, b, X), rtol=1e-5, atol=1e-6
        )


def test_structs_with_pointers_are_arguments(device: sad.Device) -> None:
    graph = sad.graph(lambda scene, x: energy(scene, x, dim=2))
    a, b, x = arrays(A, B, X)
    for gain in (0.05, 0.25):
        found = graph(scene_of(a, b, gain), x).numpy()
        np.testing.assert_allclose(found, expected(A, B, X, gain), rtol=1e-5)


def test_halves_begin_at_whole_words(device: sad.Device) -> None:
    data = [np.float16([1.0, 0.5, 2.0]), np.float16([0.25]), np.float16([1.5, 1.0, 0.5, 3.0])]

    def called(*parts: Any) -> Any:
        return halves([Row(sad.pointer(one)) for one in parts], dim=3)

    given = [sad.array(one, dtype=sad.half) for one in data]
    weighted = [np.sum(one * np.arange(1, len(one) + 1)) for one in data]
    np.testing.assert_allclose(sad.graph(called)(*given).numpy(), np.square(weighted), rtol=1e-6)
    _, pullback = sad.vjp(sad.graph(called), *given)
    for gradient, total, one in zip(pullback(np.ones(3)), weighted, data, strict=True):
        np.testing.assert_allclose(
            gradient.numpy(), 2 * total * np.arange(1, len(one) + 1), rtol=1e-3
        )


def test_gradients_behind_pointers_agree_with_kernels_alone(device: sad.Device) -> None:
    given = arrays(A, B, X)
    by_kernels = sad.grad(loss, (0, 1, 2))(*given)
    by_graph = sad.grad(sad.graph(loss), (0, 1, 2))(*given)
    for one, other in zip(by_graph, by_kernels, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
    dots = [0.5 * one for one in (A, B, X)]
    _, pushed = sad.jvp(sad.graph(loss), given, dots)
    np.testing.assert_allclose(
        pushed.numpy(),
        sum(np.sum(g.numpy() * d) for g, d in zip(by_kernels, dots, strict=True)),
        rtol=1e-4,
    )


@pytest.mark.parametrize("checks", ["", "nan"])
def test_derivatives_of_any_order(device: sad.Device, checks: str) -> None:
    options = {"checks": checks} if checks else {}

    def total(x: Any) -> Any:
        return sad.sum(cubed(x, dim=2, **options))

    x, v = arrays(X, np.array([0.5, 2.0]))
    along = v.numpy()
    np.testing.assert_allclose(sad.hvp(total, (x,), (v,)).numpy(), 6 * X * along, rtol=1e-5)
    _, third = sad.jvp(lambda x: sad.hvp(total, (x,), (v,)), (x,), (v,))
    np.testing.assert_allclose(third.numpy(), 6 * along * along, rtol=1e-5)
    _, twice = sad.jvp(lambda x: sad.jvp(total, (x,), (v,))[1], (x,), (v,))
    np.testing.assert_allclose(twice.numpy(), np.sum(6 * X * along * along), rtol=1e-5)


def test_third_derivatives_behind_pointers(device: sad.Device) -> None:
    def third(f: Any) -> np.ndarray:
        point, along = sad.array(A), sad.array(np.ones(3))
        return sad.jvp(lambda a: sad.hvp(f, (a,), (along,)), (point,), (along,))[1].numpy()

    b, x = arrays(B, X)

    def by_arrays(a: Any) -> Any:
        total = (sad.sum(a * a) * 2.0 + sad.sum(b * b) * 0.5) * 0.05
        return sad.sum(sad.sin(total) * sad.sin(total) * x * x)

    found = third(lambda a: loss(a, b, x))
    np.testing.assert_allclose(found, third(by_arrays), rtol=1e-3, atol=1e-4)


def test_a_pullback_is_followed_by_a_transform_around_it(device: sad.Device) -> None:
    x, bar = arrays(X, np.array([3.0, 5.0]))
    _, pullback = sad.vjp(cubed, x, dim=2)
    slope = 3 * X * X
    _, twice = sad.vjp(lambda g: pullback(g)[0], bar)
    np.testing.assert_allclose(twice(bar)[0].numpy(), slope * bar.numpy(), rtol=1e-6)


def test_pointers_in_loops_of_graphs(device: sad.Device) -> None:
    @sad.graph
    def repeated(a: sad.Array, b: sad.Array, x: sad.Array) -> sad.Array:
        return sad.fori_loop(3, lambda _, y: energy(scene_of(a, b), y, dim=2), x)

    factor = expected(A, B, np.ones(1))
    found = repeated(*arrays(A, B, X)).numpy()
    np.testing.assert_allclose(found, X * factor**3, rtol=1e-5)


def test_checks_report_inside_of_graphs(device: sad.Device) -> None:
    graph = sad.graph(lambda x: cubed(x, dim=2, checks="nan") * 2.0)
    np.testing.assert_allclose(graph(sad.array(X)).numpy(), 2 * X**3)
    with pytest.raises(sad.BoundsError, match="`y` is inf in kernel `cubed`, element 1"):
        graph(sad.array([1.0, 1e30])).numpy()


def test_floats_of_structs_behind_pointers_have_second_derivatives(device: sad.Device) -> None:
    a, b, x = arrays(A, B, X)

    def value(scene: Scene) -> Any:
        return sad.sum(energy(scene, x, dim=2))

    scene = scene_of(a, b)
    moved = sad.hvp(value, (scene,), (Scene(meshes=None, gain=1.0),))
    total = 2 * np.sum(A * A) + 0.5 * np.sum(B * B)
    by_gain = -np.sin(total * 0.05) * total * total * np.sum(X)
    np.testing.assert_allclose(float(moved.gain), by_gain, rtol=1e-4)
