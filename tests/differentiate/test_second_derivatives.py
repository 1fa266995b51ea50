"""`hvp`, and how gradients move, on every runtime: against float64, differences and formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from tests.agreement import check_second_order
from tests.lower import function_cases, guard_cases, loop_cases, output_cases, typed_cases
from tests.lower.loop_cases import floats
from tests.lower.reference import Case
from tests.rules.pushing import cases

pytestmark = pytest.mark.gpu

N = 7
QUICK = (
    "effects",
    "ties",
    "own",
    "mixed",
    "counting",
    "strided_stores",
    "carried_arrays",
    "tuples",
)
CASES = loop_cases.CASES | guard_cases.CASES | output_cases.CASES | cases.CASES
CASES |= {
    kernel.shown_name: Case(kernel, args, N)
    for kernel, args in (function_cases.ARGUMENTS | typed_cases.ARGUMENTS).items()
}
HARD = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES]
"""A few of each sort are for every day."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", HARD)
def test_gradients_move_as_the_oracle_says(name: str, device: sad.Device) -> None:
    case = CASES[name]
    # Second derivatives cancel more than first ones do.
    check_second_order(case.kernel, *case.args, rtol=1e-3, **case.call)
    device.synchronize()


@sad.struct
class Lamp:
    colors: sad.In[float3]
    power: float
    count: int


@sad.kernel
def lit(i: sad.Index, lamp: Lamp, face: sad.In[int], a: float, loss: sad.Add[float]):
    c = lamp.colors[face[i]]
    for k in sad.range(lamp.count, limit=5):
        c = c * lamp.power + sad.cross(c, lamp.colors[k]) * a
    loss[0] += sad.dot(c, c) * a


@sad.kernel
def cubes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** 3


@sad.kernel
def total(i: sad.Index, x: sad.In[float], w: float, loss: sad.Add[float]):
    loss[0] += x[i] * x[i] * w


def test_hvp_of_a_kernel_is_in_the_form_of_its_arguments(device: sad.Device) -> None:
    lamp = Lamp(colors=floats(3, 3), power=0.8, count=3)
    along = Lamp(colors=floats(3, 3) - 1.0, power=0.3, count=0)
    face = np.int32([0, 2, 2, 1, 2, 0, 1])
    call = {"dim": 7, "shapes": {"loss": 1}}
    moved, no_ints, by_a = sad.hvp(lit, (lamp, face, 0.5), (along, None, 0.25), **call)
    assert no_ints is None
    assert moved.count == 0
    gradients = sad.grad(lit, argnums=(0, 2))
    step = 1e-2
    above, below = (
        gradients(
            Lamp(colors=lamp.colors + s * along.colors, power=0.8 + s * 0.3, count=3),
            face, 0.5 + s * 0.25, **call,
        )
        for s in (step, -step)
    )  # fmt: skip
    close_to_differences(moved.colors, above[0].colors, below[0].colors, step)
    close_to_differences(moved.power, above[0].power, below[0].power, step)
    close_to_differences(by_a, above[1], below[1], step)


def close_to_differences(found: sad.Array, above: sad.Array, below: sad.Array, step: float) -> None:
    wanted = (above.numpy() - below.numpy()) / (2 * step)
    # Central differences of float32 at this step.
    np.testing.assert_allclose(found.numpy(), wanted, rtol=5e-3, atol=1e-2)


def test_hvp_of_a_function_of_kernels_slices_and_arithmetic(device: sad.Device) -> None:
    def loss(x: sad.Array, w: float) -> sad.Array:
        y = cubes(x * x, dim=4) * w
        return total(y[1:], w, dim=3, shapes={"loss": 1}) * w

    x, v = np.float64([0.5, 1.0, -1.5, 2.0]), np.float64([1.0, 2.0, 0.5, -1.0])
    moved, by_w = sad.hvp(loss, (np.float32(x), 0.5), (np.float32(v), 2.0))
    # loss = w^4 sum(x^12) without the first.
    w, w_dot = 0.5, 2.0
    wanted = 132 * w**4 * x**10 * v + 4 * w**3 * w_dot * 12 * x**11
    wanted[0] = 0.0
    np.testing.assert_allclose(moved.numpy(), wanted, rtol=1e-5)
    along = 4 * w**3 * 12 * x[1:] ** 11 @ v[1:] + 12 * w**2 * w_dot * np.sum(x[1:] ** 12)
    np.testing.assert_allclose(by_w.item(), along, rtol=1e-5)


def test_hvp_along_a_number_of_numpy(device: sad.Device) -> None:
    x, v = np.float32([1.0, 2.0, 3.0]), np.float32([1.0, -1.0, 0.5])
    for kind in (np.float32, np.float64):
        moved, by_w = sad.hvp(lambda x, w: sad.sum(x * x * w), (x, kind(2.0)), (v, kind(3.0)))
        np.testing.assert_allclose(moved.numpy(), 4.0 * v + 6.0 * x)
        np.testing.assert_allclose(by_w.item(), 2.0 * x @ v)


def test_hvp_of_one_argument_is_one_value(device: sad.Device) -> None:
    x, v = np.float32([1.0, 2.0, 3.0]), np.float32([1.0, -1.0, 0.5])
    call = {"dim": 3, "shapes": {"loss": 1}}
    found = sad.hvp(lambda x: total(x, 2.0, **call), x, v)
    np.testing.assert_array_equal(found.numpy(), 4 * v)
    (found, by_w) = sad.hvp(total, (x, 2.0), (v, None), **call)
    np.testing.assert_array_equal(found.numpy(), 4 * v)
    np.testing.assert_allclose(by_w.item(), 2 * x @ v)


def test_hvp_along_nothing_and_of_nothing_is_zero(device: sad.Device) -> None:
    x = np.float32([1.0, 2.0])
    call = {"shapes": {"loss": 1}}
    by_x, by_w = sad.hvp(total, (x, 2.0), (None, None), dim=2, **call)
    np.testing.assert_array_equal(by_x.numpy(), [0.0, 0.0])
    assert by_w.item() == 0.0
    by_x, by_w = sad.hvp(total, (x, 2.0), (x, 1.0), dim=0, **call)
    np.testing.assert_array_equal(by_x.numpy(), [0.0, 0.0])
    assert by_w.item() == 0.0


X, V = np.float32([1.0, 2.0, 3.0]), np.float32([1.0, -1.0, 0.5])


@sad.kernel
def cubed_total(i: sad.Index, x: sad.In[float], w: float, loss: sad.Add[float]):
    loss[0] += x[i] ** 3 * w


def test_jvp_of_a_gradient_is_the_gradient_and_how_it_moves(device: sad.Device) -> None:
    call = {"dim": 3, "shapes": {"loss": 1}}
    gradients = sad.grad(cubed_total, argnums=(0, 1))
    (by_x, by_w), (by_x_dot, by_w_dot) = sad.jvp(gradients, (X, 2.0), (V, 0.5), **call)
    np.testing.assert_allclose(by_x.numpy(), 6 * X * X)
    np.testing.assert_allclose(by_w.item(), np.sum(X**3))
    np.testing.assert_allclose(by_x_dot.numpy(), 12 * X * V + 1.5 * X * X)
    np.testing.assert_allclose(by_w_dot.item(), 3 * X**2 @ V)


def test_transforms_nest_around_arithmetic(device: sad.Device) -> None:
    def slope(x: sad.Array, w: float) -> sad.Array:
        gradient = sad.grad(lambda y: cubed_total(y, w, dim=3, shapes={"loss": 1}))
        return gradient(x * x) * x

    found, moved = sad.jvp(lambda x: slope(x, 2.0), (X,), (V,))
    np.testing.assert_allclose(found.numpy(), 6 * X**5)
    np.testing.assert_allclose(moved.numpy(), 30 * X**4 * V)
    out, pullback = sad.vjp(lambda x: slope(x, 2.0), X)
    np.testing.assert_allclose(out.numpy(), 6 * X**5)
    np.testing.assert_allclose(pullback(V)[0].numpy(), 30 * X**4 * V)


def test_the_jacobian_of_a_gradient_is_the_hessian(device: sad.Device) -> None:
    gradient = sad.grad(cubed_total)
    call = {"dim": 3, "shapes": {"loss": 1}}
    for mode in ("reverse", "forward"):
        found = sad.jacobian(gradient, mode=mode)(X, 2.0, **call)
        np.testing.assert_allclose(found.numpy(), np.diag(12 * X))
    sad.gradcheck(gradient, X, 2.0, **call)


def test_a_pullback_is_differentiated_by_what_it_takes(device: sad.Device) -> None:
    _, pullback = sad.vjp(cubes, X, dim=3)
    found, moved = sad.jvp(lambda bar: pullback(bar)[0], (X,), (V,))
    np.testing.assert_allclose(found.numpy(), 3 * X**3)
    np.testing.assert_allclose(moved.numpy(), 3 * X**2 * V)
    _, twice = sad.vjp(lambda x, bar: sad.vjp(cubes, x, dim=3)[1](bar)[0], X, V)
    by_x, by_bar = twice(X)
    np.testing.assert_allclose(by_x.numpy(), 6 * X * X * V)
    np.testing.assert_allclose(by_bar.numpy(), 3 * X**3)


def test_a_tangent_is_pulled_back_to_both_of_its_arguments(device: sad.Device) -> None:
    out, pullback = sad.vjp(lambda x, dot: sad.jvp(cubes, (x,), (dot,), dim=3)[1], X, V)
    np.testing.assert_allclose(out.numpy(), 3 * X * X * V)
    by_x, by_dot = pullback(X)
    np.testing.assert_allclose(by_x.numpy(), 6 * X * X * V)
    np.testing.assert_allclose(by_dot.numpy(), 3 * X**3)
    _, pullback = sad.vjp(lambda dot: sad.jvp(cubes, (X,), (dot,), dim=3)[1], V)
    np.testing.assert_allclose(pullback(X)[0].numpy(), 3 * X**3)


def test_hvp_through_an_inner_result_is_that_of_the_function(device: sad.Device) -> None:
    call = {"dim": 3, "shapes": {"loss": 1}}
    found = sad.hvp(lambda x: total(sad.vjp(cubes, x, dim=3)[0], 1.0, **call), X, V)
    np.testing.assert_allclose(found.numpy(), 30 * X**4 * V)


def test_structs_of_arrays_nest_too(device: sad.Device) -> None:
    lamp = Lamp(colors=floats(3, 3), power=0.8, count=3)
    along = Lamp(colors=floats(3, 3) - 1.0, power=0.3, count=0)
    face, call = np.int32([0, 2, 2, 1]), {"dim": 4, "shapes": {"loss": 1}}
    wanted = sad.hvp(lit, (lamp, face, 0.5), (along, None, None), **call)[0]

    def gradient(lamp: Lamp) -> sad.Array:
        return sad.grad(lambda one: lit(one, face, 0.5, **call))(lamp)

    _, moved = sad.jvp(gradient, (lamp,), (along,))
    np.testing.assert_allclose(moved.colors.numpy(), wanted.colors.numpy(), rtol=1e-4)
    np.testing.assert_allclose(moved.power.item(), wanted.power.item(), rtol=1e-4)


def test_threads_that_meet_at_one_element_all_count(device: sad.Device) -> None:
    @sad.kernel
    def gathers(i: sad.Index, x: sad.In[float], at: sad.In[int], loss: sad.Add[float]):
        loss[0] += x[at[i]] ** 3

    at = np.int32(np.arange(1000) % 3)
    x, v = np.float32([0.5, 1.0, 2.0, 9.0]), np.float32([1.0, 2.0, -1.0, 5.0])
    found, _ = sad.hvp(gathers, (x, at), (v, None), dim=1000, shapes={"loss": 1})
    counts = np.bincount(at, minlength=4)
    np.testing.assert_allclose(found.numpy(), 6 * x * v * counts, rtol=1e-5)


@sad.struct
class Strand:
    points: sad.Pointer[float3]
    width: float


@sad.struct
class Yarn:
    strands: sad.Pointer[Strand]
    scale: float


@sad.kernel
def spun(i: sad.Index, yarn: Yarn, loss: sad.Add[float]):
    strand = yarn.strands[i % len(yarn.strands)]
    s = 1.0
    for k in sad.range(len(strand.points), limit=5):
        s = s * strand.points[k].x * strand.width + strand.points[k].y * yarn.scale
    loss[0] += s * s


def yarn_of(data: list[np.ndarray], widths: list[float], scale: float) -> Yarn:
    strands = [
        Strand(points=sad.pointer(sad.array(np.float32(points), dtype=float3)), width=width)
        for points, width in zip(data, widths, strict=True)
    ]
    return Yarn(strands=sad.pointer(strands), scale=scale)


def test_gradients_behind_pointers_move(device: sad.Device) -> None:
    data, dots = [floats(3, 3), floats(2, 3)], [floats(3, 3) - 1.0, floats(2, 3) - 1.0]
    call, step = {"dim": 4, "shapes": {"loss": 1}}, 1e-2
    along = yarn_of(dots, [0.5, 0.25], 0.3)
    moved = sad.hvp(spun, (yarn_of(data, [0.9, 0.8], 0.7),), (along,), **call)
    above, below = (
        sad.grad(spun)(
            yarn_of([x + s * dx for x, dx in zip(data, dots, strict=True)],
                    [0.9 + s * 0.5, 0.8 + s * 0.25], 0.7 + s * 0.3),
            **call,
        )
        for s in (step, -step)
    )  # fmt: skip
    close_to_differences(moved.scale, above.scale, below.scale, step)
    for k in range(2):
        parts = [yarn.strands.target[k] for yarn in (moved, above, below)]
        close_to_differences(*(p.points.target for p in parts), step)
        close_to_differences(*(p.width for p in parts), step)


@sad.kernel
def roots_of(i: sad.Index, x: sad.In[float], at: sad.In[int], loss: sad.Add[float]):
    root = sad.sqrt(x[at[i]])
    loss[0] += root * x[i]


def test_what_goes_wrong_is_reported_at_its_line(device: sad.Device) -> None:
    x, call = np.float32([1.0, 0.0, 2.0]), {"dim": 3, "shapes": {"loss": 1}}
    sad.hvp(lambda x: roots_of(x, np.int32([0, 2, 5]), **call), x, x)
    with pytest.raises(sad.BoundsError, match=r"index 5 .* `x` .* kernel `roots_of`") as caught:
        device.synchronize()
    assert caught.value.span is not None
    line = caught.value.span.line
    ones = np.ones(3, np.float32)
    sad.hvp(lambda x: roots_of(x, np.int32([0, 1, 2]), **call, checks="nan"), x, ones)
    with pytest.raises(sad.GradientError, match="`x` is inf in kernel `roots_of`") as caught:
        device.synchronize()
    assert caught.value.span is not None
    assert caught.value.span.line in (line, line + 1)


def test_the_result_must_be_one_float_and_counts_must_match(device: sad.Device) -> None:
    x = np.float32([1.0, 2.0])
    with pytest.raises(sad.DerivativeError, match="SR0457"):
        sad.hvp(cubes, x, x, dim=2)
    with pytest.raises(sad.DerivativeError, match="SR0459"):
        sad.hvp(total, (x, 1.0), (x,), dim=2, shapes={"loss": 1})


def test_gradients_of_a_trace_are_not_added_in_place(device: sad.Device) -> None:
    def summed(x: sad.Array) -> sad.Array:
        _, pullback = sad.vjp(cubes, x, dim=3)
        return pullback(X, accumulate=pullback(X))[0]

    with pytest.raises(sad.DerivativeError, match="SR0451"):
        sad.jvp(summed, (X,), (V,))


# -- of higher order -----------------------------------------------------------------------------


@sad.function
def swing(x: float, y: float) -> float:
    total = 0.0
    for k in range(3):
        total += sad.sin(2.0 * x) * y * float(k + 1)
    return total


@sad.kernel
def waves(i: sad.Index, x: sad.In[float], t: sad.Add[float]):
    t[0] += swing(x[i], x[(i + 1) % len(x)]) + x[i] ** 4


@sad.kernel
def fourths(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** 4


PLACES = np.array([0.5, -1.0, 1.5, 2.0])
ALONG = np.array([1.0, -0.5, 0.25, 2.0])


def waves_in_float64(x: np.ndarray[Any, Any]) -> float:
    return float(np.sum(6.0 * np.sin(2.0 * x) * np.roll(x, -1) + x**4))


def test_third_derivatives_of_a_kernel_are_those_of_differences(device: sad.Device) -> None:
    def move(x: sad.Array) -> sad.Array:
        return sad.hvp(waves, [x], [along], dim=4, shapes={"t": 1})

    with device:
        x, along = (sad.array(one.astype(np.float32)) for one in (PLACES, ALONG))
        _, moved = sad.jvp(move, [x], [along])
        gradient = sad.grad(lambda x: sad.sum(move(x) * along))(x)
        by_hvp = sad.hvp(lambda x: sad.sum(sad.grad(waves)(x, dim=4, shapes={"t": 1}) * along),
                         [x], [along])  # fmt: skip
    h = 1e-3
    steps = {k: waves_in_float64(PLACES + k * h * ALONG) for k in (-2, -1, 1, 2)}
    third = (steps[2] - 2.0 * steps[1] + 2.0 * steps[-1] - steps[-2]) / (2.0 * h**3)
    for found in (moved, gradient, by_hvp):
        assert float(found.numpy() @ ALONG) == pytest.approx(third, rel=1e-4)


def test_transforms_of_kernels_nest_in_any_order_of_modes(device: sad.Device) -> None:
    x, v = PLACES.astype(np.float32), ALONG.astype(np.float32)

    def half(x: sad.Array) -> sad.Array:
        return fourths(x, dim=4) * 0.5

    with device:
        _, twice = sad.jvp(lambda x: sad.jvp(half, [x], [v])[1], [x], [v])
        np.testing.assert_allclose(twice.numpy(), 6 * x**2 * v * v, rtol=1e-5)
        # An array of the outer transform that the inner function sees without being given it.
        found, pullback = sad.vjp(lambda x: sad.vjp(lambda y: half(x * y), PLACES)[1](v)[0], x)
        np.testing.assert_allclose(found.numpy(), 2 * x**7 * v, rtol=1e-5)
        np.testing.assert_allclose(pullback(v)[0].numpy(), 8 * x**6 * v * v, rtol=1e-5)
        _, fourth = sad.jvp(
            lambda x: sad.jvp(lambda x: sad.hvp(lambda x: sad.sum(half(x)), [x], [v]), [x], [v])[1],
            [x], [v],
        )  # fmt: skip
        np.testing.assert_allclose(fourth.numpy(), 12 * v**3 * np.ones(4), rtol=1e-5)


@sad.function
def squared(t: float) -> float:
    return t * t


@sad.kernel
def rewritten(i: sad.Index, count: int, x: sad.In[float], y: sad.Out[float]):
    for _ in range(count):
        y[i] = sad.sin(squared(x[i]))


def test_loops_of_unknown_count_keep_no_results(device: sad.Device) -> None:
    x, v = PLACES.astype(np.float32), ALONG.astype(np.float32)
    with device:
        found = sad.hvp(lambda x: sad.sum(rewritten(3, x, dim=4)), [x], [v])
        second = 2 * np.cos(x * x) - 4 * x * x * np.sin(x * x)
        np.testing.assert_allclose(found.numpy(), second * v, rtol=1e-4)


def test_kernels_that_no_graph_runs_have_second_derivatives_in_both_modes(
    device: sad.Device,
) -> None:
    x, v = PLACES.astype(np.float32), ALONG.astype(np.float32)

    def energy(x: sad.Array) -> sad.Array:
        return waves(x, dim=4, shapes={"t": 1}, checks="nan")

    def plain(x: sad.Array) -> sad.Array:
        return waves(x, dim=4, shapes={"t": 1})

    with device:
        expected = sad.hvp(plain, [x], [v]).numpy()
        _, pushed = sad.jvp(sad.grad(energy), [x], [v])
        _, pullback = sad.vjp(sad.grad(energy), x)
        np.testing.assert_allclose(pushed.numpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(pullback(v)[0].numpy(), expected, rtol=1e-5)


# -- powers at 0 whose exponent is known only at run time --------------------------------------

EXPONENTS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
SECOND_AT_ZERO = [0.0, 0.0, 0.0, np.inf, 2.0, 0.0, 0.0, 0.0]
THIRD_AT_ZERO = {2.0: 0.0, 2.5: np.inf, 3.0: 6.0, 4.0: 0.0}


@sad.function
def power(x: float, p: float) -> float:
    return x**p


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], p: sad.In[float], y: sad.Out[float]):
    y[i] = power(x[i], p[i])


@sad.kernel
def by_exponent(i: sad.Index, x: sad.In[float], p: float, y: sad.Out[float]):
    y[i] = x[i] ** p


@sad.kernel
def slopes(i: sad.Index, x: sad.In[float], p: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(power)(sad.diff_pair(x[i], 1.0), sad.diff_pair(p[i], 0.0)).d


@sad.kernel
def half_powers(i: sad.Index, x: sad.In[sad.half], p: sad.In[sad.half], y: sad.Out[sad.half]):
    y[i] = x[i] ** p[i]


def of_powers(p: Any) -> dict[str, Any]:
    """Sums of ``x ** p``, in other spellings."""
    return {
        "kernel": lambda x: sad.sum(powers(x, p)),
        "arrays": lambda x: sad.sum(x**p),
        "graph": sad.graph(lambda x: sad.sum(powers(x, p) + 0.0)),
    }


def test_powers_at_zero_have_their_second_derivatives(device: sad.Device) -> None:
    p = np.float32(EXPONENTS)
    x, one = np.zeros_like(p), np.ones_like(p)
    for name, f in of_powers(p).items():
        found = sad.hvp(f, (x,), (one,)).numpy()
        np.testing.assert_array_equal(found, SECOND_AT_ZERO, err_msg=name)
    np.testing.assert_array_equal(sad.vjp(slopes, x, p)[1](one)[0].numpy(), SECOND_AT_ZERO)
    nested = sad.grad(lambda t: sad.sum(sad.grad(of_powers(p)["arrays"])(t)))
    np.testing.assert_array_equal(nested(x).numpy(), SECOND_AT_ZERO)
    by_uniform = sad.hvp(lambda x: sad.sum(by_exponent(x, 2.0)), (x[:1],), (one[:1],))
    assert by_uniform.numpy() == 2.0
    halves = sad.hvp(lambda x: sad.sum(half_powers(x, np.float16(p))),
                     (np.float16(x),), (np.float16(one),))  # fmt: skip
    np.testing.assert_array_equal(halves.numpy(), SECOND_AT_ZERO)


def test_powers_at_zero_have_their_third_derivatives(device: sad.Device) -> None:
    p = np.float32([*THIRD_AT_ZERO])
    x, one = np.zeros_like(p), np.ones_like(p)

    def second(t: Any) -> Any:
        return sad.sum(sad.hvp(of_powers(p)["arrays"], (t,), (sad.array(one),)))

    np.testing.assert_array_equal(sad.grad(second)(x).numpy(), [*THIRD_AT_ZERO.values()])


def test_first_derivatives_of_powers_at_zero_do_not_move_by_the_exponent(
    device: sad.Device,
) -> None:
    p = np.float32(EXPONENTS)
    x, zero, one = np.zeros_like(p), np.zeros_like(p), np.ones_like(p)
    moved = sad.hvp(lambda x, p: sad.sum(powers(x, p)), (x, p), (zero, one))
    for by in moved:
        np.testing.assert_array_equal(by.numpy(), zero)


def test_doubles_have_the_second_derivatives_of_powers(device: sad.Device) -> None:
    if "double" not in device.capabilities.features:
        pytest.skip("no doubles")
    p = sad.array(EXPONENTS, dtype=sad.double)
    x = sad.array(np.zeros(len(EXPONENTS)), dtype=sad.double)
    one = sad.array(np.ones(len(EXPONENTS)), dtype=sad.double)
    found = sad.hvp(lambda x: sad.sum(x**p), (x,), (one,)).numpy()
    np.testing.assert_array_equal(found, SECOND_AT_ZERO)
