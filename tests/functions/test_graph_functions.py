"""Functions on arrays as users call them: at once and as graphs, on each runtime."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3

pytestmark = pytest.mark.gpu

# float32, a few dozen operations.
RTOL = 2e-5
X = np.float32([1.0, 2.0, -3.0, 0.5])


@sad.struct
class Pair:
    a: float
    v: float2


@sad.function
def weighted(p: Pair, weight: float) -> float:
    return weight * p.a * p.v.x


@sad.function
def product_and_sum(a: float, b: float) -> tuple[float, float]:
    return a * b, a + b


@sad.kernel
def scaled_square(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i] * x[i]


@sad.kernel
def add_up(i: sad.Index, p: Pair, x: sad.In[float3], k: sad.Const[int], total: sad.Add[float]):
    total[i % k] += p.a * x[i].x + p.v.y * x[i].z


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=RTOL, atol=RTOL)


# -- at once ----------------------------------------------------------------------------------


def test_operators_run_at_once(device: sad.Device) -> None:
    x = sad.array(X)
    assert sad.sum(x).item() == X.sum()
    assert sad.min(x).item() == -3.0
    near(sad.max(x, 0.0), np.maximum(X, 0))
    near(sad.maximum(x, 0), np.maximum(X, 0))
    near(sad.sin(x), np.sin(X))
    near(sad.where(x > 0.0, x, -1.0), np.where(X > 0, X, -1))
    near(sad.scan(sad.mul, X, axis=0), np.cumprod(X))
    near(sad.stack((x, x))[:, 1], [2, 2])
    near(x[[3, 0]], X[[3, 0]])
    assert (x @ x).item() == pytest.approx(float(X @ X))
    near(sad.transpose(sad.array(np.ones((2, 3)))), np.ones((3, 2)))
    assert sad.any(x > 1.0).item() is True
    near(sad.zeros(2) + sad.iota(2) + sad.full((2,), 0.5), [0.5, 1.5])
    near(sad.detach(x), X)
    with pytest.raises(sad.ShapeError, match="SR0340"):
        x[x > 0.0]


def test_numbers_are_arrays_without_axes(device: sad.Device) -> None:
    @sad.graph
    def more(x: sad.Array[float]) -> sad.Array[float]:
        return x + sad.sum(2.0) + sad.max((1.0, 3.0))

    with device:
        assert float(sad.sum(2.0)) == 2.0
        assert int(sad.mean((1.0, 3.0))) == 2
        np.testing.assert_array_equal(sad.reshape(2.0, (1,)).numpy(), [2.0])
        np.testing.assert_array_equal(more([1.0, 2.0]).numpy(), [6.0, 7.0])
        value, pullback = sad.vjp(lambda x: x * sad.sum(3.0), 2.0)
        assert (float(value), float(pullback(1.0)[0])) == (6.0, 3.0)


def test_functions_on_arrays_are_mapped(device: sad.Device) -> None:
    x = sad.array(X)
    pairs = Pair(x, float2(x, 2.0))
    assert pairs.shape == (4,)
    near(weighted(pairs, 0.5), 0.5 * X * X)
    product, total = product_and_sum(x, 3.0)
    near(product, 3 * X)
    near(total, 3 + X)
    near(sad.map(lambda a: sad.sum(a * x), x), X.sum() * X)


def test_gradients_of_functions_that_run_at_once(device: sad.Device) -> None:
    def loss(x: sad.Array, w: sad.Array) -> sad.Array:
        y = scaled_square(x, 2.0, dim=4)
        return sad.sum(sad.scan(sad.add, y) * w[[0, 1, 0, 1]])

    w = np.float32([1.0, -2.0])
    x_bar, w_bar = sad.grad(loss, argnums=(0, 1))(X, w)
    totals = np.cumsum(2 * X * X)
    picked = w[[0, 1, 0, 1]]
    near(x_bar, 4 * X * picked[::-1].cumsum()[::-1])
    near(w_bar, [totals[0] + totals[2], totals[1] + totals[3]])
    _, moved = sad.jvp(loss, (X, w), (X, None))
    np.testing.assert_allclose(moved.item(), float(x_bar.numpy() @ X), rtol=RTOL)


# -- graphs -----------------------------------------------------------------------------------


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    muls = sad.scan(sad.mul, x)
    return sad.sum(muls * x)


def reference(x: np.ndarray) -> tuple[float, np.ndarray]:
    x = x.astype(np.float64)
    muls = np.array([np.prod(x[: i + 1]) for i in range(len(x))])
    bars = np.array(
        [
            muls[k] + sum(x[i] * np.prod(np.delete(x[: i + 1], k)) for i in range(k, len(x)))
            for k in range(len(x))
        ]
    )
    return float(muls @ x), bars


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_futharks_example(count: int, device: sad.Device) -> None:
    x = np.float32([1.5, 0.0, 2.0, -0.5])[:count]
    value, gradient = reference(x)
    found, x_bar = sad.value_and_grad(scan_product)(x)
    assert found.item() == pytest.approx(value, rel=RTOL)
    near(x_bar, gradient)
    dot = np.ones(count, np.float32)
    assert sad.jvp(scan_product, (x,), (dot,))[1].item() == pytest.approx(gradient.sum(), rel=RTOL)


def test_one_trace_serves_every_size(device: sad.Device) -> None:
    traces = itertools.count()

    @sad.graph
    def doubled(x: sad.Array) -> Any:
        next(traces)
        return {"y": x[1:] * 2.0, "n": x.shape[0] * 2}

    for count in (4, 3, 2):
        found = doubled(X[:count])
        near(found["y"], 2 * X[1:count])
        assert found["n"] == 2 * count
    assert repr(traces) == "count(1)"
    near(doubled(X[:0])["y"], [])
    doubled(np.ones((3, 2), np.float32))
    assert repr(traces) == "count(3)"


W = np.float32([1.0, 2.0, 3.0, 4.0])
SCALE = 2.0


@sad.graph
def with_captures(x: sad.Array) -> sad.Array:
    return x * W * SCALE


def test_what_a_graph_captures_is_read_at_each_call(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    near(with_captures(X), X * W * 2)
    monkeypatch.setitem(globals(), "W", sad.array(np.float32([0.0, 1.0, 0.0, 1.0])))
    near(with_captures(X), X * [0, 2, 0, 2])
    monkeypatch.setitem(globals(), "W", sad.array(np.float32([1.0, 1.0, 0.0, 1.0])))
    near(with_captures(X), X * [2, 2, 0, 2])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    near(with_captures(X), X * [3, 3, 0, 3])


def test_an_array_that_nothing_leads_to_is_refused(device: sad.Device) -> None:
    kept = iter([sad.array(X), sad.array(X)])
    read = sad.graph(lambda x: x + next(kept))
    with pytest.raises(sad.LanguageError, match="SR0338"):
        read(X)
    near(sad.graph(lambda x: x + sad.array(X))(X), 2 * X)


def test_kernels_are_called_inside(device: sad.Device) -> None:
    @sad.graph
    def total(x: sad.Array, factor: float, p: Any) -> Any:
        y = scaled_square(x, factor, dim=x.shape[0])
        rows = float3(x, y, 1.0)
        return y, add_up(p, rows, 2, dim=x.shape, shapes={"total": 2})

    p = Pair(0.5, (1.0, 2.0))
    y, sums = total(X, 3, p)
    near(y, 3 * X * X)
    each = 0.5 * X + 2.0
    near(sums, [each[0] + each[2], each[1] + each[3]])
    x_bar, factor_bar = sad.grad(
        lambda x, f: sad.sum(sad.graph(lambda x, f: total(x, f, p)[0] * x)(x, f)), (0, 1)
    )(X, 3.0)
    near(x_bar, 9 * X * X)
    assert factor_bar.item() == pytest.approx(float((X**3).sum()), rel=RTOL)


def test_arguments_are_annotated(device: sad.Device) -> None:
    @sad.graph
    def product(a: sad.Array[float3, "h", "w"], b: sad.Array[float, "w"], c: float) -> Any:
        return a * b * c

    a, b = np.ones((2, 4, 3)), np.arange(4)
    near(product(a, b, 2), a * b[:, None] * 2)
    a_bar = sad.grad(lambda a: sad.sum(product(a, b, 2).x))(a)
    assert a_bar.shape == (2, 4, 3)
    near(a_bar, np.eye(3)[0] * b[:, None] * 2 * np.ones((2, 1, 1)))
    for wrong, code in [((a, b[:3], 2), "SR0347"), ((a[0], b, 2), "SR0345")]:
        with pytest.raises(sad.ShapeError, match=code):
            product(*wrong)
    with pytest.raises(sad.ShapeError, match="SR0346"):
        sad.graph(_three)(X)


def test_one_struct_is_annotated_as_an_array_without_axes(device: sad.Device) -> None:
    @sad.graph
    def total(p: sad.Array[Pair, ()], x: sad.Array[float3, "n"]) -> Any:
        return sad.sum(add_up(p, x, 2, dim=x.shape[0], shapes={"total": 2}))

    p, x = Pair(2.0, float2(0.0, 3.0)), np.float32([[1, 0, 4], [5, 0, 6]])
    assert total(p, x).item() == 2 * 6 + 3 * 10
    p_bar = sad.grad(total)(p, x)
    assert (p_bar.a.item(), *p_bar.v.numpy()) == (6.0, 0.0, 10.0)
    whole = sad.array(p, dtype=Pair)
    on_device = sad.grad(total)(whole, x).numpy()
    assert (on_device["a"], *on_device["v"]) == (6.0, 0.0, 10.0)


def test_gradients_by_fields_of_one_struct_are_differentiated_again(device: sad.Device) -> None:
    @sad.graph
    def total(p: sad.Array[Pair, ()]) -> Any:
        return p.a * p.a * p.a + p.a * p.v.y

    def slope(a: Any, y: Any) -> Any:
        p_bar = sad.grad(total)(Pair(a, float2(0.0, y)))
        return p_bar.a + p_bar.v.y * p_bar.v.y

    by_a, by_y = sad.grad(slope, argnums=(0, 1))(2.0, 3.0)
    # a_bar = 3 a^2 + y and y_bar = a, so slope = 3 a^2 + y + a^2
    assert (by_a.item(), by_y.item()) == (16.0, 1.0)


def test_one_struct_of_wrong_shape_is_refused(device: sad.Device) -> None:
    @sad.graph
    def total(p: sad.Array[Pair, ()], x: sad.Array[float3, "n"]) -> Any:
        return sad.sum(add_up(p, x, 2, dim=x.shape[0], shapes={"total": 2}))

    x = np.float32([[1, 0, 4], [5, 0, 6]])
    with pytest.raises(sad.ShapeError, match="SR0345"):
        total(sad.array({"a": [1.0], "v": [[1.0, 2.0]]}, dtype=Pair), x)


def test_a_named_size_is_no_other_size_whatever_its_name(device: sad.Device) -> None:
    @sad.graph
    def joined(a: Any, b: Any, c: sad.Array[float, "n0"], d: sad.Array[float, "n2"]) -> Any:
        return sad.concatenate([a, b, c, d]), (a.shape[0], b.shape[0], c.shape[0], d.shape[0])

    @sad.graph
    def added(a: Any, c: sad.Array[float, "n0"]) -> Any:
        return a + c

    parts = [np.arange(n, dtype=np.float32) + n for n in (2, 3, 4, 5)]
    found, counts = joined(*parts)
    near(found, np.concatenate(parts))
    assert counts == (2, 3, 4, 5)
    near(added(parts[0], parts[0]), 2 * parts[0])
    with pytest.raises(sad.ShapeError, match="SR0379"):
        added(parts[0], parts[1])


@pytest.mark.parametrize("extent", ["$group_limit", -1, 2.0, None, True])
def test_extents_are_names_and_numbers(extent: Any, device: sad.Device) -> None:
    """Names do not begin like those of plans."""

    @sad.graph
    def doubled(a: sad.Array[float, extent]) -> Any:
        return a * 2.0

    with pytest.raises(sad.LanguageError, match="SR0348"):
        doubled(X)


def test_extents_may_be_a_tuple(device: sad.Device) -> None:
    @sad.graph
    def doubled(a: sad.Array[float, (2, "n")]) -> Any:
        return a * 2.0

    near(doubled(np.ones((2, 3), np.float32)), np.full((2, 3), 2.0))
    with pytest.raises(sad.ShapeError, match="SR0346"):
        doubled(np.ones((3, 3), np.float32))


def _three(x: sad.Array[float, 3]) -> Any:
    return x


def test_a_size_may_stand_without_quotes(device: sad.Device) -> None:
    @sad.graph
    def scaled(a: sad.Array[float3, h, w], b: sad.Array[float, w], other: Unknown) -> Any:
        return a * b * other

    a, b = np.ones((2, 4, 3)), np.arange(4)
    near(scaled(a, b, 2), a * b[:, None] * 2)
    with pytest.raises(sad.ShapeError, match="SR0347"):
        scaled(a, b[:3], 2)


def test_an_array_of_what_is_not_known_is_refused() -> None:
    @sad.graph
    def same(x: sad.Array[flot, "n"]) -> Any:
        return x

    with pytest.raises(sad.LanguageError, match="name 'flot' is not defined") as raised:
        same(X)
    assert raised.value.code == "SR0301"


def test_a_graph_of_any_number_of_arguments_has_derivatives(device: sad.Device) -> None:
    @sad.graph
    def product(*factors: Any) -> Any:
        result = factors[0]
        for x in factors[1:]:
            result = result * x
        return sad.sum(result)

    given = (X, 2 * X, 3 * X)
    for by_x, other in zip(sad.grad(product, argnums=(0, 2))(*given), (6, 2), strict=True):
        near(by_x, other * X * X)
    near(sad.jvp(product, given, given)[1], 18 * (X**3).sum())
    near(sad.hvp(product, given[:2], (X, 0 * X))[1], X)


# -- derivatives of derivatives ---------------------------------------------------------------


@sad.graph
def cubes(x: sad.Array) -> sad.Array:
    return sad.sum(x**3)


def rosenbrock(x: sad.Array) -> sad.Array:
    return sad.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_hessians_times_vectors(device: sad.Device) -> None:
    v = np.float32([1.0, -1.0, 0.5, 2.0])
    near(sad.hvp(cubes, (X,), (v,)), 6 * X * v)
    hessian = np.zeros((4, 4))
    for i in range(3):
        hessian[i, i] += 1200 * X[i] ** 2 - 400 * X[i + 1] + 2
        hessian[i, i + 1] = hessian[i + 1, i] = -400 * X[i]
        hessian[i + 1, i + 1] += 200
    near(sad.hvp(rosenbrock, (X,), (v,)), hessian @ v)
    first, second = sad.hvp(lambda x, k, y: sad.sum(x * x * y), (X, 3, X), (v, None, None))[::2]
    near(first, 2 * X * v)
    near(second, 2 * X * v)


def test_transforms_nest_to_any_order(device: sad.Device) -> None:
    second = sad.grad(lambda x: sad.sum(sad.grad(cubes)(x)))
    near(second(X), 6 * X)
    third = sad.grad(lambda x: sad.sum(second(x)))
    near(third(X), np.full(4, 6))
    near(sad.graph(lambda x: third(x) * x)(X), 6 * X)
    inner = sad.grad(lambda y, x: sad.sum(y * x))  # d/dy, where x comes from the outside
    near(sad.grad(lambda x: sad.sum(inner(x, x) * x))(X), 2 * X)
    _, pullback = sad.vjp(lambda x: sad.vjp(cubes, x)[1](2.0)[0], X)
    near(pullback(np.ones(4))[0], 12 * X)
    _, moved = sad.jvp(lambda x: sad.jvp(cubes, (x,), (x,))[1], (X,), (X,))
    assert moved.item() == pytest.approx(float((9 * X**3).sum()), rel=RTOL)


def test_each_element_of_a_mapped_function_has_its_own_derivative(device: sad.Device) -> None:
    near(sad.map(sad.grad(lambda a: a**3), X), 3 * X * X)
    near(sad.map(lambda a: sad.grad(lambda b: sad.sum(b * X) * b)(a), X), 2 * X * X.sum())


def test_jacobians_of_graphs(device: sad.Device) -> None:
    for mode in ("reverse", "forward"):
        found = sad.jacobian(sad.graph(lambda x: x[::-1] * x), mode=mode)(X)
        near(found, np.diag(X[::-1]) + np.fliplr(np.diag(X)))


def test_gradcheck_judges_graphs(device: sad.Device) -> None:
    assert sad.gradcheck(scan_product, X).identity is not None


def test_gradients_have_the_form_of_trees(device: sad.Device) -> None:
    @sad.graph
    def loss(params: Any, k: int) -> sad.Array:
        return sad.sum(params["w"] * params["b"][0]) * k

    value, found = sad.value_and_grad(loss)({"w": X, "b": (2.0, 5)}, 3)
    assert value.item() == pytest.approx(6 * float(X.sum()))
    near(found["w"], [6] * 4)
    assert found["b"][0].item() == pytest.approx(3 * float(X.sum()))
    assert found["b"][1] is None


def test_an_own_pullback_is_used(device: sad.Device) -> None:
    @sad.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 2.0

    clipped.defvjp(lambda x: (x * 2.0, ()), lambda _, bar: (sad.clamp(bar, -1.0, 1.0),))
    near(sad.grad(lambda x: sad.sum(clipped(x) * X))(X), np.clip(X, -1, 1))
    near(clipped(X), 2 * X)
    near(sad.grad(lambda x: sad.sum(sad.checkpoint(lambda y: y * y)(x)))(X), 2 * X)
    with pytest.raises(sad.DerivativeError, match="SR0472"):
        sad.jvp(clipped, (X,), (X,))


def test_bodies_capture_arrays_that_are_on_the_device(device: sad.Device) -> None:
    x = sad.array(X)
    near(sad.fori_loop(3, lambda _, a: a * x, sad.full(x.shape, 1.0)), X**3)
    limit = sad.sum(x * 0.0) + 2.0
    _, found = sad.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1.0, c[1] * x), (0.0, x), 8)
    near(found, X**3)
    near(sad.grad(lambda z: sad.sum(sad.fori_loop(2, lambda _, a: a * z * x, z)))(X), 3 * X**4)


def test_a_quotient_that_where_does_not_choose_has_no_derivative(device: sad.Device) -> None:
    def sinc(x: sad.Array) -> sad.Array:
        return sad.sum(sad.where(x != 0.0, sad.sin(x) / x, 1.0))

    x = np.float32([1.0, 0.0, -2.0])
    expected = [np.cos(1) - np.sin(1), 0.0, -np.cos(2) / 2 + np.sin(2) / 4]
    near(sad.grad(sinc)(x), expected)
    near(sad.grad(sad.graph(sinc))(x), expected)


def test_a_call_like_the_last_one_sees_its_own_arrays_and_captures(device: sad.Device) -> None:
    captured = {"factor": 2.0, "offset": sad.array(X)}

    @sad.graph
    def scaled(x: sad.Array[float, "n"]) -> sad.Array[float]:
        return captured["factor"] * x + captured["offset"]

    def check(x: np.ndarray[Any, Any]) -> None:
        expected = captured["factor"] * x + np.asarray(captured["offset"])[: len(x)]
        np.testing.assert_array_equal(scaled(sad.array(x)), expected)

    check(X)
    check(-X)
    captured["factor"] = 3.0
    check(X)
    captured["offset"] = sad.array(-X)
    check(X)
    captured["offset"] = sad.array(X[:2])
    check(X[:2])
    check(X[2:])
    np.testing.assert_array_equal(scaled([1.0, 2.0]), 3.0 * np.float32([1.0, 2.0]) + X[:2])
    np.testing.assert_array_equal(scaled(x=sad.array(X[:2])), 4.0 * X[:2])


def test_a_call_like_the_last_one_may_leave_out_what_has_a_default(device: sad.Device) -> None:
    @sad.graph
    def scaled(x: sad.Array[float, "n"], factor: float = 2.0) -> sad.Array[float]:
        return factor * x

    x = sad.array(X)
    for _ in range(2):
        np.testing.assert_array_equal(scaled(x), 2.0 * X)
        np.testing.assert_array_equal(scaled(x, sad.array(3.0)), 3.0 * X)
        np.testing.assert_array_equal(scaled(x, 4.0), 4.0 * X)
