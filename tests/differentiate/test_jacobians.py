"""`jacobian` inside of other transforms and graphs, of graphs and of itself, in both modes."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3, float4
from shaderad.differentiate import jacobian_rows

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("mode", ["reverse", "forward"])]

# float32, a few operations an entry.
RTOL = 1e-5
X = np.float32([0.5, -1.5, 2.0])


@sad.kernel
def cubes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i] * x[(i + 1) % x.shape[0]]


@sad.kernel
def energy_of(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    total[0] += x[i] * x[i] * x[(i + 1) % x.shape[0]]


def on_kernel(x: Any) -> Any:
    return cubes(x, dim=x.shape[0] if isinstance(x, sad.Array) else len(x))


def on_arrays(x: Any) -> Any:
    return x * x * sad.roll(x, -1)


FUNCTIONS = {"kernel": on_kernel, "arrays": on_arrays, "graph": sad.graph(on_arrays)}


def jacobian_of_cubes(x: np.ndarray) -> np.ndarray:
    n = len(x)
    after, found = np.roll(x, -1), np.zeros((n, n))
    for k in range(n):
        found[k, k] += 2 * x[k] * after[k]
        found[k, (k + 1) % n] += x[k] ** 2
    return found


def second_of_cubes(x: np.ndarray) -> np.ndarray:
    n = len(x)
    after, found = np.roll(x, -1), np.zeros((n, n, n))
    for k in range(n):
        j = (k + 1) % n
        found[k, k, k] += 2 * after[k]
        found[k, k, j] += 2 * x[k]
        found[k, j, k] += 2 * x[k]
    return found


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_inside_of_other_transforms(name: str, mode: str, device: sad.Device) -> None:
    jacobian = sad.jacobian(FUNCTIONS[name], mode=mode)
    first, second = jacobian_of_cubes(X), second_of_cubes(X)
    weights = np.float32([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0], [2.0, 0.25, 1.0]])
    direction = np.float32([1.0, 0.5, -2.0])
    out, pullback = sad.vjp(jacobian, X)
    near(out, first)
    near(pullback(weights)[0], np.einsum("ij,ijk->k", weights, second))
    out, out_dot = sad.jvp(jacobian, (X,), (direction,))
    near(out, first)
    near(out_dot, second @ direction)
    value, gradient = sad.value_and_grad(lambda x: sad.sum(jacobian(x) * weights))(X)
    near(value, (first * weights).sum())
    near(gradient, np.einsum("ij,ijk->k", weights, second))
    sad.gradcheck(lambda x: jacobian(x) * weights, X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_of_jacobians(name: str, mode: str, device: sad.Device) -> None:
    twice = sad.jacobian(sad.jacobian(FUNCTIONS[name], mode=mode), mode=mode)
    near(twice(X), second_of_cubes(X))
    thrice = sad.jacobian(twice, mode=mode)
    found = thrice(X).numpy()
    step = 0.25  # what is differentiated twice is linear
    for k in range(3):
        moved = [second_of_cubes(X + s * np.eye(3, dtype=np.float32)[k]) for s in (step, -step)]
        np.testing.assert_allclose(found[..., k], (moved[0] - moved[1]) / (2 * step), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 0])
def test_one_graph_with_a_jacobian_serves_every_size(n: int, mode: str, device: sad.Device) -> None:
    x = np.linspace(-1.0, 2.0, n, dtype=np.float32)
    for function in (on_arrays, sad.graph(on_arrays), lambda x: cubes(x, dim=x.shape[0])):

        @sad.graph
        def inside(x: sad.Array[float, "n"], function: Any = function) -> sad.Array:
            return sad.jacobian(function, mode=mode)(x)

        near(inside(x), jacobian_of_cubes(x))
    if n:
        found = sad.grad(sad.graph(lambda x: sad.sum(sad.jacobian(on_arrays, mode=mode)(x))))(x)
        near(found, second_of_cubes(x).sum((0, 1)))


def test_one_trace_serves_all_sizes(mode: str, device: sad.Device) -> None:
    inside = sad.graph(sad.jacobian(on_arrays, mode=mode))
    for n in (2, 5, 3, 2):
        x = np.linspace(-1.0, 2.0, n, dtype=np.float32)
        near(inside(x), jacobian_of_cubes(x))


def test_hessians_are_jacobians_of_gradients(mode: str, device: sad.Device) -> None:
    expected = second_of_cubes(X).sum(0)
    losses: list[Callable[[Any], Any]] = [
        lambda x: sad.sum(on_arrays(x)),
        sad.graph(lambda x: sad.sum(on_arrays(x))),
        lambda x: energy_of(x, dim=3, shapes={"total": 1}),
    ]
    for loss in losses:
        hessian = sad.jacobian(sad.grad(loss), mode=mode)
        near(hessian(X), expected)
    for loss in losses[:2]:
        hessian = sad.jacobian(sad.grad(loss), mode=mode)
        near(sad.graph(hessian)(X), expected)
        # Third derivatives: the trace of the Hessian is sum(2 x[k + 1]).
        near(sad.grad(lambda x, h=hessian: sad.sum(h(x) * np.eye(3)))(X), [2.0, 2.0, 2.0])


def test_vectors_and_matrices_are_spelled_out(mode: str, device: sad.Device) -> None:
    v = np.float32([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]])
    m = np.float32([[1.0, 2.0], [3.0, 4.0]])

    def turned(v: Any, m: Any) -> Any:
        return v * v.yzx * (m @ sad.float2(v.x, v.y)).x

    def by_hand(v: np.ndarray, m: np.ndarray) -> np.ndarray:
        return v * v[:, [1, 2, 0]] * (v[:, :2] @ m[0])[:, None]

    given = sad.array(v, dtype=float3), sad.array(m, dtype=float2x2)
    jacobian = sad.jacobian(turned, argnums=(0, 1), mode=mode)
    by_v, by_m = jacobian(*given)
    assert (by_v.shape, by_m.shape) == ((2, 3, 2, 3), (2, 3, 2, 2))
    step = 1e-3
    for found, at, exact in ((by_v, 0, v), (by_m, 1, m)):
        for index in np.ndindex(*exact.shape):
            moved = []
            for s in (step, -step):
                both = [v.astype(np.float64), m.astype(np.float64)]
                both[at][index] += s
                moved.append(by_hand(*both))
            expected = (moved[0] - moved[1]) / (2 * step)
            np.testing.assert_allclose(found.numpy()[(..., *index)], expected, rtol=1e-4, atol=1e-4)
    for again in (sad.graph(jacobian)(*given), sad.vjp(jacobian, *given)[0]):
        for found, plain in zip(again, (by_v, by_m), strict=True):
            near(found, plain.numpy())
    (v_bar, m_bar) = sad.vjp(jacobian, *given)[1]((np.ones((2, 3, 2, 3)), None))
    assert (v_bar.dtype, m_bar.dtype) == (float3, float2x2)
    sad.gradcheck(lambda v, m: sad.jacobian(turned, mode=mode)(v, m), *given)


def test_numbers_and_elements_of_a_map_have_jacobians(mode: str, device: sad.Device) -> None:
    def powers(a: Any) -> Any:
        return a * a * sad.array(X)

    jacobian = sad.jacobian(powers, mode=mode)
    near(jacobian(3.0), 6.0 * X)
    near(sad.jacobian(jacobian, mode=mode)(3.0), 2.0 * X)
    near(sad.graph(lambda a: sad.jacobian(lambda b: b * b * a, mode=mode)(a))(X),
         np.diag(2 * X * X))  # fmt: skip
    near(sad.graph(lambda x: sad.map(lambda a: sad.jacobian(lambda b: b**3, mode=mode)(a), x))(X),
         3 * X**2)  # fmt: skip


def test_jacobians_of_kernels_with_many_rows(mode: str, device: sad.Device) -> None:
    """More rows than a dispatch binds buffers."""
    x = np.linspace(-1.0, 1.0, 40, dtype=np.float32)
    out, pullback = sad.vjp(sad.jacobian(on_kernel, mode=mode), x)
    near(out, jacobian_of_cubes(x))
    near(pullback(np.ones((40, 40), np.float32))[0], second_of_cubes(x).sum((0, 1)))


def test_what_has_no_jacobian_is_refused_inside_as_outside(mode: str, device: sad.Device) -> None:
    two = sad.jacobian(lambda x: (x, x), mode=mode)
    whole = sad.jacobian(lambda x: sad.cast(x, int), mode=mode)
    for call in (two, whole):
        for function in (call, sad.graph(call), lambda x, call=call: sad.vjp(call, x)):
            with pytest.raises(sad.DerivativeError, match="SR0460"):
                function(X)


# -- chunks, and what has no batch ------------------------------------------------------------


@sad.struct
class Row:
    values: sad.Pointer[float]


@sad.kernel
def pointed(i: sad.Index, row: Row, x: sad.In[float], y: sad.Out[float]):
    y[i] = row.values[i] * x[i] * x[0]


@sad.kernel
def sampled(
    i: sad.Index,
    t: sad.Texture1D[float],
    s: sad.Sampler,
    at: sad.In[float],
    y: sad.Out[float],
):
    y[i] = t.sample_level(s, at[i], 0.0)


@pytest.mark.parametrize("chunk", [1, 2, 5])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_chunks_make_the_same_jacobians(
    name: str, chunk: int, mode: str, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(-1.0, 2.0, 5, dtype=np.float32)
    monkeypatch.setattr(jacobian_rows, "CHUNK_BYTES", chunk * x.nbytes)
    jacobian = sad.jacobian(FUNCTIONS[name], mode=mode)
    near(jacobian(x), jacobian_of_cubes(x))
    near(sad.graph(jacobian)(sad.array(x)), jacobian_of_cubes(x))
    gradient = sad.grad(lambda x: sad.sum(jacobian(x)))(x)
    near(gradient, second_of_cubes(x).sum((0, 1)))


def test_kernels_that_have_no_batch_have_jacobians(mode: str, device: sad.Device) -> None:
    def through_pointer(x: Any) -> Any:
        return pointed(Row(sad.pointer(x)), x, dim=3)

    jacobian = sad.jacobian(through_pointer, mode=mode)
    expected = np.diag(2 * X * X[0])
    expected[:, 0] += X * X
    near(jacobian(sad.array(X)), expected)
    near(sad.graph(jacobian)(sad.array(X)), expected)

    texels, places = np.float32([0.0, 1.0, 3.0, 7.0]), np.float32([0.25, 0.4, 0.7])
    found = sad.jacobian(
        lambda at: sampled(sad.texture(texels), sad.sampler(), at, dim=3), mode=mode
    )(sad.array(places))
    # Between the centres of two texels, the slope is their difference per texel.
    np.testing.assert_allclose(found.numpy(), np.diag([4.0, 8.0, 16.0]), rtol=1e-2)


def test_zeros_of_unit_vectors_do_not_meet_nan(mode: str, device: sad.Device) -> None:
    rows = np.float32([[np.nan, 1.0], [1.0, 2.0]])
    found = sad.jacobian(lambda x: sad.var(x, axis=1), mode=mode)(sad.array(rows)).numpy()
    np.testing.assert_allclose(found[1], [[0.0, 0.0], [-0.5, 0.5]], rtol=RTOL)


@sad.struct
class Ball:
    centre: float3
    radius: float
    number: int


@sad.kernel
def distances(i: sad.Index, ball: Ball, p: sad.In[float3], d: sad.Out[float]):
    d[i] = sad.length(p[i] - ball.centre) - ball.radius * float(ball.number)


@pytest.mark.parametrize("in_graph", [False, True])
def test_by_a_struct_each_field_has_one(device: sad.Device, mode: str, in_graph: bool) -> None:
    points = np.float32(np.random.default_rng(0).normal(size=(5, 3)))
    ball = Ball(float3(1, 2, 3), 0.5, 2)

    def by_ball(b: Any, p: Any) -> Any:
        return sad.jacobian(distances, (0, 1), mode)(b, p)

    by_ball_, by_points = (sad.graph(by_ball) if in_graph else by_ball)(ball, points)
    assert isinstance(by_ball_, Ball)
    unit = points - np.float32([1, 2, 3])
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(by_ball_.centre, -unit, rtol=RTOL, atol=1e-6)
    np.testing.assert_allclose(by_ball_.radius, [-2.0] * 5)
    assert by_ball_.number == 0
    np.testing.assert_allclose(by_points, np.eye(5)[:, :, None] * unit, rtol=RTOL, atol=1e-6)


def test_by_containers_it_is_built_alike(device: sad.Device, mode: str) -> None:
    def product(a: Any) -> Any:
        return a["x"][:, None] * a["y"][0] + a["y"][1] + 0.0 * a["n"]

    y = np.float32([2.0, 3.0])
    found = sad.jacobian(product, 0, mode)({"x": X, "y": [sad.array(y), 0.5], "n": 7})
    np.testing.assert_allclose(found["x"], np.einsum("ik,j->ijk", np.eye(3), y), rtol=RTOL)
    np.testing.assert_allclose(found["y"][0], np.einsum("i,jk->ijk", X, np.eye(2)), rtol=RTOL)
    np.testing.assert_allclose(found["y"][1], np.ones((3, 2)))
    assert found["n"] is None


PICTURE = np.float32(np.random.default_rng(1).uniform(0.1, 0.9, (3, 4, 4)))
HALF = np.float32(np.random.default_rng(2).uniform(0.1, 0.9, (1, 2, 4)))


@sad.kernel
def looked_up(
    i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, at: sad.In[float2], c: sad.Out[float4]
):
    c[i] = t.sample_level(s, at[i], 0.4)


@pytest.mark.parametrize("kind", ["plain", "mips", "levels"])
@pytest.mark.parametrize("count", [0, 3])
def test_by_a_texture_it_is_by_its_texels(
    device: sad.Device, mode: str, kind: str, count: int
) -> None:
    texture = sad.texture([PICTURE, HALF] if kind == "levels" else PICTURE, mips=kind == "mips")
    at = np.float32(np.random.default_rng(3).uniform(0.1, 0.9, (count, 2)))
    smooth = sad.sampler()
    found = sad.jacobian(looked_up, 0, mode)(texture, smooth, at)
    levels = found if kind == "levels" else (found,)
    contents = (PICTURE, HALF)[: len(levels)]
    # A lookup is linear in texels, so the Jacobian times the texels is the lookup.
    total = sum(np.tensordot(j.numpy(), x, 3) for j, x in zip(levels, contents, strict=True))
    assert [j.shape for j in levels] == [(count, 4, *x.shape) for x in contents]
    expected = looked_up(texture, smooth, at).numpy()
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
    direction = [np.cos(9 * x) for x in contents]
    dot = tuple(direction) if kind == "levels" else direction[0]
    _, out_dot = sad.jvp(looked_up, (texture, smooth, at), (dot, None, None))
    total = sum(np.tensordot(j.numpy(), x, 3) for j, x in zip(levels, direction, strict=True))
    np.testing.assert_allclose(total, out_dot, rtol=1e-4, atol=1e-5)
