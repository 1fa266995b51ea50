"""vjp and jvp of kernels that call ``fwd_diff``: derivatives of derivatives, on every runtime.

`gradcheck` holds both modes against central differences of the first derivative.
"""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2, float3
from shaderad.decorators import KernelFunction
from shaderad.language.host import UserFunction
from tests.lower.loop_cases import floats

pytestmark = pytest.mark.gpu


@sad.struct
class Ray:
    origin: float3
    length: float


@sad.function
def cubes(x: float) -> float3:
    return float3(x, x * x, x * x * x)


@sad.function
def nested(x: float, y: float, n: int) -> float:
    t = x
    for _k in sad.range(n, limit=4):
        s = t * 0.5
        for _j in range(5):
            s = s * 0.9 + sad.sin(t * y) * 0.3
        t = t * y + s
    return t


@sad.function
def leaves(x: float, y: float, n: int) -> float:
    t = x
    while sad.limit(t < 3.0, 40):
        if t > 2.5:
            break
        t = t * (1.2 + y * y) + float(n) * 0.1
    for k in range(6):
        if float(k) * x > 3.0:
            return t * x * y
    return t * t * y


@sad.function
def checkpointed(x: float, y: float, n: int) -> float:
    s = float3(x, y, 1.0)
    for k in sad.range(90 + n, limit=100):
        s = sad.lerp(s, cubes(s[k % 3] * 0.5), 0.05)
    return s.x + s.y * s.z


@sad.function
def sums(x: float, y: float, n: int) -> float:
    total = 0.0
    for k in range(n + 3):
        total += sad.sin(x * float(k)) * y * y
    return total


@sad.function
def arrays(x: float, y: float, n: int) -> float:
    a = sad.LocalArray[float, 4]()
    rays = sad.LocalArray[Ray, 2]()
    for k in range(4):
        a[k] = x * float(k) + y
        rays[k % 2].length += a[k] * x
    a[n] = a[n] * a[1] * x
    rays[n % 2].origin = cubes(a[n])
    if x > 1.0:
        rays[1].origin[n] = x * y
    s = 1.0
    for k in range(3):
        s = s * a[k + 1] * 0.5 + a[k] * rays[k % 2].length
    return s + sad.dot(rays[0].origin, rays[1].origin)


@sad.function
def vectors(x: float, y: float, n: int) -> float:
    v = cubes(x * y)
    m = float2x2(x, y, x * y, x * x)
    r = m @ m
    v.xy = v.yx * r[n % 2].x
    v[n] += cubes(y)[n] * x
    if x > 1.0:
        v.z = x * y * sad.determinant(m)
    return v.z * v[n] * r[1][0] + cubes(x)[1]


@sad.function
def powers(x: float, y: float, n: int) -> float:
    t = sad.sqrt(x) + sad.rsqrt(y) * sad.rcp(x) + x**y + x**n + y**3
    t += sad.sqrt(x * x + y * y) + sad.exp(x * y) + sad.exp2(x) * sad.log(y) + sad.log2(x * y)
    return t + sad.log10(x) * sad.tanh(y) + x % y + sad.abs(x) * sad.max(x, y) * sad.min(x, y)


@sad.function
def angles(x: float, y: float, n: int) -> float:
    t = sad.atan2(x, y) * x + sad.asin(x * 0.3) * sad.acos(y * 0.3) + sad.atan(x * y)
    t += sad.sinh(x) * sad.cosh(y) + sad.tan(x * 0.5) + sad.clamp(x, 0.0, 9.0) * y
    v = float3(x, y, x * y)
    t += sad.length(v) * sad.normalize(v)[n] + sad.distance(v, v.zxy)
    return t + sad.reflect(v, sad.normalize(v.yzx))[n] * sad.smoothstep(0.0, 2.0, x)


FUNCTIONS = [nested, leaves, checkpointed, sums, arrays, vectors, powers, angles]


def slope_of(f: UserFunction) -> KernelFunction:
    @sad.kernel
    def slope(
        i: sad.Index,
        x: sad.In[float],
        y: sad.In[float],
        n: sad.In[int],
        value: sad.Out[float],
        derivative: sad.Out[float],
    ):
        y_dot = 0.5 * x[i]
        at = sad.fwd_diff(f)(sad.diff_pair(x[i], 1.0), sad.diff_pair(y[0], y_dot), n[i])
        value[i] = at.p
        derivative[i] = at.d * at.p

    return slope


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.shown_name)
def test_the_slope_of_a_function_has_both_derivatives(f: UserFunction, device: sad.Device) -> None:
    x = np.float32([0.7, 1.3, 1.9, 0.4])
    sad.gradcheck(slope_of(f), x, np.float32([0.8]), np.int32([2, 1, 0, 2]), dim=4)


@sad.function
def unrolled(x: float) -> float:
    for k in sad.static_range(3):
        x = sad.sin(x) + float(k) * x
    return x


@sad.function
def slope_inside(x: float) -> float:
    return sad.fwd_diff(nested)(sad.diff_pair(x, 1.0), sad.diff_pair(0.5, 0.0), 3).d + unrolled(x)


@sad.kernel
def backward_over_forward(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    pair = sad.diff_pair(x[i])
    sad.bwd_diff(slope_inside)(pair, 1.0)
    y[i] = pair.d
    z[i] = slope_inside(x[i])


def test_bwd_diff_over_fwd_diff_is_the_second_derivative(device: sad.Device) -> None:
    x = floats(4)
    second, _ = backward_over_forward(x, dim=4)
    step = np.float32(1e-2)
    above, below = (backward_over_forward(x + s, dim=4)[1].numpy() for s in (step, -step))
    # Central differences of float32 at this step.
    np.testing.assert_allclose(second.numpy(), (above - below) / (2 * step), rtol=5e-3, atol=1e-3)
