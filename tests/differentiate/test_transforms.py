"""`vjp`, `jvp`, `grad`, `value_and_grad`, `jacobian` over kernels and functions of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3
from tests.recorded import on_each_dispatch

# float32, sums of a few dozen terms in any order.
RTOL = 2e-5


@sad.struct
class Material:
    color: float3
    roughness: float
    id: int


@sad.struct
class Mesh:
    vertices: sad.In[float3]
    indices: sad.In[int]
    scale: float


@sad.kernel
def product(i: sad.Index, x: sad.In[float], y: sad.In[float], z: sad.Out[float]):
    z[i] = x[i] * y[i]


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.kernel
def loss_of(i: sad.Index, y: sad.In[float], target: sad.In[float], weight: float,
            loss: sad.Add[float]):  # fmt: skip
    difference = y[i] - target[i]
    loss[0] += weight * difference * difference


@sad.kernel
def shade(i: sad.Index, material: Material, n: sad.In[float3], color: sad.Out[float3]):
    color[i] = material.color * n[i] * material.roughness


@sad.kernel
def gather(i: sad.Index, mesh: Mesh, out: sad.Out[float3]):
    out[i] = mesh.scale * mesh.vertices[mesh.indices[i]]


@sad.kernel
def two(i: sad.Index, x: sad.In[float], k: sad.In[int], a: sad.Out[float], b: sad.Out[int]):
    a[i] = 3.0 * x[i]
    b[i] = k[i] + 1


@sad.kernel
def smallest(i: sad.Index, x: sad.In[float], low: sad.Min[float]):
    low[0] = sad.min(low[0], x[i])


X = np.float32([1.0, -2.0, 3.0])
T = np.float32([0.5, 0.5, 0.5])


def total(y: Any, weight: Any = 1.0) -> Any:
    return loss_of(y, T, weight, dim=3, shapes={"loss": 1})


# -- over one kernel --------------------------------------------------------------------------


def test_vjp_gives_the_result_and_a_pullback_that_may_be_called_again(device: sad.Device) -> None:
    y, pullback = sad.vjp(square, X, dim=3)
    np.testing.assert_array_equal(y.numpy(), X * X)
    for bar in (np.float32([1.0, 10.0, 100.0]), np.float32([1.0, 0.0, 0.0])):
        (x_bar,) = pullback(bar)
        np.testing.assert_allclose(x_bar.numpy(), 2 * X * bar, rtol=RTOL)


def test_numpy_arguments_have_gradients_inside_of_graphs(device: sad.Device) -> None:
    x = np.float32([1.0, 2.0])
    _, pullback = sad.vjp(lambda x, n: x * x * n, x, [1, 2])

    @sad.graph
    def f(bar: sad.Array) -> Any:
        by_x, by_n = pullback(bar)
        assert by_n is None
        return by_x + sad.grad(lambda x: sad.sum(x * bar))(x)

    np.testing.assert_array_equal(f(np.float32([3.0, 5.0])).numpy(), [9.0, 45.0])


def test_pullbacks_take_arrays_numpy_numbers_and_none(device: sad.Device) -> None:
    _, pullback = sad.vjp(total, X)
    for bar in (sad.array([2.0]), np.array([2.0]), [2.0], 2.0):
        np.testing.assert_allclose(pullback(bar)[0].numpy(), 4 * (X - T), rtol=RTOL)
    np.testing.assert_array_equal(pullback(None)[0].numpy(), np.zeros(3))


def test_arguments_without_floats_have_no_gradient_and_ints_no_cotangent(
    device: sad.Device,
) -> None:
    (a, b), pullback = sad.vjp(two, X, [1, 2, 3], dim=3)
    assert b.dtype is int
    x_bar, k_bar = pullback((np.ones(3), None))
    np.testing.assert_array_equal(x_bar.numpy(), [3.0, 3.0, 3.0])
    assert k_bar is None
    np.testing.assert_array_equal(a.numpy(), 3 * X)


def test_grad_of_a_kernel_dispatches_its_backward_alone(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    on_each_dispatch(device.runtime, monkeypatch, lambda p: names.append(p.program.name))
    x_bar = sad.grad(loss_of)(X, T, 1.0, dim=3, shapes={"loss": 1})
    np.testing.assert_allclose(x_bar.numpy(), 2 * (X - T), rtol=RTOL)
    assert names == ["loss_of_bwd"]


def test_argnums_choose_what_is_differentiated(device: sad.Device) -> None:
    call = {"dim": 3, "shapes": {"loss": 1}}
    weight_bar, t_bar = sad.grad(loss_of, argnums=(2, 1))(X, T, 1.0, **call)
    assert weight_bar.shape == ()
    assert float(weight_bar) == pytest.approx(float(np.sum((X - T) ** 2)), rel=RTOL)
    np.testing.assert_allclose(t_bar.numpy(), -2 * (X - T), rtol=RTOL)
    value, x_bar = sad.value_and_grad(loss_of)(X, T, 1.0, **call)
    assert value.item() == pytest.approx(float(np.sum((X - T) ** 2)), rel=RTOL)
    np.testing.assert_allclose(x_bar.numpy(), 2 * (X - T), rtol=RTOL)


def test_gradients_have_the_form_of_their_arguments(device: sad.Device) -> None:
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    bar = np.ones((2, 3), np.float32)
    material = Material(float3(1.0, 2.0, 3.0), 0.5, 7)
    _, pullback = sad.vjp(shade, material, n, dim=2)
    material_bar, n_bar = pullback(bar)
    assert isinstance(material_bar, Material)
    assert material_bar.id == 0
    np.testing.assert_allclose(material_bar.color.numpy(), 0.5 * n.sum(0), rtol=RTOL)
    assert float(material_bar.roughness) == pytest.approx(float((n * [1, 2, 3]).sum()), rel=RTOL)
    assert n_bar.shape == (2, 3)
    assert n_bar.dtype is float
    _, pullback = sad.vjp(shade, sad.array(material, dtype=Material),
                          sad.array(n, dtype=float3), dim=2)  # fmt: skip
    material_bar, n_bar = pullback(sad.array(bar, dtype=float3))
    assert material_bar.shape == ()
    np.testing.assert_allclose(material_bar.numpy()["color"], 0.5 * n.sum(0), rtol=RTOL)
    assert material_bar.numpy()["id"] == 0
    assert n_bar.shape == (2,)
    assert n_bar.dtype == float3


def test_structs_with_arrays_come_back_as_structs_of_gradients(device: sad.Device) -> None:
    vertices = np.arange(9, dtype=np.float32).reshape(3, 3)
    mesh = Mesh(vertices=vertices, indices=[2, 0, 2], scale=2.0)
    _, pullback = sad.vjp(gather, mesh, dim=3)
    (mesh_bar,) = pullback(np.ones((3, 3)))
    assert isinstance(mesh_bar, Mesh)
    np.testing.assert_allclose(mesh_bar.vertices.numpy(), [[2.0] * 3, [0.0] * 3, [4.0] * 3])
    assert float(mesh_bar.scale) == pytest.approx(float(vertices[[2, 0, 2]].sum()), rel=RTOL)
    assert mesh_bar.indices == 0


def test_accumulate_adds_in_place_to_what_an_earlier_call_returned(device: sad.Device) -> None:
    _, pullback = sad.vjp(square, X, dim=3)
    first = pullback(np.ones(3))
    again = pullback(np.float32([1.0, 10.0, 0.0]), accumulate=first)
    np.testing.assert_allclose(first[0].numpy(), 2 * X * [2.0, 11.0, 1.0], rtol=RTOL)
    assert again[0] is first[0]
    _, pullback = sad.vjp(lambda x: total(square(x, dim=3)), X)
    summed = pullback(1.0)
    expected = 2 * summed[0].numpy()
    np.testing.assert_allclose(pullback(1.0, accumulate=summed)[0].numpy(), expected, rtol=RTOL)


def test_accumulate_adds_to_slices_and_to_arrays_that_are_read(device: sad.Device) -> None:
    _, pullback = sad.vjp(square, X, dim=3)
    whole = sad.array(np.float32([1.0, 2.0, 3.0, 4.0]))
    pullback(np.ones(3), accumulate=(whole[1:],))
    np.testing.assert_allclose(whole.numpy(), [1.0, *(2 * X + [2.0, 3.0, 4.0])], rtol=RTOL)
    bar = sad.array(np.ones(3, np.float32))
    pullback(bar, accumulate=(bar,))
    np.testing.assert_allclose(bar.numpy(), 2 * X + 1, rtol=RTOL)


@sad.kernel
def lowest(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Min[float]):
    y[i % 2] = sad.min(y[i % 2], x[i] * w[i])


def test_accumulate_adds_to_the_gradients_of_extremes(device: sad.Device) -> None:
    x, w = np.float32([3, 1, 2, 5, -1, 4]), np.float32([1, 2, 3, 1, 2, 1])
    _, pullback = sad.vjp(lowest, x, w, dim=6, shapes={"y": 2})
    expected = np.float32([0, 20, 0, 0, 2, 0])
    total = pullback(np.float32([1, 10]))
    np.testing.assert_allclose(total[0], expected)
    again = pullback(np.float32([1, 10]), accumulate=total)
    assert again[0] is total[0]
    np.testing.assert_allclose(again[0], 2 * expected)


def test_accumulate_takes_one_array_for_two_arguments(device: sad.Device) -> None:
    x = sad.array(X)
    _, pullback = sad.vjp(product, x, x, dim=3)
    both = sad.array(np.zeros(3, np.float32))
    pullback(np.ones(3), accumulate=(both, both))
    np.testing.assert_allclose(both.numpy(), 2 * X, rtol=RTOL)


def test_jvp_pushes_tangents_forward(device: sad.Device) -> None:
    x_dot = np.float32([1.0, 0.5, -1.0])
    y, y_dot = sad.jvp(square, (X,), (x_dot,), dim=3)
    np.testing.assert_array_equal(y.numpy(), X * X)
    np.testing.assert_allclose(y_dot.numpy(), 2 * X * x_dot, rtol=RTOL)
    call = {"dim": 3, "shapes": {"loss": 1}}
    _, loss_dot = sad.jvp(loss_of, (X, T, 2.0), (None, None, 1.0), **call)
    assert loss_dot.item() == pytest.approx(float(np.sum((X - T) ** 2)), rel=RTOL)
    (_, b), (a_dot, b_dot) = sad.jvp(two, (X, [1, 2, 3]), (x_dot, None), dim=3)
    np.testing.assert_allclose(a_dot.numpy(), 3 * x_dot, rtol=RTOL)
    assert b_dot is None
    assert b.dtype is int


def test_min_gives_its_cotangent_to_the_lowest_winner(device: sad.Device) -> None:
    x = np.float32([3.0, 1.0, 1.0, 2.0])
    x_bar = sad.grad(smallest)(x, dim=4, shapes={"low": 1})
    np.testing.assert_array_equal(x_bar.numpy(), [0.0, 1.0, 0.0, 0.0])


# -- over functions ---------------------------------------------------------------------------


def test_functions_of_kernels_are_differentiated_through(device: sad.Device) -> None:
    x_bar = sad.grad(lambda x: total(square(x, dim=3)))(X)
    np.testing.assert_allclose(x_bar.numpy(), 4 * X * (X * X - T), rtol=RTOL)


def test_a_value_used_twice_sums_its_cotangents(device: sad.Device) -> None:
    def f(x: sad.Array) -> sad.Array:
        y = square(x, dim=3)
        return total(y * x + y[::-1])

    x = X.astype(np.float64)
    y = x * x
    outer = 2 * (y * x + y[::-1] - T)
    expected = outer * y + (outer * x + outer[::-1]) * 2 * x
    np.testing.assert_allclose(sad.grad(f)(X).numpy(), expected, rtol=RTOL)


def test_arithmetic_broadcasts_backward_as_forward(device: sad.Device) -> None:
    m = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    row, column = np.float32([1.0, 2.0, 4.0]), np.float32([[3.0], [5.0]])

    def f(m: Any, row: Any, column: Any, factor: Any) -> Any:
        return (m * row + column / row) * factor

    _, pullback = sad.vjp(f, m, row, column, 2.0)
    bars = pullback(np.ones((2, 3)))
    np.testing.assert_allclose(bars[0].numpy(), np.broadcast_to(2 * row, (2, 3)), rtol=RTOL)
    np.testing.assert_allclose(bars[1].numpy(), 2 * (m.sum(0) - column.sum() / row**2), rtol=RTOL)
    np.testing.assert_allclose(bars[2].numpy(), [[2 * (1 / row).sum()]] * 2, rtol=RTOL)
    assert float(bars[3]) == pytest.approx(float((m * row + column / row).sum()), rel=RTOL)


def test_slices_take_derivatives_along(device: sad.Device) -> None:
    m = np.arange(12, dtype=np.float32).reshape(3, 4)
    for key in (np.s_[1], np.s_[1:], np.s_[:, 1], np.s_[::-1, ::2], np.s_[None, 2, 1:3]):
        y, pullback = sad.vjp(lambda x, key=key: x[key] * 2.0, m)
        expected = np.zeros_like(m)
        expected[key] = 2.0
        np.testing.assert_array_equal(pullback(np.ones(y.shape))[0].numpy(), expected)
        _, y_dot = sad.jvp(lambda x, key=key: x[key] * 2.0, (m,), (m,))
        np.testing.assert_array_equal(y_dot.numpy(), 2 * m[key])


def test_containers_are_arguments_and_results(device: sad.Device) -> None:
    def f(parameters: dict[str, Any], pair: tuple[Any, Any]) -> dict[str, Any]:
        return {"a": parameters["x"] * pair[0], "b": [parameters["s"] * pair[1], 7]}

    arguments = ({"x": X, "s": 2.0, "name": "kept"}, (sad.array(X), 3))
    out, pullback = sad.vjp(f, *arguments)
    assert out["b"][1] == 7
    first, second = pullback({"a": np.ones(3), "b": [1.0, None]})
    np.testing.assert_array_equal(first["x"].numpy(), X)
    assert float(first["s"]) == 3.0
    assert first["name"] is None
    np.testing.assert_array_equal(second[0].numpy(), X)
    assert second[1] is None


def test_structs_pass_through_functions(device: sad.Device) -> None:
    vertices = np.arange(9, dtype=np.float32).reshape(3, 3)
    mesh = Mesh(vertices=sad.array(vertices, dtype=float3), indices=sad.array([2, 0]), scale=2.0)
    material = Material(float3(1.0, 2.0, 3.0), 0.5, 7)

    def f(mesh: Mesh, material: Material) -> Any:
        return shade(material, gather(mesh, dim=2), dim=2)

    _, pullback = sad.vjp(f, mesh, material)
    mesh_bar, material_bar = pullback(np.ones((2, 3)))
    expected = np.zeros((3, 3))
    expected[[2, 0]] = np.float32([1.0, 2.0, 3.0])
    np.testing.assert_allclose(mesh_bar.vertices.numpy(), expected, rtol=RTOL)
    assert mesh_bar.indices == 0
    np.testing.assert_allclose(material_bar.color.numpy(), vertices[[2, 0]].sum(0), rtol=RTOL)
    assert material_bar.id == 0


def test_captured_arrays_are_constants_and_unused_arguments_have_zero_gradients(
    device: sad.Device,
) -> None:
    captured = sad.array([10.0, 20.0, 30.0])
    x_bar, unused_bar = sad.grad(lambda x, unused: total(x * captured), argnums=(0, 1))(X, T)
    np.testing.assert_allclose(
        x_bar.numpy(), 2 * (X * captured.numpy() - T) * captured.numpy(), rtol=RTOL
    )
    np.testing.assert_array_equal(unused_bar.numpy(), np.zeros(3))


def test_scalars_of_python_become_device_scalars_with_gradients(device: sad.Device) -> None:
    value, weight_bar = sad.value_and_grad(lambda w: total(X, w * w))(3.0)
    squares = float(np.sum((X - T) ** 2))
    assert value.item() == pytest.approx(9 * squares, rel=RTOL)
    assert float(weight_bar) == pytest.approx(6 * squares, rel=RTOL)


def test_jvp_of_functions_follows_every_step(device: sad.Device) -> None:
    x_dot = np.float32([1.0, -1.0, 0.5])
    _, y_dot = sad.jvp(lambda x: total(square(x, dim=3) + x[::-1]), (X,), (x_dot,))
    outer = 2 * (X * X + X[::-1] - T)
    assert y_dot.item() == pytest.approx(
        float(np.sum(outer * (2 * X * x_dot + x_dot[::-1]))), rel=RTOL
    )


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobians_have_the_shape_of_result_and_argument(device: sad.Device, mode: str) -> None:
    found = sad.jacobian(square, mode=mode)(X, dim=3)
    np.testing.assert_allclose(found.numpy(), np.diag(2 * X), rtol=RTOL)
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    material = {"color": (1.0, 2.0, 3.0), "roughness": 0.5, "id": 0}
    found = sad.jacobian(shade, argnums=1, mode=mode)(material, n, dim=2).numpy()
    assert found.shape == (2, 3, 2, 3)
    expected = np.zeros((2, 3, 2, 3))
    for k in range(2):
        expected[k, :, k, :] = np.diag([0.5, 1.0, 1.5])
    np.testing.assert_allclose(found, expected, rtol=RTOL)


def test_halves_have_gradients_in_half(device: sad.Device) -> None:
    if "half" not in device.capabilities.features:
        pytest.skip("the device has no half")

    @sad.kernel
    def picked(i: sad.Index, x: sad.In[sad.half], y: sad.Out[float]):
        y[i] = float(x[i // 2]) * 2.0

    x = np.float16([1.0, 2.0, 3.0])
    _, pullback = sad.vjp(picked, x, dim=6)
    (x_bar,) = pullback(np.arange(6))
    assert x_bar.dtype == sad.half
    np.testing.assert_array_equal(x_bar.numpy(), np.float16([2.0, 10.0, 18.0]))


def test_nothing_is_traced_after_a_transform(device: sad.Device) -> None:
    kept: list[sad.Array] = []

    def f(x: sad.Array) -> sad.Array:
        kept.append(x)
        return total(x)

    sad.grad(f)(X)
    np.testing.assert_array_equal(kept[0].numpy(), X)
    out, _ = sad.vjp(lambda x: x, X)
    np.testing.assert_array_equal((out * 2.0).numpy(), 2 * X)


# -- refusals ---------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], Any], type[sad.Error], str]] = [
    (lambda: sad.vjp(lambda x: x.numpy(), X), sad.DerivativeError, "SR0450"),
    (lambda: sad.vjp(lambda x: float(x), 1.0), sad.DerivativeError, "SR0450"),
    (lambda: sad.vjp(lambda x: 1 if x else 2, 1.0), sad.DerivativeError, "SR0450"),
    (lambda: sad.vjp(lambda x: np.asarray(x), X), sad.DerivativeError, "SR0450"),
    (lambda: sad.vjp(two, X, [1, 2, 3], dim=3)[1](np.ones(3)), sad.DerivativeError, "SR0452"),
    (lambda: sad.vjp(lambda x: (x, x), X)[1]({"a": X}), sad.DerivativeError, "SR0452"),
    (lambda: sad.vjp(square, x=X, dim=3), sad.DerivativeError, "SR0453"),
    (lambda: sad.vjp(lambda x, y: x, X, y=X), sad.DerivativeError, "SR0453"),
    (lambda: sad.vjp(lambda x: x, np.zeros(2, [("a", "f4")])), sad.DerivativeError, "SR0454"),
    (lambda: sad.grad(total, argnums=2)(X), sad.DerivativeError, "SR0455"),
    (lambda: sad.grad(total, argnums="x")(X), sad.DerivativeError, "SR0455"),
    (lambda: sad.grad(two, argnums=1)(X, [1, 2, 3], dim=3), sad.DerivativeError, "SR0456"),
    (lambda: sad.grad(square)(X, dim=3), sad.DerivativeError, "SR0457"),
    (lambda: sad.grad(lambda x: 3.0)(X), sad.DerivativeError, "SR0457"),
    (lambda: sad.vjp(square, X, dim=3)[1](X, accumulate=()), sad.DerivativeError, "SR0458"),
    (lambda: sad.jvp(square, (X,), (X, X), dim=3), sad.DerivativeError, "SR0459"),
    (lambda: sad.jacobian(two)(X, [1, 2, 3], dim=3), sad.DerivativeError, "SR0460"),
    (lambda: sad.jacobian(square, mode="both"), sad.DerivativeError, "SR0461"),
    (lambda: sad.vjp(square, X, dim=3)[1](np.ones(2)), sad.ShapeError, "SR0382"),
    (lambda: sad.jvp(square, (X,), (np.ones(2),), dim=3), sad.ShapeError, "SR0382"),
]


@pytest.mark.parametrize(("call", "kind", "code"), REFUSED)
def test_what_cannot_be_differentiated_is_refused(
    device: sad.Device, call: Callable[[], Any], kind: type[sad.Error], code: str
) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert raised.value.code == code


def test_argnums_choose_the_arguments_of_vjp_and_jvp(device: sad.Device) -> None:
    @sad.kernel
    def scaled(i: sad.Index, a: sad.In[float], b: sad.In[float], s: float, n: int,
               y: sad.Out[float]):  # fmt: skip
        y[i] = a[i] * b[i] * s * n

    a, b = np.float32([1.0, 2.0]), np.float32([3.0, 4.0])
    args, ones = (a, b, 2.0, 2), [1.0, 1.0]
    graph = sad.graph(lambda a, b, s, n: scaled(a, b, s, 2) + 0.0 * n)
    for f in (scaled, lambda *args: scaled(*args), graph):
        by_b = sad.vjp(f, *args, argnums=1)[1](ones)
        np.testing.assert_allclose(by_b.numpy(), 4 * a)
        by_s, by_a = sad.vjp(f, *args, argnums=(2, 0))[1](ones)
        assert by_s.item() == 22.0
        np.testing.assert_allclose(by_a.numpy(), 4 * b)
        np.testing.assert_allclose(sad.jvp(f, args, [1.0, 0.0], argnums=1)[1].numpy(), [4.0, 0.0])
        both = sad.jvp(f, args, (1.0, ones), argnums=(2, 0))[1]
        np.testing.assert_allclose(both.numpy(), 2 * a * b + 4 * b)
        wrong = {
            "SR0456": lambda f=f: sad.vjp(f, *args, argnums=3),
            "SR0455": lambda f=f: sad.vjp(f, *args, argnums=7),
            "SR0459": lambda f=f: sad.jvp(f, args, (1.0,), argnums=(2, 0)),
        }
        for code, call in wrong.items():
            with pytest.raises(sad.DerivativeError) as caught:
                call()
            assert caught.value.code == code
    pullback = sad.vjp(scaled, *args, argnums=1)[1]
    np.testing.assert_allclose(pullback(ones, accumulate=pullback(ones)).numpy(), 8 * a)


@sad.struct
class Spring:
    rest: float
    direction: float2


@sad.struct
class Net:
    points: sad.In[float]
    stiffness: float
    spring: Spring


@sad.kernel
def tension(i: sad.Index, net: Net, y: sad.Out[float]):
    d = net.spring.direction
    y[i] = net.stiffness * net.points[i] * net.spring.rest + sad.dot(d, d)


@pytest.mark.parametrize("spring", [Spring(3, (1, 2)), {"rest": 3, "direction": (1, 2)}])
@pytest.mark.parametrize("points", [[1, 2], np.array([1, 2])])
def test_ints_in_float_fields_of_structs_have_gradients(
    device: sad.Device, points: Any, spring: Any
) -> None:
    """A kernel reads the fields as floats, so functions that call it differentiate by them."""

    def loss(net: Any) -> Any:
        return sad.sum(tension(net, dim=2))

    net = Net(points, 2, spring)
    tangent = {
        "points": [1.0, 0.0],
        "stiffness": 1.0,
        "spring": {"rest": None, "direction": (1.0, 0.0)},
    }
    for gradient in (
        sad.grad(loss)(net),
        sad.grad(sad.graph(loss))(net),
        sad.graph(sad.grad(loss))(net),
        sad.vjp(tension, net, dim=2)[1]([1.0, 1.0])[0],
    ):
        np.testing.assert_allclose(gradient.points.numpy(), [6.0, 6.0])
        np.testing.assert_allclose(gradient.stiffness.numpy(), 9.0)
        by_spring = gradient.spring
        parts = by_spring if isinstance(by_spring, dict) else vars(by_spring)
        np.testing.assert_allclose(parts["rest"].numpy(), 6.0)
        np.testing.assert_allclose([x.item() for x in parts["direction"]], [4.0, 8.0])
    for function in (loss, sad.graph(loss)):
        np.testing.assert_allclose(sad.jvp(function, (net,), (tangent,))[1].numpy(), 19.0)


@sad.kernel
def cubes(i: sad.Index, x: sad.In[float], scale: float3, total: sad.Add[float]):
    total[0] += scale.x * x[i] * x[i] * x[i]


def cubed(x: Any, scale: Any) -> Any:
    return cubes(x, scale, dim=x.shape[0], shapes={"total": 1})


@pytest.mark.parametrize("function", [cubes, cubed, sad.graph(cubed)])
def test_pullbacks_keep_the_arguments_in_graphs_and_transforms(
    device: sad.Device, function: Callable[..., Any]
) -> None:
    """The caller changes NumPy arrays after `vjp`, and pulls back under something else."""
    x, scale = np.float32([1, 2, 3]), float3(2, 0, 0)
    call = {"dim": 3, "shapes": {"total": 1}} if function is cubes else {}
    out, pullback = sad.vjp(function, x, scale, **call)
    shape = out.shape
    x[:] = 0.0
    scale[:] = 0.0

    def pulled(bar: Any) -> Any:
        return pullback(sad.reshape(bar, shape))[0]

    expected = np.float32([6, 24, 54])
    bar = sad.array(2.0)
    np.testing.assert_allclose(pulled(bar).numpy(), 2.0 * expected)
    np.testing.assert_allclose(sad.graph(pulled)(bar).numpy(), 2.0 * expected)
    np.testing.assert_allclose(sad.jvp(pulled, (bar,), (1.0,))[1].numpy(), expected)
    by_bar = sad.grad(lambda b: sad.sum(pulled(b)))(bar)
    np.testing.assert_allclose(by_bar.numpy(), expected.sum())


def test_empty_lists_stay_lists(device: sad.Device) -> None:
    """An array of no elements in its place would swallow what is added to the list."""

    def loss(net: Any) -> Any:
        assert net["layers"] == []
        return sad.sum(sum((k * net["x"] for k in [*net["layers"], 2.0]), 0.0))

    net = {"x": np.float32([1, 2]), "layers": [], "rest": [(), {}]}
    for gradient in (sad.grad(loss), sad.grad(sad.graph(loss)), sad.graph(sad.grad(loss))):
        by_net = gradient(net)
        np.testing.assert_allclose(by_net["x"].numpy(), [2.0, 2.0])
        assert (by_net["layers"], by_net["rest"]) == ([], [(), {}])
