"""Kernels in which random programs found a fault, each reduced to what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2

pytestmark = pytest.mark.gpu

X = np.array([0.5, 1.25, -0.75], np.float32)


@sad.function
def cubic(t: float, a: float) -> float:
    return t * t * a


@cubic.backward_derivative
def cubic_bwd(t: sad.DifferentialPair[float], a: sad.DifferentialPair[float], d_out: float):
    t.d += 2.0 * t.p * a.p * d_out
    a.d += t.p * t.p * d_out


@cubic.forward_derivative
def cubic_fwd(
    t: sad.DifferentialPair[float], a: sad.DifferentialPair[float]
) -> sad.DifferentialPair[float]:
    slope = 0.0
    for _k in range(2):
        slope += t.p * t.d * a.p
    return sad.diff_pair(cubic(t.p, a.p), slope + t.p * t.p * a.d)


@sad.function
def wave(t: float) -> float:
    return sad.sin(cubic(t, t))


@sad.kernel
def slope_by_own_derivative(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(cubic)(sad.diff_pair(x[i], 1.5), sad.diff_pair(0.5, x[i])).d


@sad.kernel
def slope_through_own_derivative(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(wave)(sad.diff_pair(x[i], 1.5)).d


@pytest.mark.parametrize("kernel", [slope_by_own_derivative, slope_through_own_derivative])
def test_forward_derivatives_of_the_user_are_differentiated_again(
    kernel: object, device: sad.Device
) -> None:
    sad.gradcheck(kernel, X, dim=3)


@sad.kernel
def writes_no_extreme(
    i: sad.Index, x: sad.In[float], y: sad.Out[float], low: sad.Min[float], high: sad.Max[int]
):
    y[i] = x[i]


def test_extremes_that_a_kernel_never_writes_keep_what_they_start_with(device: sad.Device) -> None:
    _, low, high = writes_no_extreme(X, dim=3, shapes={"low": (2,), "high": (2,)})
    assert low.numpy().tolist() == [np.inf, np.inf]
    assert high.numpy().tolist() == [-(2**31), -(2**31)]


@sad.struct
class Inner:
    weight: float
    kind: int


@sad.struct
class Outer:
    inner: Inner
    count: int


@sad.kernel
def reads_nested(i: sad.Index, x: sad.In[Outer], y: sad.Out[float]):
    y[i] = x[i].inner.weight * float(x[i].count)


def test_tangents_leave_out_whole_numbers_after_a_struct(device: sad.Device) -> None:
    x = {"inner": {"weight": X, "kind": np.zeros(3, np.int32)}, "count": np.full(3, 2, np.int32)}
    x_dot = {"inner": {"weight": np.ones(3, np.float32), "kind": None}, "count": None}
    _, y_dot = sad.jvp(reads_nested, (x,), (x_dot,), dim=3)
    assert y_dot.numpy().tolist() == [2.0, 2.0, 2.0]


@sad.function
def added(total: sad.Add[float], t: float) -> float:
    total[0] += t * t
    return t


@sad.kernel
def adds_in_condition(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    for _k in range(2):
        if added(total, x[i]) > 0.0:
            continue


@sad.kernel
def reads_in_condition(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for _k in range(2):
        if x[i - 1] > 0.0:
            continue


@sad.kernel
def divides_in_condition(i: sad.Index, n: sad.In[int], y: sad.Out[float]):
    if 7 // n[i] > 1:
        return


@sad.kernel
def returns_behind_a_break(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    k = 0
    while sad.limit(k < 3 and x[i] > 0.0, 3):
        k += 1
        if True:
            break
        if i == 1:
            return
    y[i] = float(k) * x[i] * x[i]


def test_a_return_that_nothing_reaches_ends_no_loop(device: sad.Device) -> None:
    squares, (gradient,) = _pulled(returns_behind_a_break, abs(X))
    np.testing.assert_allclose(squares, X * X, rtol=1e-6)
    np.testing.assert_allclose(gradient, 2.0 * abs(X), rtol=1e-6)


def test_conditions_of_branches_that_do_nothing_add_still(device: sad.Device) -> None:
    (total,), (gradient,) = _pulled(adds_in_condition, X, shapes={"total": (1,)})
    assert total == pytest.approx(2.0 * np.sum(X * X))
    np.testing.assert_allclose(gradient, 4.0 * X, rtol=1e-6)


@sad.kernel
def counts_to_what_is_written_later(
    i: sad.Index, x: sad.In[float], y: sad.Out[float], count: sad.Out[int]
):
    total = x[i]
    for _ in range(2):
        for _ in range(count[i] + 1):
            total *= x[i]
    y[i] = total
    count[i] = 4


def test_the_way_back_counts_to_what_an_output_held_before(device: sad.Device) -> None:
    out, pullback = sad.vjp(counts_to_what_is_written_later, X, dim=3)
    np.testing.assert_allclose(out[0].numpy(), X**3, rtol=1e-6)
    (gradient,) = pullback((np.ones_like(X), None))
    np.testing.assert_allclose(gradient.numpy(), 3.0 * X * X, rtol=1e-6)


@sad.kernel
def rewrites_in_branches(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float2]):
    if i != 1:
        y[i] = sad.sin(2.0 + y[i] * x[i])
        if x[i] > 0.0:
            z[i].x = x[i] * (z[i].y + 1.5) * sad.cos(z[i].x * x[i] + 0.5)
            z[i].y = z[i].x * z[i].y * x[i] + x[i]
            z[i] = z[i] * z[i].yx
    else:
        z[i] = float2(x[i] * z[i].x, y[i] * x[i] + 1.0)


def test_what_an_output_holds_before_a_branch_writes_it_is_zero(device: sad.Device) -> None:
    sad.gradcheck(rewrites_in_branches, X, dim=3)
    (y, _), pullback = sad.vjp(rewrites_in_branches, X, dim=3)
    np.testing.assert_allclose(y.numpy(), np.sin([2.0, 0.0, 2.0]), atol=1e-6)
    (gradient,) = pullback((np.ones(3, np.float32), None))
    np.testing.assert_array_equal(gradient.numpy(), [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("kernel", "argument"), [(reads_in_condition, X), (divides_in_condition, np.int32([1, 0, 2]))]
)
def test_conditions_of_branches_that_do_nothing_report_still(
    kernel: Any, argument: np.ndarray, device: sad.Device
) -> None:
    with pytest.raises(sad.BoundsError):
        kernel(argument, dim=3).numpy()


def _pulled(kernel: Any, *args: Any, **call: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The result, and its gradients for a cotangent of ones."""
    out, pullback = sad.vjp(kernel, *args, dim=3, **call)
    found = out.numpy()
    return found, [g.numpy() for g in pullback(np.ones_like(found))]
