"""`checks=`: where a NaN or infinity first appears, and what is written twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3

COUNT = 300


def raised_by(device: sad.Device, call: Callable[[], Any]) -> sad.Error:
    """What `call` or the synchronisation after it raises; the next one is clean."""

    def run() -> None:
        call()
        device.synchronize()

    with pytest.raises(sad.Error) as raised:
        run()
    device.synchronize()
    return raised.value


def assert_reports(found: sad.Error, code: str, *parts: str) -> None:
    """That the error names each of `parts`, the source line among them."""
    assert found.code == code
    for part in parts:
        assert part in str(found)


def ones(*zeros: int) -> np.ndarray:
    """Ones but for some elements."""
    x = np.ones(COUNT, np.float32)
    x[list(zeros)] = 0.0
    return x


@sad.kernel
def ratio(i: sad.Index, x: sad.In[float], z: sad.In[float], y: sad.Out[float]):
    shifted = x[i] - 1.0
    part = shifted / z[i]
    whole = part / z[i]
    y[i] = whole


def test_the_lowest_element_and_its_first_statement_are_named(device: sad.Device) -> None:
    found = raised_by(device, lambda: ratio(ones(), ones(201, 70), dim=COUNT, checks="nan"))
    assert_reports(
        found, "SR0666", "`part` is NaN", "element 70", "part = shifted / z[i]", "`ratio`", ": 2;"
    )
    assert isinstance(found, sad.BoundsError)


def test_infinities_are_named_with_their_sign(device: sad.Device) -> None:
    x = np.zeros(COUNT, np.float32)
    found = raised_by(device, lambda: ratio(x, ones(5), dim=COUNT, checks="nan"))
    assert_reports(found, "SR0666", "`part` is -inf", "element 5")


def test_without_a_nan_values_and_gradients_are_the_same(device: sad.Device) -> None:
    x, z = np.linspace(2.0, 3.0, COUNT, dtype=np.float32), ones()
    found: list[list[np.ndarray]] = []
    for checks in (None, "nan"):
        y, pullback = sad.vjp(ratio, x, z, dim=COUNT, checks=checks)
        found.append([y.numpy(), *(g.numpy() for g in pullback(ones()))])
    for plain, checked in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, checked)


def test_a_nan_that_was_read_is_named_where_it_is_read(device: sad.Device) -> None:
    x = ones()
    x[9] = np.nan
    found = raised_by(device, lambda: ratio(x, ones(), dim=COUNT, checks="nan"))
    assert_reports(found, "SR0666", "`shifted` is NaN", "element 9", "shifted = x[i] - 1.0")


@sad.kernel
def branching(i: sad.Index, j: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):
    value = x[i, j]
    if value < 0.0:
        value = sad.log(value)
    y[i, j] = value


def test_elements_of_several_axes_are_named_by_all_indices(device: sad.Device) -> None:
    x = np.ones((20, 30), np.float32)
    x[7, 19] = x[8, 2] = -1.0
    found = raised_by(device, lambda: branching(x, dim=(20, 30), checks="nan"))
    assert_reports(found, "SR0666", "`value` is NaN", "element 7, 19", "value = sad.log(value)")


@sad.function
def powered(base: float, count: int) -> float:
    value = base
    for _ in sad.range(count, limit=10):
        value = value * value
    return value


@sad.kernel
def sum_of_powers(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    total[0] += powered(x[i], 8)


def test_an_overflow_in_a_loop_of_a_function_is_named_there(device: sad.Device) -> None:
    x = ones()
    x[250] = 1e20
    call = {"dim": COUNT, "shapes": {"total": (1,)}, "checks": "nan"}
    found = raised_by(device, lambda: sum_of_powers(x, **call))
    assert_reports(found, "SR0666", "`value` is inf", "element 250", "value = value * value")
    found = raised_by(device, lambda: sad.grad(sum_of_powers)(x, **call))
    assert_reports(found, "SR0666", "`value` is inf", "element 250", "value = value * value")


@sad.function
def root(x: float) -> float:
    doubled = 2.0 * x
    return sad.sqrt(doubled)


@sad.kernel
def roots(i: sad.Index, x: sad.In[float], scale: float, y: sad.Out[float]):
    scaled = x[i] * scale
    result = 0.0
    for _ in sad.range(i % 3, limit=2):
        result += root(scaled) + 1.0
    y[i] = result


def test_a_cotangent_is_named_at_the_line_that_gives_it_back(device: sad.Device) -> None:
    y, pullback = sad.vjp(roots, ones(4, 3, 200), 2.0, dim=COUNT, checks="nan")
    assert np.isfinite(y.numpy()).all()
    found = raised_by(device, lambda: pullback(ones()))
    # Element 3 runs no step.
    assert_reports(
        found,
        "SR0668",
        "the cotangent of `doubled` is inf",
        "element 4",
        "return sad.sqrt(doubled)",
    )
    assert isinstance(found, sad.GradientError)


def test_a_tangent_is_named_with_its_line(device: sad.Device) -> None:
    x = ones(1)
    found = raised_by(
        device,
        lambda: sad.jvp(roots, (x, 2.0), (ones(), 0.0), dim=COUNT, checks="nan")[1].numpy(),
    )
    assert_reports(found, "SR0667", "the tangent of `the result` is inf", "element 1", "sad.sqrt")


@sad.kernel
def amplified(i: sad.Index, x: sad.In[float], factor: float, total: sad.Add[float]):
    part = x[i] * factor
    total[0] += part * 1e20


@sad.kernel
def roots_of_rebound(i: sad.Index, x: sad.In[float], scale: float, loss: sad.Add[float]):
    scale = scale * x[i]
    loss[0] += sad.sqrt(scale)


def test_a_constant_uniform_that_is_rebound_is_watched_as_any_local(device: sad.Device) -> None:
    call = {"dim": COUNT, "shapes": {"loss": (1,)}, "checks": "nan"}
    by_x = sad.grad(roots_of_rebound, argnums=0)
    found = raised_by(device, lambda: by_x(ones(4), 2.0, **call))
    assert_reports(found, "SR0668", "the cotangent of `scale", "sad.sqrt(scale)")


def test_a_cotangent_that_nobody_asks_for_is_not_reported(device: sad.Device) -> None:
    x = np.full(COUNT, 1e30, np.float32)
    call = {"dim": COUNT, "shapes": {"total": (1,)}, "checks": "nan"}
    gradient = sad.grad(amplified, argnums=0)(x, 1e-15, **call)
    np.testing.assert_allclose(gradient.numpy(), 1e5, rtol=1e-6)
    found = raised_by(device, lambda: sad.grad(amplified, argnums=1)(x, 1e-15, **call))
    assert_reports(found, "SR0668", "the cotangent of `factor` is inf", "element 0")


@sad.kernel
def nearest(i: sad.Index, points: sad.In[float3], distance: sad.Out[float]):
    best = math.inf
    low = float3(-math.inf)
    start = best
    for k in sad.range(len(points), limit=8):
        if k != i:
            best = sad.min(best, sad.length(points[k] - points[i]))
            low = sad.max(low, points[k])
    distance[i] = best + low.x if best < start else 0.0


def test_an_infinity_that_stands_in_the_source_is_meant(device: sad.Device) -> None:
    points = np.arange(24.0).reshape(8, 3).astype(np.float32)
    found = [nearest(points, dim=8, checks=checks).numpy() for checks in (None, "nan")]
    np.testing.assert_array_equal(*found)
    device.synchronize()


@sad.struct
class Ray:
    origin: float3
    direction: float2


@sad.function
def cast(angle: float, m: float2x2) -> Ray:
    return Ray(float3(angle, 0.0, 1.0), m @ float2(sad.sqrt(angle), 1.0))


@sad.kernel
def cast_rays(i: sad.Index, angles: sad.In[float], m: float2x2, y: sad.Out[float]):
    ray = cast(angles[i], m)
    ray.origin.y = ray.direction.x
    y[i] = sad.dot(ray.origin, ray.origin) + ray.direction.y


def test_parts_of_structs_vectors_and_matrices_are_watched(device: sad.Device) -> None:
    angles, m = np.linspace(1.0, 2.0, COUNT, dtype=np.float32), np.eye(2, dtype=np.float32)
    y, pullback = sad.vjp(cast_rays, angles, m, dim=COUNT, checks="nan")
    plain, plain_pullback = sad.vjp(cast_rays, angles, m, dim=COUNT)
    np.testing.assert_array_equal(y.numpy(), plain.numpy())
    for found, wanted in zip(pullback(ones()), plain_pullback(ones()), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
    angles[44] = -1.0
    report = raised_by(device, lambda: cast_rays(angles, m, dim=COUNT, checks="nan"))
    assert_reports(report, "SR0666", "`the result` is NaN", "element 44", "return Ray(")


@sad.function
def bent(x: float) -> float:
    return x * x


@bent.backward_derivative
def bent_bwd(x: sad.DifferentialPair[float], d_out: float):
    slope = d_out / x.p
    x.d += slope * 0.0


@sad.kernel
def bends(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = bent(x[i])


def test_custom_derivatives_are_watched_line_by_line(device: sad.Device) -> None:
    _, pullback = sad.vjp(bends, ones(2), dim=COUNT, checks="nan")
    found = raised_by(device, lambda: pullback(ones()))
    assert_reports(found, "SR0666", "`slope` is inf", "element 2", "slope = d_out / x.p")


@sad.kernel
def slopes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(bent_root)(sad.diff_pair(x[i], 1.0)).d


@sad.function
def bent_root(x: float) -> float:
    bend = x * x
    return sad.sqrt(bend)


def test_derivatives_inside_a_kernel_are_watched_and_differentiated_again(
    device: sad.Device,
) -> None:
    y, pullback = sad.vjp(slopes, ones(), dim=COUNT, checks="nan")
    np.testing.assert_allclose(y.numpy(), 1.0, rtol=1e-5)
    np.testing.assert_allclose(pullback(ones())[0].numpy(), 0.0, atol=1e-5)
    found = raised_by(device, lambda: slopes(-1e30 * ones(), dim=COUNT, checks="nan"))
    assert_reports(found, "SR0666", "`bend` is inf", "element 0", "bend = x * x")


@sad.kernel
def inverted(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 1.0 / x[i]


@sad.kernel
def mirrored(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = -x[COUNT - 1 - i] * 2.0


def test_the_first_of_several_kernels_is_named(device: sad.Device) -> None:
    def chain() -> None:
        y = inverted(ones(280), dim=COUNT, checks="nan")
        mirrored(y, dim=COUNT, checks="nan")

    found = raised_by(device, chain)
    assert_reports(found, "SR0666", "`inverted`", "element 280")


@sad.kernel
def beyond(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    part = x[i + 1]
    y[i] = 1.0 / x[i] + part


def test_bounds_and_checks_do_not_disturb_each_other(device: sad.Device) -> None:
    found = raised_by(device, lambda: beyond(ones(), dim=COUNT, checks="nan"))
    assert_reports(found, "SR0660", f"index {COUNT}", "part = x[i + 1]")
    beyond(ones(), dim=COUNT, checks="nan", bounds="ignore")
    device.synchronize()
    found = raised_by(
        device, lambda: beyond(ones(6), dim=COUNT - 1, checks="nan", bounds="unchecked")
    )
    assert_reports(found, "SR0666", "`y` is inf", "element 6")


@sad.kernel
def moved(i: sad.Index, x: sad.In[float2], to: sad.In[int], y: sad.Out[float2], z: sad.Out[float]):
    y[sad.unique(to[i])].y = x[i].x
    z[i] = x[i].y


def test_a_promise_of_unique_indices_that_is_broken_is_reported(device: sad.Device) -> None:
    x = np.arange(2.0 * COUNT, dtype=np.float32).reshape(COUNT, 2)
    to = np.roll(np.arange(COUNT, dtype=np.int32), 7)
    call = {"dim": COUNT, "shapes": {"y": (COUNT,)}, "checks": "writes"}
    y, _ = moved(x, to, **call)
    np.testing.assert_array_equal(y.numpy()[to, 1], x[:, 0])
    to[40] = to[250]
    found = raised_by(device, lambda: moved(x, to, **call))
    assert_reports(found, "SR0669", f"element {to[40]} of `y`", "`moved`", "y[sad.unique(to[i])]")

    def loss(x: sad.Array) -> sad.Array:
        return moved(x, to, **call)[1][:1]

    found = raised_by(device, lambda: sad.grad(loss)(sad.array(x, dtype=float2)))
    assert_reports(found, "SR0669", "written twice")


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in sad.range(3, limit=3):
        y[sad.unique((i + k) % len(y))] = x[i]


def test_one_thread_that_writes_an_element_twice_is_reported(device: sad.Device) -> None:
    call = {"dim": 1, "checks": "writes"}
    spread([1.0], shapes={"y": (3,)}, **call)
    device.synchronize()
    found = raised_by(device, lambda: spread([1.0], shapes={"y": (2,)}, **call))
    assert_reports(found, "SR0669", "element 0 of `y`")
    found = raised_by(device, lambda: sad.grad(spread)([1.0], shapes={"y": (1,)}, **call))
    assert_reports(found, "SR0669", "element 0 of `y`")


@sad.kernel
def halved(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    value = x[i]
    while sad.limit(value > 1.0, 4):
        value = value * 0.5
    total[0] += value


@pytest.mark.parametrize("transform", [None, "grad", "jvp"])
def test_a_loop_past_its_limit_is_reported_with_its_line(
    device: sad.Device, transform: str | None
) -> None:
    call = {"dim": COUNT, "shapes": {"total": (1,)}}
    calls: dict[str | None, Callable[[np.ndarray], Any]] = {
        None: lambda x: halved(x, **call),
        "grad": lambda x: sad.grad(halved)(x, **call),
        "jvp": lambda x: sad.jvp(halved, (x,), (x,), **call),
    }
    calls[transform](16.0 * ones(30))
    device.synchronize()
    found = raised_by(device, lambda: calls[transform](17.0 * ones(30)))
    assert isinstance(found, sad.LimitError)
    assert_reports(found, "SR0661", "`halved`", "limit of 4", "while sad.limit(value > 1.0, 4):")
