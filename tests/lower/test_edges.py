"""Ties, empty launches, special values, and what kernels report, on every runtime."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3
from tests.agreement import check_against_oracle
from tests.lower.loop_cases import floats

pytestmark = pytest.mark.gpu

INF = math.inf
NAN = math.nan


@sad.kernel
def ties(i: sad.Index, x: sad.In[float], g: sad.In[int], low: sad.Min[float], high: sad.Max[float]):
    for _k in range(3):
        low[g[i]] = sad.min(low[g[i]], x[i])
    high[g[i]] = sad.max(high[g[i]], x[i] * 2.0)
    high[g[i]] = sad.max(high[g[i]], x[i] + x[i])


@sad.kernel
def ints(
    i: sad.Index,
    x: sad.In[int],
    u: sad.In[sad.uint],
    low: sad.Min[int],
    high: sad.Max[int],
    ulow: sad.Min[sad.uint],
    uhigh: sad.Max[sad.uint],
):
    low[i % 2] = sad.min(low[i % 2], x[i])
    high[i % 2] = sad.max(high[i % 2], x[i])
    ulow[i % 2] = sad.min(ulow[i % 2], u[i])
    uhigh[i % 2] = sad.max(uhigh[i % 2], u[i])


@sad.kernel
def vecs(i: sad.Index, v: sad.In[float3], low: sad.Min[float3], high: sad.Max[float2]):
    low[i % 2] = sad.min(low[i % 2], v[i] * v[i].yzx)
    high[0].y = sad.max(high[0].y, v[i].z)
    high[0].x = sad.max(high[0].x, v[i].y * v[i].z)


@sad.function
def put(low: sad.Min[float], j: int, v: float) -> float:
    low[j] = sad.min(low[j], v)
    return v


@sad.kernel
def in_function(i: sad.Index, x: sad.In[float], low: sad.Min[float], y: sad.Out[float]):
    y[i] = put(low, i % 2, x[i]) + put(low, 2, -x[i])


@sad.function
def put_squares(low: sad.Min[float], j: int, a: float, b: float):
    """Ties of two calls, of two writes of one call, and of the iterations around a write."""
    put(low, j, a * a)
    for _k in range(2):
        put(low, j, a * b)
        low[j] = sad.min(low[j], b * b)


@sad.kernel
def ties_in_functions(i: sad.Index, x: sad.In[float], low: sad.Min[float], first: sad.Max[float]):
    a, b = x[2 * i], x[2 * i + 1]
    for _k in sad.range(i + 1, limit=4):
        put_squares(low, 0, a, b)
        put_squares(low, 1, b, a)
    if put(low, 2, a) <= put(low, 2, b):
        first[0] = sad.max(first[0], put(low, 3, a * b))
    n = 0
    while sad.limit(put(low, 4, b * float(n + 1)) < 3.5 and n < 3, 4):
        n += 1


@sad.kernel
def bounds_bad(
    i: sad.Index,
    x: sad.In[float],
    y: sad.Out[float],
    t: sad.Add[float],
    z: sad.Out[float],
    m: sad.Min[float],
):
    a = sad.LocalArray[float, 3]()
    a[i] = x[i]
    v = float3(1.0)
    v[i] = a[i + 1] + 2.0
    y[i] = x[i + 2] + v.x * x[i] + v[i]
    t[i - 1] += x[i]
    z[i + 1] = x[i]
    m[i * 100] = sad.min(m[i * 100], x[i])


@sad.kernel
def divides(i: sad.Index, a: sad.In[int], b: sad.In[int], q: sad.Out[int], r: sad.Out[int]):
    q[i] = a[i] // b[i]
    r[i] = a[i] % b[i]


@sad.kernel
def asserts(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    assert x[i] > 0.5, "too small"
    y[i] = x[i]


@sad.kernel
def limits(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float], z: sad.Out[float]):
    s = x[i]
    for _k in sad.range(n[i], limit=4):
        s = s * x[i]
    y[i] = s
    k = 0
    while sad.limit(k < n[i], 4):
        k += 1
        z[i] += s * x[i]


@sad.kernel
def special_values(
    i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[bool], w: sad.Out[float]
):
    s = INF
    for k in sad.range(2, limit=2):
        s = sad.min(s, x[i] * x[k])
    y[i] = s
    z[i] = sad.isnan(x[i] * NAN)
    w[i] = INF if i == 0 else -INF


TIED = np.float32([3, 1, 1, 2, 1, np.nan, -0.0, 0.0])
GROUPS = np.int32([0, 0, 0, 1, 1, 1, 2, 2])
FOUR = {"low": (4,), "high": (4,)}


def test_ties_go_to_the_lowest_thread_and_its_first_write(device: sad.Device) -> None:
    (low, high), pullback = sad.vjp(ties, TIED, GROUPS, dim=8, shapes=FOUR)
    assert low.numpy().tolist() == [1.0, 1.0, 0.0, np.inf]
    assert high.numpy().tolist() == [6.0, 4.0, 0.0, -np.inf]
    low_bar = np.float32([1, 10, 100, 1000])
    (found,) = pullback((low_bar, 1000 * low_bar))[:1]
    # Both high writes of a thread attain it: x * 2 comes first, and so does (x + x)' = 2.
    wanted = [2e3, 1, 0, 2e4, 10, 0, 2e5 + 100, 0]
    assert found.numpy().tolist() == wanted


def test_tangents_of_extremes_are_the_winners(device: sad.Device) -> None:
    tangent = np.arange(1, 9, dtype=np.float32)
    _, (low_dot, _) = sad.jvp(ties, (TIED, GROUPS), (tangent, None), dim=8, shapes=FOUR)
    assert low_dot.numpy().tolist() == [2.0, 5.0, 7.0, 0.0]


def test_integer_extremes_reach_both_ends_of_their_range(device: sad.Device) -> None:
    x, u = np.int32([3, -5, 2**31 - 1, -(2**31)]), np.uint32([3, 0, 2**32 - 1, 7])
    shapes = dict.fromkeys(("low", "high", "ulow", "uhigh"), (3,))
    found = [a.numpy().tolist() for a in ints(x, u, dim=4, shapes=shapes)]
    assert found == [
        [3, -(2**31), 2**31 - 1],
        [2**31 - 1, -5, -(2**31)],
        [3, 0, 2**32 - 1],
        [2**32 - 1, 7, 0],
    ]


def test_extremes_of_vectors_win_by_component(device: sad.Device) -> None:
    # Far enough from each other for finite differences: no step changes who wins.
    apart = 0.4 + 0.05 * np.random.default_rng(1).permutation(18).reshape(6, 3)
    sad.gradcheck(vecs, apart, dim=6, shapes={"low": (2,), "high": (1,)})


def test_an_empty_launch_leaves_extremes_and_gradients_as_they_start(device: sad.Device) -> None:
    shapes = {"low": (2,), "high": (2,)}
    (low, high), pullback = sad.vjp(ties, TIED[:0], GROUPS[:0], dim=0, shapes=shapes)
    assert low.numpy().tolist() == [np.inf] * 2
    assert high.numpy().tolist() == [-np.inf] * 2
    assert pullback((np.ones(2, np.float32), np.ones(2, np.float32)))[0].numpy().size == 0


def test_writes_of_functions_win_like_those_of_the_kernel(device: sad.Device) -> None:
    x = np.float32([0.5, 0.25, 0.75, 1.0])
    (low, _), pullback = sad.vjp(in_function, x, dim=4, shapes={"low": (3,)})
    assert low.numpy().tolist() == [0.5, 0.25, -1.0]
    (found,) = pullback((np.float32([1, 10, 100]), None))
    assert found.numpy().tolist() == [1.0, 10.0, 0.0, -100.0]


def test_ties_between_calls_of_functions_go_to_the_first(device: sad.Device) -> None:
    # Thread 0 attains low[0] and low[1] by its first write, a * a and b * b, and ties with all of
    # thread 1, which runs twice; low[2] ties within the condition, low[4] over a while's.
    x = np.float32([2, 2, 2, 2])
    shapes = {"low": (5,), "first": (1,)}
    (low, first), pullback = sad.vjp(ties_in_functions, x, dim=2, shapes=shapes)
    assert low.numpy().tolist() == [4.0, 4.0, 2.0, 4.0, 2.0]
    assert first.numpy().tolist() == [4.0]
    for k, wanted in enumerate([[4.0, 0.0], [0.0, 4.0], [1.0, 0.0], [2.0, 2.0], [0.0, 1.0]]):
        (found,) = pullback((np.eye(5, dtype=np.float32)[k], np.zeros(1, np.float32)))
        assert found.numpy().tolist() == [*wanted, 0.0, 0.0], k
    tangent = np.float32([1, 10, 100, 1000])
    _, (low_dot, first_dot) = sad.jvp(ties_in_functions, (x,), (tangent,), dim=2, shapes=shapes)
    assert low_dot.numpy().tolist() == [4.0, 40.0, 1.0, 22.0, 10.0]
    assert first_dot.numpy().tolist() == [22.0]


OUTSIDE = {"t": (3,), "z": (3,), "m": (150,)}


def test_ignored_bounds_read_zero_write_nothing_and_have_no_gradient(device: sad.Device) -> None:
    x = floats(3)
    out, pullback = sad.vjp(bounds_bad, x, dim=3, shapes=OUTSIDE, bounds="ignore")
    y, t, z, m = (o.numpy() for o in out)
    # a = [x0], [0, x1], [0, 0, x2]; v.x is 2 where thread 0 writes it, v[2] is 2 for the last.
    np.testing.assert_allclose(y, [x[2] + 2 * x[0] + 2, x[1] + 2, x[2] + 2], rtol=1e-6)
    assert t.tolist() == [x[1], x[2], 0]
    assert z.tolist() == [0, x[0], x[1]]
    assert (m[0], m[100]) == (x[0], x[1])
    (found,) = pullback(tuple(np.ones_like(o) for o in (y, t, z, m)))
    assert found.numpy().tolist() == [4.0, 4.0, 3.0]


def first_result(kernel: Any, mode: str, x: np.ndarray, *rest: Any, dim: int) -> np.ndarray:
    """Runs the kernel as it is, or as the transform does, up to the host's read of a result."""
    if mode == "primal":
        out = kernel(x, *rest, dim=dim)
    elif mode == "vjp":
        out, _ = sad.vjp(kernel, x, *rest, dim=dim)
    else:
        out, _ = sad.jvp(kernel, (x, *rest), (x, *(None for _ in rest)), dim=dim)
    return (out[0] if isinstance(out, tuple) else out).numpy()


@pytest.mark.parametrize("mode", ["primal", "vjp", "jvp"])
def test_a_report_names_kernel_line_and_array(mode: str, device: sad.Device) -> None:
    x = floats(3)
    with pytest.raises(sad.BoundsError, match="SR0660") as caught:
        first_result(over_end, mode, x, dim=3)
    assert "index 3 is out of range for `x` of length 3 in kernel `over_end`" in str(caught.value)
    line = over_end.python.__code__.co_firstlineno + 2
    assert f"test_edges.py:{line}:" in str(caught.value)


@sad.kernel
def over_end(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i + 1]


def test_division_by_zero_is_zero_and_reported(device: sad.Device) -> None:
    a, b = np.int32([7, -7, 7, 5]), np.int32([2, 2, -2, 0])
    with pytest.raises(sad.BoundsError, match="SR0663"):
        divides(a, b, dim=4)[0].numpy()
    q, r = divides(a, b, dim=4, bounds="ignore")
    assert q.numpy().tolist() == [3, -4, -4, 0]
    assert r.numpy().tolist() == [1, 1, -1, 0]


def test_a_failed_assertion_is_reported_with_its_text(device: sad.Device) -> None:
    with pytest.raises(sad.BoundsError, match=r"SR0662.*too small"):
        asserts(np.float32([1.0, 0.1]), dim=2).numpy()


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_within_their_limit_are_differentiated(count: int, device: sad.Device) -> None:
    sad.gradcheck(limits, floats(3), np.full(3, count, np.int32), dim=3)


@pytest.mark.parametrize("mode", ["primal", "vjp", "jvp"])
def test_one_step_past_the_limit_is_reported(mode: str, device: sad.Device) -> None:
    x, n = floats(3), np.full(3, 5, np.int32)
    with pytest.raises(sad.LimitError, match="past its limit of 4"):
        first_result(limits, mode, x, n, dim=3)


def test_infinities_and_nan_stand_in_kernels(device: sad.Device) -> None:
    x = np.float32([0.5, 2.0, 1.5])
    (y, z, w), pullback = sad.vjp(special_values, x, dim=3)
    assert y.numpy().tolist() == [0.25, 1.0, 0.75]
    assert z.numpy().tolist() == [True] * 3
    assert w.numpy().tolist() == [np.inf, -np.inf, -np.inf]
    found = pullback((np.ones(3, np.float32), None, None))[0].numpy()
    # min(x0 x0, x0 x1) = x0 x0, then x1 x0, then x2 x0.
    assert found.tolist() == [1.0 + 2.0 + 1.5, 0.5, 0.5]


@sad.kernel
def repeats_squaring(i: sad.Index, x: sad.In[float], count: int, y: sad.Out[float]):
    y[i] = x[i]
    for _k in range(count):
        y[i] *= y[i]


@sad.kernel
def named_like_derivatives(
    i: sad.Index, x: sad.In[float], x_dot: sad.In[float], x_bar: sad.In[float], y: sad.Out[float]
):
    y[i] = x[i] * x_dot[i] * x_bar[0]


def test_arrays_may_be_named_like_derivatives_of_others(device: sad.Device) -> None:
    x = np.float32([1.0, 2.0])
    check_against_oracle(named_like_derivatives, x, x + 1, x + 2, dim=2)


def test_a_loop_without_a_limit_pushes_tangents(device: sad.Device) -> None:
    x = np.float32([0.5, 1.5])
    _, y_dot = sad.jvp(repeats_squaring, (x, 2), (np.ones(2, np.float32), None), dim=2)
    np.testing.assert_allclose(y_dot.numpy(), 4 * x**3, rtol=1e-6)
