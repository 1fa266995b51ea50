"""`sad.vmap` on devices, held against one call an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(11)
TOLERANCE = 2e-5
"""Sums of some float32 products near 1, in another order."""


def draw(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


XS, YS, W = draw(4, 3), draw(4, 3), draw(3, 3)


def apart(f: Callable[..., Any], args: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """The results of one call an element, stacked."""
    (count,) = {x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None}
    pairs = [*zip(args, axes, strict=True)]
    return stacked(
        [
            f(*(sad.array(x if a is None else np.take(x, k, a)) for x, a in pairs))
            for k in range(count)
        ]
    )


def stacked(rows: Sequence[Any]) -> Any:
    if isinstance(rows[0], tuple):
        return tuple(stacked([row[k] for row in rows]) for k in range(len(rows[0])))
    return np.stack([row.numpy() for row in rows])


def check(f: Callable[..., Any], *args: Any, axes: Sequence[int | None] | None = None) -> None:
    """Fails where a batch of `f` differs from its elements."""
    axes = axes or (0,) * len(args)
    near(sad.vmap(f, tuple(axes))(*args), apart(f, args, axes))


def near(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            near(one, other)
        return
    assert found.numpy().dtype == expected.dtype
    assert found.shape == expected.shape[: len(found.shape)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


def energy(x: Any, y: Any) -> Any:
    return sad.sum(sad.sin(x) * y) + sad.sum(x * x)


# -- axes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0), (-1, -2)])
def test_axes_of_arguments(device: sad.Device, axes: tuple[int | None, int | None]) -> None:
    shapes = {None: (3,), 0: (4, 3), -2: (4, 3), 1: (3, 4), -1: (3, 4)}
    check(lambda x, y: (x * y, sad.sum(x) + y), *(draw(*shapes[a]) for a in axes), axes=axes)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes_of_results(device: sad.Device, axis: int) -> None:
    found = sad.vmap(lambda x: x[:, None] * x, out_axes=axis)(XS)
    expected = np.moveaxis(XS[:, :, None] * XS[:, None, :], 0, axis)
    np.testing.assert_allclose(found.numpy(), expected, rtol=TOLERANCE)


def test_trees_of_arguments_and_results(device: sad.Device) -> None:
    def f(parts: Any, scale: Any) -> Any:
        a, (b,) = parts["a"], parts["b"]
        return {"sum": a + b * scale, "pair": (a, scale), "none": None}

    args = {"a": XS, "b": (W[0],)}, 2.0
    found: Any = sad.vmap(f, ({"a": 0, "b": None}, None), {"sum": 1, "pair": 0, "none": 0})(*args)
    np.testing.assert_allclose(found["sum"].numpy(), (XS + 2.0 * W[0]).T, rtol=TOLERANCE)
    np.testing.assert_array_equal(found["pair"][0].numpy(), XS)
    np.testing.assert_array_equal(found["pair"][1].numpy(), np.full(4, 2.0))
    assert found["none"] is None


def test_a_result_that_all_share_needs_no_axis(device: sad.Device) -> None:
    found, other = sad.vmap(lambda x, w: (x + w, sad.sum(w)), (0, None), (0, None))(XS, W[0])
    np.testing.assert_allclose(found.numpy(), XS + W[0])
    assert other.shape == ()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_batches_of_any_size(device: sad.Device, count: int) -> None:
    xs = draw(count, 3)
    found = sad.vmap(lambda x: (sad.sum(x), sad.sort(x), x @ W))(xs)
    np.testing.assert_allclose(found[0].numpy(), xs.sum(1), rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_array_equal(found[1].numpy(), np.sort(xs, 1))
    np.testing.assert_allclose(found[2].numpy(), xs @ W, rtol=TOLERANCE, atol=TOLERANCE)
    (gradient,) = sad.vjp(lambda x: sad.vmap(sad.sum)(x), xs)[1](np.ones(count, np.float32))
    np.testing.assert_array_equal(gradient.numpy(), np.ones((count, 3)))


# -- array functions ----------------------------------------------------------------------------


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "reductions": lambda x, y: (sad.max(x), sad.argmin(y), sad.mean(x * y), sad.prod(x)),
    "softmax": lambda x, y: (sad.softmax(x), sad.logsumexp(x * y)),
    "products": lambda x, y: (x @ W, W @ y, x @ y, sad.einsum("i,j->ij", x, y)),
    "subscripts": lambda x, y: (x[::-1], x[-1], y[1:], x[:, None] * y, x[sad.iota(2)]),
    "layout": lambda x, y: (sad.stack((x, y)), sad.roll(x, 1), sad.tril(x[:, None] * y)),
    "scans": lambda x, y: (sad.cumsum(x), sad.scan(sad.mul, y, exclusive=True)),
    "sorting": lambda x, y: (sad.sort(x), sad.argsort(y), x[sad.argsort(y)]),
    "compact": lambda x, y: sad.compact(x, y > 0.0),
    "scatter": lambda x, y: (
        sad.scatter(x, sad.argsort(y)[:2], y[:2]),
        sad.scatter_add(x, sad.argsort(y), y),
    ),
    "segments": lambda x, y: sad.segment_reduce(sad.mul, 1.0, 2, sad.cast(y > 0.0, int), x),
    "map": lambda x, y: (sad.map(lambda a, b: a * b + sad.sum(x), x, y),),
    "mapped function": lambda x, y: (sad.map(weighted, x, y),),
    "loops": lambda x, y: sad.loop(lambda c, row: (c * row + y, c), y, x),
    "checkpoint": lambda x, y: (sad.checkpoint(lambda a: sad.sin(a) * y)(x),),
}


@sad.function
def weighted(a: float, b: float) -> float:
    return a * b * b


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axes", [(0, 0), (0, None)])
def test_array_functions(
    device: sad.Device, name: str, axes: tuple[int | None, int | None]
) -> None:
    args = [x if a == 0 else x[0] for x, a in zip((XS, YS), axes, strict=True)]
    check(FUNCTIONS[name], *args, axes=axes)


SMOOTH = ("softmax", "products", "subscripts", "scans", "sorting", "scatter", "loops", "checkpoint")


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_array_functions(device: sad.Device, name: str) -> None:
    def loss(x: Any, y: Any) -> Any:
        floats = [r for r in FUNCTIONS[name](x, y) if r.dtype is float]
        return sum((sad.sum(sad.sin(r)) for r in floats), 0.0)

    gradient = sad.grad(loss, (0, 1))
    check(gradient, XS, YS)
    xs_bar, y_bar = sad.grad(
        lambda xs, y: sad.sum(sad.vmap(loss, (0, None))(xs, y)), (0, 1)
    )(XS, YS[0])  # fmt: skip
    expected = apart(gradient, (XS, YS[0]), (0, None))
    near(xs_bar, expected[0])
    near(y_bar, expected[1].sum(0))


# -- transforms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_transforms_of_one_element(device: sad.Device, axes: tuple[int | None, int | None]) -> None:
    args = [x if a == 0 else x[0] for x, a in zip((XS, YS), axes, strict=True)]
    check(sad.grad(energy, (0, 1)), *args, axes=axes)
    check(sad.value_and_grad(energy), *args, axes=axes)
    check(lambda x, y: sad.jvp(energy, (x, y), (y, x)), *args, axes=axes)
    check(lambda x, y: sad.vjp(lambda a: a * y, x)[1](y)[0], *args, axes=axes)
    check(lambda x, y: sad.hvp(energy, (x, y), (y, x)), *args, axes=axes)
    check(sad.jacobian(lambda x, y: sad.sin(x) * y), *args, axes=axes)


def test_a_pullback_of_basis_vectors_is_a_jacobian(device: sad.Device) -> None:
    _, pullback = sad.vjp(lambda x: sad.sin(x) @ W, XS[0])
    (found,) = sad.vmap(pullback)(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(found.numpy(), np.cos(XS[0]) * W.T, rtol=TOLERANCE, atol=TOLERANCE)


def test_batches_nest(device: sad.Device) -> None:
    pairs = sad.vmap(sad.vmap(energy, (None, 0)), (0, None))
    expected = np.sin(XS) @ YS.T + (XS * XS).sum(1)[:, None]
    np.testing.assert_allclose(pairs(XS, YS).numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)
    gradient = sad.grad(lambda x, y: sad.sum(pairs(x, y)))(XS, YS)
    np.testing.assert_allclose(
        gradient.numpy(), np.cos(XS) * YS.sum(0) + 8 * XS, rtol=TOLERANCE, atol=TOLERANCE
    )
    inner = sad.vmap(lambda x: sad.grad(lambda a: sad.sum(sad.vmap(energy, (None, 0))(a, YS)))(x))
    np.testing.assert_allclose(inner(XS).numpy(), gradient.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_a_batch_inside_of_a_mapped_function(device: sad.Device) -> None:
    def f(a: Any) -> Any:
        return sad.sum(sad.vmap(lambda x, s: sad.sum(x) * s, (0, None))(XS, a))

    found = sad.map(f, YS[0])
    np.testing.assert_allclose(found.numpy(), XS.sum() * YS[0], rtol=TOLERANCE, atol=TOLERANCE)


def test_graphs_serve_every_size_of_batch(device: sad.Device) -> None:
    @sad.graph
    def f(x: Any, w: Any) -> Any:
        return sad.sum(sad.vmap(lambda row: sad.sum(sad.tanh(row * w)) ** 2.0)(x))

    for count in (4, 7):
        x = draw(count, 3)
        np.testing.assert_allclose(
            f(x, W[0]).item(), (np.tanh(x * W[0]).sum(1) ** 2).sum(), rtol=TOLERANCE
        )
    small, large = (f.bound((draw(n, 3), W[0]), {}).variant for n in (4, 7))
    assert small is large
    sad.gradcheck(f, XS, W[0])


@sad.graph
def normalised(x: Any) -> Any:
    return x / sad.sqrt(sad.sum(x * x))


def test_a_graph_is_mapped(device: sad.Device) -> None:
    check(normalised, XS)
    check(sad.grad(lambda x: sad.sum(normalised(x) * W[0])), XS)


SHARED = sad.vmap(lambda x: sad.sum(x * SCALES["w"]))
SCALES: dict[str, Any] = {"w": 1.0}


def test_a_graph_reads_what_a_mapped_function_captures(device: sad.Device) -> None:
    @sad.graph
    def f(x: Any) -> Any:
        return SHARED(x) * 2.0

    for scale in (1.0, 3.0):
        SCALES["w"] = sad.array(np.full(3, scale, np.float32))
        np.testing.assert_allclose(f(XS).numpy(), 2.0 * scale * XS.sum(1), rtol=1e-4, atol=1e-5)


def test_gradients_agree_with_differences(device: sad.Device) -> None:
    sad.gradcheck(lambda xs, y: sad.sum(sad.vmap(energy, (0, None))(xs, y) ** 2.0), XS, YS[0])


# -- loops whose elements end at other iterations -----------------------------------------------


def newton(x: Any) -> Any:
    """The square root, to within 1e-3."""
    start = 0.5 * (x + 1.0)
    return sad.while_loop(
        lambda y: sad.abs(y * y - x) > 1e-3, lambda y: 0.5 * (y + x / y), start, limit=20
    )


POSITIVE = np.array([0.01, 1.0, 4.0, 900.0], np.float32)


def test_each_element_runs_as_many_iterations_as_it_would_alone(device: sad.Device) -> None:
    check(newton, POSITIVE)
    check(sad.grad(newton), POSITIVE)
    gradient = sad.grad(lambda x: sad.sum(sad.vmap(newton)(x)))(POSITIVE)
    near(gradient, apart(sad.grad(newton), [POSITIVE], [0]))


def test_elements_that_have_stopped_report_nothing(device: sad.Device) -> None:
    def f(i: Any) -> Any:
        step = lambda c: (c[0] + 1, c[1] + c[2][c[0]], c[2])  # noqa: E731
        return sad.while_loop(lambda c: c[0] < 3, step, (i, 0.0, W[0]), limit=5)[1]

    found = sad.vmap(f)(np.array([0, 2, 3], np.int32)).numpy()
    np.testing.assert_allclose(found, [W[0].sum(), W[0][2], 0.0], rtol=TOLERANCE)


@sad.kernel
def multiplied(i: sad.Index, x: sad.In[float], by: sad.In[float], at: int, y: sad.Out[float]):
    assert at < 3
    y[i] = sad.sin(x[i]) * by[at]


def test_nor_do_their_threads(device: sad.Device) -> None:
    first = np.array([0, 2, 3, 1], np.int32)

    def loss(i: Any, x: Any, by: Any) -> Any:
        def step(carry: Any) -> Any:
            return carry[0] + 1, multiplied(carry[1], by, carry[0])

        return sad.sum(sad.while_loop(lambda carry: carry[0] < 3, step, (i, x), limit=5)[1])

    def alone(k: int, x: Any, by: Any) -> Any:
        for i in range(first[k], 3):
            x = multiplied(x, by, i)
        return sad.sum(x)

    def total(xs: Any, by: Any) -> Any:
        return sad.sum(sad.vmap(loss, (0, 0, None))(first, xs, by))

    rows = [sad.grad(alone, (1, 2))(k, XS[k], W[0]) for k in range(4)]
    x_bars, by_bars = sad.vmap(sad.grad(loss, (1, 2)), (0, 0, None))(first, XS, W[0])
    near(x_bars, stacked([one for one, _ in rows]))
    near(by_bars, stacked([one for _, one in rows]))
    x_bar, by_bar = sad.grad(total, (0, 1))(XS, W[0])
    near(x_bar, x_bars.numpy())
    near(by_bar, by_bars.numpy().sum(0))


# -- the user's own derivatives -----------------------------------------------------------------


@sad.custom_vjp
def clipped(x: Any, scale: Any) -> Any:
    return sad.min(x, 1.0) * scale


clipped.defvjp(
    lambda x, scale: (clipped_value(x, scale), (x, scale)),
    lambda kept, bar: (bar * kept[1] * 10.0, sad.sum(bar * kept[0])),
)


def clipped_value(x: Any, scale: Any) -> Any:
    return sad.min(x, 1.0) * scale


def test_pullbacks_of_the_users_own(device: sad.Device) -> None:
    def loss(x: Any, scale: Any) -> Any:
        return sad.sum(clipped(x, scale))

    gradient = sad.grad(loss, (0, 1))
    scales = draw(4)
    check(gradient, XS, scales)
    check(gradient, XS, np.float32(2.0), axes=(0, None))
    x_bar, scale_bar = sad.grad(
        lambda x, s: sad.sum(sad.vmap(loss, (0, None))(x, s)), (0, 1)
    )(XS, 2.0)  # fmt: skip
    np.testing.assert_allclose(x_bar.numpy(), np.full((4, 3), 20.0))
    np.testing.assert_allclose(scale_bar.numpy(), XS.sum(), rtol=TOLERANCE, atol=TOLERANCE)


# -- kernels ------------------------------------------------------------------------------------


@sad.struct
class Light:
    colour: float3
    gain: float


@sad.kernel
def shade(i: sad.Index, x: sad.In[float3], light: Light, at: sad.In[int], y: sad.Out[float3],
          total: sad.Add[float], least: sad.Min[float]):  # fmt: skip
    y[i] = x[at[i]] * light.colour * light.gain
    total[0] += sad.dot(x[i], x[i])
    least[at[i]] = sad.min(least[at[i]], x[i].x * light.gain)


def shaded(x: Any, light: Any, at: Any) -> Any:
    shapes = {"total": (1,), "least": (5,)}
    return shade(x, light, at, dim=5, shapes=shapes)


POINTS, AT = draw(4, 5, 3), RNG.integers(0, 5, (4, 5)).astype(np.int32)


def lights(k: int | None) -> Any:
    colours, gains = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(4, 3), POSITIVE
    if k is None:
        return Light(sad.array(colours, dtype=float3), sad.array(gains))
    return Light(sad.array(colours[k], dtype=float3), sad.array(gains[k]))


@pytest.mark.parametrize("light", [0, None])
def test_kernels_take_another_index(device: sad.Device, light: int | None) -> None:
    given = lights(None) if light == 0 else lights(1)
    found = sad.vmap(shaded, (0, light, 0))(POINTS, given, AT)
    rows = [shaded(POINTS[k], lights(k if light == 0 else 1), AT[k]) for k in range(4)]
    near(found, stacked(rows))


@pytest.mark.parametrize("light", [0, None])
def test_gradients_of_kernels(device: sad.Device, light: int | None) -> None:
    def loss(x: Any, one: Any, at: Any) -> Any:
        y, total, least = shaded(x, one, at)
        return sad.sum(sad.sin(sad.dot(y, y))) + sad.sum(total) + sad.sum(sad.min(least, 9.0))

    gradient = sad.grad(loss, (0, 1))
    given = lights(None) if light == 0 else lights(1)
    x_bars, light_bars = sad.vmap(gradient, (0, light, 0))(POINTS, given, AT)
    rows = [gradient(POINTS[k], lights(k if light == 0 else 1), AT[k]) for k in range(4)]
    np.testing.assert_allclose(
        x_bars.numpy(), np.stack([x.numpy() for x, _ in rows]), rtol=1e-4, atol=1e-4
    )
    for name in ("colour", "gain"):
        expected = np.stack([np.asarray(getattr(one, name).numpy()) for _, one in rows])
        np.testing.assert_allclose(
            getattr(light_bars, name).numpy(), expected, rtol=1e-4, atol=1e-4
        )


@sad.kernel
def blur(i: sad.Index, j: sad.Index, k: sad.Index, x: sad.In[float, 3], w: float,
         y: sad.Out[float, 3]):  # fmt: skip
    y[i, j, k] = x[i, j, k] * w + x[k, i, j] * x[0, 0, k]


def test_a_kernel_itself_is_mapped(device: sad.Device) -> None:
    xs, ws = draw(4, 2, 2, 2), draw(4)
    check(blur, xs, ws)
    check(sad.grad(lambda x, w: sad.sum(blur(x, w)), (0, 1)), xs, ws)
    twice = sad.vmap(sad.vmap(blur, (0, None)), (None, 0))(xs, ws)
    expected = [[blur(x, w).numpy() for x in xs] for w in ws]
    np.testing.assert_allclose(twice.numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)


@sad.kernel
def grown(i: sad.Index, x: sad.In[float2], y: sad.Out[float2]):
    y[i] = x[i] * x[i].x


def test_dim_is_that_of_one_element(device: sad.Device) -> None:
    xs = draw(4, 3, 2)
    found = sad.vmap(grown)(xs, dim=2)
    np.testing.assert_allclose(found.numpy(), (xs * xs[..., :1])[:, :2], rtol=TOLERANCE)


def test_second_derivatives_of_kernels(device: sad.Device) -> None:
    def loss(x: Any, w: Any) -> Any:
        y = blur(x, w)
        return sad.sum(y * y)

    xs, ws = draw(4, 2, 2, 2), draw(4)
    found = sad.vmap(lambda x, w: sad.hvp(loss, (x, w), (x, w)))(xs, ws)
    rows = [sad.hvp(loss, (x, w), (x, w)) for x, w in zip(xs, ws, strict=True)]
    for one, expected in zip(found, stacked(rows), strict=True):
        np.testing.assert_allclose(one.numpy(), expected, rtol=1e-4, atol=1e-3)


@sad.kernel
def told(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    if x[i] > 100.0:
        print("large", i)  # noqa: T201
    y[i] = 1.0 / x[i]


def test_prints_and_checks_name_the_element(
    device: sad.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(sad.Error, match=r"SR0666.*\n?.*element 1, 0"):
        sad.vmap(told)(np.float32([[1, 2], [0, 200]]), checks="nan").numpy()
    assert "told[1, 1]" in capsys.readouterr().out


def test_an_index_out_of_range_is_reported(device: sad.Device) -> None:
    at = AT.copy()
    at[2, 1] = 7
    with pytest.raises(sad.BoundsError):
        sad.vmap(shaded, (0, None, 0))(POINTS, lights(1), at)[0].numpy()


# -- what cannot be mapped ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "axes", "out_axes", "args"),
    [
        ("SR0394", 2, 0, (XS, YS)),
        ("SR0394", 0, 0, (XS, 1.0)),
        ("SR0394", 0, 2, (XS, YS)),
        ("SR0395", None, 0, (XS, YS)),
        ("SR0395", 0, 0, ()),
        ("SR0396", (0, 1), 0, (XS, YS)),
        ("SR0397", 0, None, (XS, YS)),
        ("SR0398", (0,), 0, (XS, YS)),
        ("SR0398", (0, (0, 1)), 0, (XS, YS)),
        ("SR0398", (0, {"a": 0}), 0, (XS, {"b": YS})),
        ("SR0398", 0.5, 0, (XS, YS)),
        ("SR0398", True, 0, (XS, YS)),
        ("SR0398", 0, (0, 0), (XS, YS)),
    ],
)
def test_wrong_axes_are_refused(
    device: sad.Device, code: str, axes: Any, out_axes: Any, args: tuple[Any, ...]
) -> None:
    with pytest.raises(sad.Error, match=code):
        sad.vmap(lambda *given: given[0] * 2.0, axes, out_axes)(*args)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(sad.DerivativeError, match="SR0466"):
        sad.vmap(3.0)  # pyright: ignore[reportArgumentType]


@sad.struct
class Chain:
    links: sad.Pointer[float]


@sad.kernel
def behind(i: sad.Index, chain: Chain, y: sad.Out[float]):
    y[i] = chain.links[i]


def test_pointers_lead_to_mapped_arrays(device: sad.Device) -> None:
    def squares(x: Any) -> Any:
        return sad.sum(behind(Chain(sad.pointer(x)), dim=3) ** 2)

    np.testing.assert_allclose(sad.vmap(squares)(XS), np.sum(XS[:, :3] ** 2, 1), rtol=1e-6)
    expected = np.stack([sad.grad(squares)(x).numpy() for x in XS])
    np.testing.assert_allclose(sad.vmap(sad.grad(squares))(XS), expected, rtol=1e-6)
    assert np.abs(expected).max() > 0.0
