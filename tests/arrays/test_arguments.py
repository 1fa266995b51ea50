"""Arguments of calls in all their forms: starts of scans, defaults, structs, objects of others."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2, float3

pytestmark = pytest.mark.gpu

X = np.float32([1.0, 2.0, 3.0])
V = np.arange(6, dtype=np.float32).reshape(2, 3)

# -- what reductions and scans begin with ----------------------------------------------------

STARTS: dict[str, Any] = {
    "host vector": float3(1.0, 2.0, 3.0),
    "numpy": np.float32([1.0, 2.0, 3.0]),
    "double": np.float64([1.0, 2.0, 3.0]),
    "list": [1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("name", STARTS)
def test_a_vector_on_the_host_starts_a_reduction(name: str, device: sad.Device) -> None:
    init, v, bins = STARTS[name], sad.array(V, dtype=float3), sad.array([0, 2])
    first = np.float32([1.0, 2.0, 3.0])
    calls: list[tuple[Callable[..., sad.Array], Any]] = [
        (lambda v, i: sad.scan(sad.add, v, i), first + np.cumsum(V, 0)),
        (lambda v, i: sad.reduce(sad.add, v, i), first + V.sum(0)),
        (
            lambda v, i: sad.segment_reduce(sad.add, i, 3, bins, v),
            first + np.stack([V[0], 0 * V[0], V[1]]),
        ),
    ]
    for call, expected in calls:
        at_once, as_argument = call(v, init), sad.graph(call)(v, init)
        captured = sad.graph(lambda v, call=call: call(v, init))(v)
        for found in (at_once, as_argument, captured):
            assert found.dtype is float3
            np.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize("init", [np.float64(4.0), np.array(4.0), [4.0], np.int32([[4]]), 4])
def test_one_number_in_any_form_starts_a_scan(init: Any, device: sad.Device) -> None:
    def call(x: Any, init: Any) -> sad.Array:
        return sad.scan(sad.add, x, init)

    for function in (call, sad.graph(call)):
        np.testing.assert_allclose(function(X, init).numpy(), 4.0 + np.cumsum(X))


def test_each_row_may_start_with_an_element_of_its_own(device: sad.Device) -> None:
    rows, init = sad.array(V), sad.array([10.0, 20.0])
    found = sad.scan(sad.add, rows, init, axis=1)
    np.testing.assert_allclose(found.numpy(), [[10, 11, 13], [23, 27, 32]])

    def loss(init: sad.Array) -> sad.Array:
        return sad.sum(sad.scan(sad.mul, rows, init, axis=-1)) + sad.sum(
            sad.reduce(sad.mul, V, init, axis=1)
        )

    # d/d init of sum(init * cumprod) + init * prod: the products of each row.
    expected = np.cumprod(V, 1).sum(1) + V.prod(1)
    np.testing.assert_allclose(sad.grad(loss)(init).numpy(), expected)


@pytest.mark.parametrize("call", [sad.scan, sad.reduce])
def test_a_start_for_more_than_the_rows_is_refused(
    call: Callable[..., sad.Array], device: sad.Device
) -> None:
    def started(x: Any, init: Any) -> sad.Array:
        return call(sad.add, x, init, axis=-1)

    wrong = [(X, X), (V, X), (V, V), (X, V), (X, X[:0]), (sad.array(V, dtype=float3), V)]
    for x, init in wrong:
        for function in (started, sad.graph(started)):
            with pytest.raises(sad.ShapeError, match="SR0349") as raised:
                function(x, init)
            assert "`init` has the shape" in str(raised.value)


def test_matrices_given_as_arrays_of_open_sizes_are_elements(device: sad.Device) -> None:
    data = np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    x, init = sad.array(data, dtype=float2x2), np.eye(2, dtype=np.float32)
    found = sad.scan(sad.matmul, x, init)
    assert found.dtype is float2x2
    np.testing.assert_allclose(found.numpy(), [data[0], data[0] @ data[1]])


# -- tangents of graphs whose arguments are not all given -------------------------------------


@sad.graph
def scaled(x: Any, factor: Any = 2.0, *, power: int = 3) -> Any:
    return sad.sum(factor * x**power)


def test_defaults_of_a_graph_do_not_move(device: sad.Device) -> None:
    x, x_dot = X, np.float32([1.0, -1.0, 0.5])
    for keywords, factor, power in [({}, 2.0, 3), ({"power": 2}, 2.0, 2)]:
        out, out_dot = sad.jvp(scaled, (x,), (x_dot,), **keywords)
        np.testing.assert_allclose(out.numpy(), factor * (x**power).sum(), rtol=1e-6)
        slope = factor * power * x ** (power - 1)
        np.testing.assert_allclose(out_dot.numpy(), slope @ x_dot, rtol=1e-6)
        found = sad.hvp(scaled, (x,), (x_dot,), **keywords)
        curvature = factor * power * (power - 1) * x ** (power - 2)
        np.testing.assert_allclose(found.numpy(), curvature * x_dot, rtol=1e-6)
    _, out_dot = sad.jvp(scaled, (x, 5.0), (None, 1.0))
    np.testing.assert_allclose(out_dot.numpy(), (x**3).sum(), rtol=1e-6)


@sad.graph
def rows(x: Any, count: Any = 2, *, scale: float = 1.0, shift: sad.float2 = (0.0, 0.0)) -> Any:  # pyright: ignore
    if scale > 1.5:
        x = x * scale
    return sad.reshape(x, (count, -1)), shift.y


def test_a_default_that_is_not_passed_is_a_python_value(device: sad.Device) -> None:
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(rows(x)[0].numpy(), x.reshape(2, 3))
        with pytest.raises(sad.ShapeError, match="SR0370"):
            rows(x, 3)  # An argument is traced: one trace serves all its values.
        with pytest.raises(sad.LanguageError, match="SR0321"):
            rows(x, scale=2.0)
        assert float(rows(x, shift=sad.float2(1.0, 2.0))[1]) == 2.0
    by_x = sad.grad(lambda x: sad.sum(rows(x)[0] ** 2))(x)
    np.testing.assert_allclose(by_x.numpy(), 2.0 * x)
    outer = sad.graph(lambda x: rows(x)[0] + rows(x)[1])
    np.testing.assert_array_equal(outer(x).numpy(), x.reshape(2, 3))


def test_calls_that_pass_different_parameters_are_different_traces(device: sad.Device) -> None:
    graph = sad.graph(lambda x, a=1.0, b=2.0: a * x + 10.0 * b)
    x = sad.array([1.0, 2.0])
    wanted = {(): (1, 2), (("a", 5.0),): (5, 2), (("b", 5.0),): (1, 5)}
    for keywords in [*wanted, *reversed(wanted)]:
        a, b = wanted[keywords]
        np.testing.assert_allclose(graph(x, **dict(keywords)).numpy(), a * x.numpy() + 10 * b)
    np.testing.assert_allclose(graph(x, 5.0).numpy(), 5 * x.numpy() + 20)


# -- objects that convert to NumPy, or fail to ------------------------------------------------


class Unreadable:
    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise self.failure


@sad.kernel
def product(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    y[i] = a * x[i]


@pytest.mark.parametrize("failure", [ValueError("no can do"), RuntimeError("no can do")])
def test_what_an_object_says_when_it_is_not_read_is_told(
    failure: Exception, device: sad.Device
) -> None:
    bad = Unreadable(failure)
    calls: list[Callable[[], object]] = [
        lambda: sad.array(bad),
        lambda: sad.array([bad, bad]),
        lambda: sad.sum(bad),
        lambda: sad.sin(bad),
        lambda: sad.graph(lambda x: sad.sin(x) + sad.sin(bad))(X),
        lambda: sad.scan(sad.add, X, bad),
        lambda: product(bad, 1.0, dim=3),
        lambda: product(X, bad, dim=3),
        lambda: sad.vjp(product, X, 1.0, dim=3)[1](bad),
    ]
    for call in calls:
        with pytest.raises(sad.Error, match=f"{type(failure).__name__}: no can do") as raised:
            call()
        assert raised.value.__cause__ is failure
    with pytest.raises(sad.LanguageError, match="SR0313"):
        float3(bad)


# -- structs that were defined again ----------------------------------------------------------


@sad.struct
class Lens:
    focus: float
    gain: float
    tint: float


def first_program() -> dict[str, Any]:
    """What was defined before `Lens` above, as in a notebook whose cell ran again."""

    @sad.struct
    class Lens:
        focus: float
        gain: float

    @sad.struct
    class Scene:
        lens: Lens
        points: sad.In[float]

    @sad.function
    def power_of(lens: Lens) -> float:
        return lens.focus * lens.gain

    @sad.kernel
    def by_value(i: sad.Index, lens: Lens, y: sad.Out[float]):
        y[i] = power_of(lens)

    @sad.kernel
    def by_element(i: sad.Index, lenses: sad.In[Lens], y: sad.Out[float]):
        y[i] = lenses[i].focus * lenses[i].gain

    @sad.kernel
    def by_scene(i: sad.Index, scene: Scene, y: sad.Out[float]):
        y[i] = scene.lens.focus * scene.points[i]

    return dict(locals())


@sad.struct
class Scene:
    lens: Lens
    points: sad.In[float]
    count: int


def test_a_struct_defined_again_with_other_fields_is_refused(device: sad.Device) -> None:
    first = first_program()
    by_value, by_element, by_scene = (first[n] for n in ("by_value", "by_element", "by_scene"))
    new, old = Lens(2.0, 3.0, 4.0), first["Lens"](2.0, 3.0)
    calls: list[Callable[[], object]] = [
        lambda: by_value(new, dim=1),
        lambda: sad.vjp(by_value, new, dim=1),
        lambda: sad.graph(lambda x: by_value(new, dim=1) + x)(X),
        lambda: by_element([new], dim=1),
        lambda: first["power_of"](new),
        lambda: sad.array([new], dtype=first["Lens"]),
        lambda: by_scene(first["Scene"](new, X), dim=3),
        lambda: by_scene(Scene(old, X, 3), dim=3),
    ]
    for call in calls:
        with pytest.raises(sad.ShapeError, match="SR0355") as raised:
            call()
        assert "was redefined" in str(raised.value)
    with pytest.raises(sad.ShapeError, match="SR0367"):
        by_element(sad.array([new], dtype=Lens), dim=1)
    np.testing.assert_allclose(by_value(old, dim=1).numpy(), [6.0])
    np.testing.assert_allclose(by_scene(first["Scene"](old, X), dim=3).numpy(), 2.0 * X)


def test_a_struct_defined_again_with_the_same_fields_is_taken_by_name(device: sad.Device) -> None:
    @sad.struct
    class Lens:
        gain: float
        focus: float

    by_value = first_program()["by_value"]
    np.testing.assert_allclose(by_value(Lens(gain=2.0, focus=3.0), dim=1).numpy(), [6.0])
    (found,) = sad.vjp(by_value, Lens(gain=2.0, focus=3.0), dim=1)[1](np.float32([1.0]))
    assert (float(found.gain), float(found.focus)) == (3.0, 2.0)


# -- extents that an annotation states as numbers ---------------------------------------------


@sad.graph
def rows_in_turn(x: sad.Array[float, 4, "d"], y: sad.Array[float, "d"]) -> sad.Array:
    total = sad.sum(y)
    for k in range(x.shape[0] // 2):
        total += sad.sum(x[k] * y) * float(k + 1) + sad.sum(x[x.shape[0] - 1 - k]) * len(x)
    return total


@pytest.mark.parametrize("width", [1, 3, 4, 0, 5])
def test_annotated_numbers_are_numbers_while_a_graph_is_traced(
    width: int, device: sad.Device
) -> None:
    """Also where a named size, or one that has no name, is that number in a call."""
    rng = np.random.default_rng(width)
    x, y = (rng.random(shape, np.float32) for shape in ((4, width), width))
    expected = y.sum() + (x[0] @ y) + 2 * (x[1] @ y) + 4 * (x[3].sum() + x[2].sum())
    value, (by_x, by_y) = sad.value_and_grad(rows_in_turn, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-5)
    four = np.full(width, 4, np.float32)
    np.testing.assert_allclose(by_x.numpy(), [y, 2 * y, four, four], rtol=1e-5)
    np.testing.assert_allclose(by_y.numpy(), 1 + x[0] + 2 * x[1], rtol=1e-5)


def test_annotated_numbers_meet_sizes_without_names(device: sad.Device) -> None:
    @sad.graph
    def joined(x: sad.Array[float, 4], y: Any) -> sad.Array:
        assert x.shape == (4,)
        return x + y

    for count in (4, 1, 4):
        y = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(joined(np.ones(4), y).numpy(), np.ones(4) + y)
    with pytest.raises(sad.ShapeError, match="SR0379"):
        joined(np.ones(4), np.ones(5))
    with pytest.raises(sad.ShapeError, match="SR0346"):
        joined(np.ones(5), np.ones(4))


# -- vectors of the host as elements ----------------------------------------------------------

SHAPES = [3, (2,), 1, (2, 3), (), 0]


def filled(shape: Any, value: Any) -> sad.Array:
    return sad.full(shape, value)


def repeated(shape: Any, value: Any) -> sad.Array:
    return sad.broadcast_to(value, shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fill", [filled, repeated])
def test_vectors_of_the_host_fill_arrays(
    fill: Callable[..., sad.Array], shape: Any, device: sad.Device
) -> None:
    """Also where the shape is that of their components."""
    vector, axes = float3(1.0, -2.0, 3.0), shape if isinstance(shape, tuple) else (shape,)
    expected = np.broadcast_to(vector, (*axes, 3))
    for found in (
        fill(shape, vector),
        sad.graph(lambda x: fill(shape, vector) + 0.0 * sad.sum(x))(X),
        sad.graph(lambda v: fill(shape, v))(vector),
    ):
        assert (found.dtype, found.shape) == (float3, axes)
        np.testing.assert_array_equal(found.numpy(), expected)

    def loss(v: Any) -> sad.Array:
        found = fill(shape, v)
        return sad.sum(sad.dot(found, found) * 0.5)

    count = int(np.prod(axes))
    for gradient in (sad.grad(loss), sad.grad(sad.graph(loss)), sad.graph(sad.grad(loss))):
        found = gradient(vector)
        assert (found.dtype, found.shape) == (float, (3,))
        np.testing.assert_allclose(found.numpy(), count * vector, rtol=1e-6)
    hessian = sad.jacobian(sad.grad(loss))(vector)
    np.testing.assert_allclose(hessian.numpy(), count * np.eye(3))


def test_what_is_no_vector_of_the_host_fills_as_before(device: sad.Device) -> None:
    vector, row = float3(1.0, 2.0, 3.0), np.float32([1.0, 2.0, 3.0])
    spread = sad.graph(lambda v: sad.broadcast_to(v, 3))
    for _ in range(2):
        assert spread(vector).dtype is float3
        assert spread(row).dtype is float
        assert spread(sad.array(vector)).dtype is float
    assert sad.full((2,), row).shape == (2, 3)
    assert sad.broadcast_to(2.0 * vector, (4, 3)).dtype is float
    assert sad.broadcast_to(vector[:2], (2,)).dtype is float
    assert sad.full(2, float2x2(1.0, 2.0, 3.0, 4.0)).dtype is float2x2
    assert sad.full(2, sad.int3(1, 2, 3)).dtype is sad.int3
    assert type(vector * 2) is np.ndarray
    assert repr(vector) == "array([1., 2., 3.], dtype=float32)"
