"""Kernels in which random programs found a fault, each reduced to what it needs."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad

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
