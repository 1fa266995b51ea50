"""Kernels whose derivatives Slang's own differentiation gets wrong without a word, or not at all.

Each is one that a user could write.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3
from shaderad.decorators import KernelFunction
from tests.agreement import check_against_oracle, close
from tests.lower.checking import check
from tests.lower.loop_cases import floats
from tests.lower.reference import Case
from tests.oracle import oracle

pytestmark = pytest.mark.gpu


@sad.kernel
def only_adds(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    for k in sad.range(len(x), limit=8):
        total[(i + k) % 3] += x[k] * x[k]


def test_empty_accessor_in_a_loop_without_other_effect(device: sad.Device) -> None:
    check(Case(only_adds, (floats(4),), 4, {"total": (3,)}), device)


@sad.kernel
def reads_alias(i: sad.Index, x: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    p = sad.LocalArray[float, 3]()
    for j in sad.static_range(3):
        p[j] = x[j]
    y[i] = p[k[i]] * 2.0 + p[1] * p[k[i]]


def test_aliased_array_reads(device: sad.Device) -> None:
    check(Case(reads_alias, (floats(3), np.int32([0, 1, 2])), 3), device)


@sad.kernel
def long_inner_loop(i: sad.Index, x: sad.In[float], outer: int, inner: int, y: sad.Out[float]):
    s = x[i]
    for k in sad.range(outer, limit=4):
        for m in sad.range(inner, limit=40):
            s = s + 0.02 * sad.sin(s * x[(k + m) % len(x)])
    y[i] = s


@pytest.mark.parametrize(("outer", "inner"), [(2, 6), (3, 32), (4, 40), (0, 5), (4, 0)])
def test_nested_loops(outer: int, inner: int, device: sad.Device) -> None:
    check(Case(long_inner_loop, (floats(5), outer, inner), 5), device)


def test_more_iterations_than_the_limit_are_no_silent_gradient(device: sad.Device) -> None:
    _, pullback = sad.vjp(long_inner_loop, floats(5), 5, 1, dim=5)
    with pytest.raises(sad.LimitError, match="past its limit of 4"):
        pullback(np.ones(5, np.float32))[0].numpy()


@sad.function
def backward_only(x: float) -> float:
    return x * x


@backward_only.backward_derivative
def backward_only_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@sad.kernel
def uses_backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = backward_only(x[i])


def test_forward_through_backward_only_is_refused(device: sad.Device) -> None:
    x = floats(2)
    with pytest.raises(sad.DerivativeError, match="SR0412"):
        sad.jvp(uses_backward_only, (x,), (x,), dim=2)


@sad.kernel
def reads_twice(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = x[i] * x[i] + x[0]
    z[i] = x[i]


def test_stored_cotangent_of_two_reads_of_one_element(device: sad.Device) -> None:
    check(Case(reads_twice, (floats(5),), 5), device)


@sad.kernel
def pulls_inside(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    p = sad.diff_pair(x[i])
    sad.bwd_diff(backward_only)(p, 1.0)
    y[i] = p.d


def test_a_second_derivative_of_what_has_a_backward_alone_is_refused(device: sad.Device) -> None:
    out, pullback = sad.vjp(pulls_inside, np.float32([3.0]), dim=1)
    assert out.numpy().tolist() == [6.0]
    with pytest.raises(sad.DerivativeError, match="SR0412"):
        pullback(np.ones(1, np.float32))


@sad.kernel
def nan_tests(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[bool]):
    y[i] = sad.max(x[i], 1.0)
    z[i] = sad.isnan(x[i])


def test_nan_maximum(device: sad.Device) -> None:
    x = np.float32([math.nan, 3.0])
    (y, z), pullback = sad.vjp(nan_tests, x, dim=2)
    assert y.numpy().tolist() == [1.0, 3.0]
    assert z.numpy().tolist() == [True, False]
    assert pullback((np.ones(2, np.float32), None))[0].numpy().tolist() == [0.0, 1.0]


def test_partials_of_powers_and_remainders(device: sad.Device) -> None:
    check(Case(remainders, (np.float32([-3.0, 2.0]), np.float32([2.0, 3.1])), 2), device)
    x, m = np.float32([-3.0]), np.float32([1e-7])
    y, pullback = sad.vjp(powers, x, m, dim=1)
    assert y.numpy()[0] == pytest.approx(9.0 + 1e-7)
    x_bar, m_bar = pullback(np.ones(1, np.float32))
    assert x_bar.numpy().tolist() == [-6.0]
    assert m_bar.numpy()[0] == pytest.approx(1.0)


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], m: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** 2.0 + sad.pow(m[i], 1.0)


@sad.kernel
def remainders(i: sad.Index, x: sad.In[float], m: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** 2 + x[i] ** 3.0 + 7.5 % m[i]


@sad.kernel
def counts(i: sad.Index, x: sad.In[float], total: sad.Add[float], seen: sad.Add[int]):
    total[i % 2] += x[i] * x[i]
    seen[0] += 1


def test_replayed_effects_do_not_reach_the_results(device: sad.Device) -> None:
    x = floats(5)
    (total, seen), pullback = sad.vjp(counts, x, dim=5, shapes={"total": (2,), "seen": (1,)})
    before = total.numpy()
    for _ in range(2):
        pullback((np.ones(2, np.float32), None))[0].numpy()
    assert np.array_equal(total.numpy(), before)
    assert seen.numpy().tolist() == [5]


@sad.kernel
def starts_constant(i: sad.Index, x: sad.In[float], y: sad.Out[float2], z: sad.Out[float]):
    v = float2(1.0, 2.0)
    a = sad.LocalArray[float, 2]()
    if x[i] > 0.8:
        v.x = x[i] * x[i]
        a[i % 2] = x[i] * x[i]
        y[i].y = x[i] * 3.0
    y[i].x = v.x * v.y
    z[i] = a[0] + a[1]


def test_constant_changed_in_part(device: sad.Device) -> None:
    sad.gradcheck(starts_constant, np.float32([0.5, 1.0, 1.5]), dim=3)


@sad.struct
class Both:
    u: float
    v: float


@sad.kernel
def trades_vectors(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = float3(x[i], 0.0, 0.0)
    b = float3(0.0, 0.0, x[i])
    if n[i] < 2:
        a.y = x[i]
        b.z = x[i] * x[i]
    a, b = b, a
    if n[i] != 3:
        b.y = x[i]
        a.zx = (x[i] * a).xy
    a, b = b, a
    y[i] = sad.dot(a, float3(1.0, 2.0, 3.0)) + sad.dot(b, float3(4.0, 5.0, 6.0))


@sad.kernel
def trades_arrays(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = sad.LocalArray[float, 4]()
    b = sad.LocalArray[float, 4]()
    a[n[i]] = x[i]
    b[n[i]] = x[i] * x[i]
    if n[i] < 2:
        a[1] = x[i]
        b[2] = x[i] * x[i]
    a, b = b, a
    if n[i] != 3:
        b[1] = x[i]
        a[n[i]] += x[i] * x[i]
    a, b = b, a
    y[i] = 0.0
    for k in sad.static_range(4):
        y[i] += (2.0 + float(k)) * a[k] + (3.0 - float(k)) * b[k]


@sad.kernel
def trades_structs(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = Both(0.0, 1.0)
    b = Both(2.0, 0.0)
    if n[i] < 2:
        a.u = x[i]
        b.v = x[i] * x[i]
    else:
        a.v = x[i] * x[i] * x[i]
    a, b = b, a
    if n[i] == 1:
        a.u = x[i]
        b.v = x[i] * x[i]
    a, b = b, a
    if n[i] != 3:
        b.v = x[i]
        a.u = x[i] * x[i]
    a, b = b, a
    y[i] = a.u * 1.1 + a.v * 1.7 + b.u * 3.0 + b.v * 4.0


@pytest.mark.parametrize("kernel", [trades_vectors, trades_arrays, trades_structs])
def test_traded_places(kernel: KernelFunction, device: sad.Device) -> None:
    sad.gradcheck(kernel, floats(4), np.int32([0, 1, 2, 3]), dim=4)


@sad.kernel
def places_uniforms(
    i: sad.Index, x: sad.In[float], u: float, w: float2, y: sad.Out[float3], s: sad.Add[float3]
):
    s[0] += float3(x[i], u, 1.0)
    v = x[i] * float3(1.0, w)
    v.y = u
    w *= x[i]
    y[i] = v * float3(w, x[i]) * x[i]


def test_uniforms_whose_derivative_nobody_wants_stand_in_vectors(device: sad.Device) -> None:
    """The pullback, and the tangent, by `x` alone."""
    x, uniforms = floats(3), (0.5, np.float32([2.0, 3.0]))
    call = {"dim": 3, "shapes": {"s": (1,)}}
    exact = oracle(places_uniforms, x, *uniforms, **call)
    bars = (np.ones((3, 3), np.float32), np.ones((1, 3), np.float32))
    _, pullback = sad.vjp(lambda x: places_uniforms(x, *uniforms, **call), x)
    close(pullback(bars)[0], exact.vjp(bars)[0], "gradient")
    dots = (floats(3), None, None)
    close(sad.jvp(places_uniforms, (x, *uniforms), dots, **call)[1], exact.jvp(dots), "tangent")


@sad.kernel
def spreads_parameters(
    i: sad.Index, x: sad.In[float3], u: float, y: sad.Out[float3], z: sad.Out[float2x2]
):
    y[i] = x[i].yxy if i % 2 == 1 else x[i].xxx * u
    z[i] = float2x2(x[i].x, 1.0, 2.0, 3.0)
    if i == 1:
        y[i] = sad.sin(u - x[i]) / u
    elif i == 2:
        z[i] = (u * z[i]) @ z[i] + u


def test_a_parameter_spread_over_a_vector_in_a_branch(device: sad.Device) -> None:
    check_against_oracle(spreads_parameters, 0.5 + floats(12).reshape(4, 3), 0.75, dim=4)


def test_no_runtime_adds_by_the_weak_compare_exchange_of_wgsl(device: sad.Device) -> None:
    if device.capabilities.runtime == "wgpu":
        assert device.capabilities.atomics != "compare-exchange"
