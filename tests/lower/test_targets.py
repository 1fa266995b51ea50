"""What the kernel language can say is taken by every target's own compiler, in both modes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

import shaderad as sad
from shaderad import double, float2, float3, float3x3, float4, half, half3, uint
from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.bundle.write.programs import ChosenKernel, build_kernel
from shaderad.bundle.write.validators import Validators
from shaderad.decorators import KernelFunction
from shaderad.ir.nodes import NO_SPAN
from shaderad.lower.targets import PROFILES
from tests.lower.typed_cases import local_arrays


@sad.struct
class Light:
    position: float3
    color: float3
    count: int
    is_on: bool


@sad.function
def cube(x: float) -> float:
    return x * x * x


@sad.kernel
def maths(i: sad.Index, x: sad.In[float], y: sad.In[float], z: sad.Out[float4]):
    a = sad.sin(x[i]) + sad.asin(y[i]) + sad.atan2(y[i], x[i]) + sad.tanh(x[i]) + sad.exp(y[i])
    b = sad.log2(y[i]) + sad.rsqrt(y[i]) + sad.pow(x[i], y[i]) + x[i] ** 3 + x[i] % y[i]
    c = sad.floor(x[i]) + sad.round(y[i]) + abs(x[i]) + sad.clamp(x[i], 0.0, 1.0) + max(x[i], y[i])
    d = sad.smoothstep(0.0, 1.0, x[i]) + sad.select(x[i] < y[i], x[i], y[i]) + sad.erf(x[i])
    if math.isnan(x[i]) or sad.isinf(y[i]):
        d = math.inf
    z[i] = float4(a, b, c, d)


@sad.kernel
def matrices(
    i: sad.Index, m: sad.In[float3x3], v: sad.In[float3], s: float, out: sad.Out[float3x3]
):
    t = sad.transpose(m[i])
    r = -(m[i] @ t) / s + t * 2.0 - m[i] / m[0]
    r -= sad.inverse(m[i]) * sad.determinant(m[i])
    r /= m[1]
    r[1] = m[i] @ v[i] + sad.cross(v[i], t[1])
    out[i] = 1.0 - r


@sad.kernel
def loops(
    i: sad.Index,
    n: int,
    x: sad.In[float],
    w: sad.In[float],
    y: sad.Out[float],
    loss: sad.Add[float],
):
    s = 0.0
    window = sad.LocalArray[float, 4]()
    for k in sad.range(n, limit=16):
        if x[k] < 0.0:
            continue
        s += x[k] * w[k % 3]
        window[k % 4] = s
        if s > 100.0:
            break
    for j in sad.static_range(4):
        s += window[j] * w[j]
    while sad.limit(s > 1.0, 20):
        s *= 0.5
    y[i] = s
    loss[0] += s * s
    loss[i % 4] += s


@sad.kernel
def structs(
    i: sad.Index, lights: sad.In[Light], sun: Light, p: sad.In[float3], color: sad.Out[float3]
):
    total = float3(0.0)
    for k in range(sun.count):
        light = lights[k]
        if light.is_on:
            away = light.position - p[i]
            total += light.color / (1.0 + sad.dot(away, away))
    color[i] = total * sun.color


@sad.kernel
def extremes(
    i: sad.Index, x: sad.In[float], k: sad.In[int], low: sad.Min[float], high: sad.Max[int]
):
    low[k[i]] = sad.min(low[k[i]], x[i] * x[i])
    high[0] = sad.max(high[0], k[i])


@sad.kernel
def halves(i: sad.Index, x: sad.In[half], a: sad.In[half3], k: sad.In[int], y: sad.Out[half]):
    y[i] = x[i] * x[k[i]] + a[i].x


@sad.kernel
def doubles(i: sad.Index, scale: double, x: sad.In[double], y: sad.Out[double]):
    y[i] = x[i] * x[i] * scale


@sad.kernel
def scatter(
    row: sad.Index,
    column: sad.Index,
    x: sad.In[float2, 2],
    k: sad.In[int],
    y: sad.Out[float2],
    sums: sad.Add[float3],
    counts: sad.Add[int],
    noise: sad.Out[uint, 2],
):
    assert k[row] >= 0, "k is negative"
    y[sad.unique(k[row])] = x[row, column] * 2.0
    sums[k[row]].y -= x[row, column].x
    counts[k[row] // 3] += 1
    noise[row, column] = sad.pcg(uint(k[row])) ^ sad.bitcast(uint, 1.5)


@sad.kernel
def inner(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(cube)(sad.diff_pair(x[i], 1.0)).d


KERNELS = [maths, matrices, loops, structs, extremes, halves, scatter, inner, local_arrays]


@pytest.fixture
def validators() -> Iterator[Validators]:
    every = Validators()
    yield every
    every.close()


def chosen(function: KernelFunction) -> ChosenKernel:
    """A kernel that is differentiated by all its inputs."""
    kernel = function.specialise({})
    inputs = kernel_inputs(kernel)
    return ChosenKernel(kernel, {}, frozenset(name for name in inputs if inputs[name]))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("target", PROFILES)
def test_compilers_and_validators_take_both_modes(
    kernel: KernelFunction, target: str, validators: Validators
) -> None:
    programs = build_kernel(chosen(kernel), PROFILES[target], "raise").finished()
    assert not programs.refusals
    validators.ask(programs.entry_points, target, NO_SPAN)
    validators.answers()  # it raises where one refuses


@pytest.mark.parametrize("target", PROFILES)
def test_a_target_has_double_or_says_that_it_has_not(target: str, validators: Validators) -> None:
    kernel, profile = chosen(doubles), PROFILES[target]
    if profile.has_double:
        built = build_kernel(kernel, profile, "raise").finished()
        validators.ask(built.entry_points, target, NO_SPAN)
        assert validators.answers()
        return
    with pytest.raises(sad.CompileError, match=f"`{target}` does not have") as raised:
        build_kernel(kernel, profile, "raise")
    assert raised.value.code == "SR0711"
