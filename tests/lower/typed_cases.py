"""Kernels over every type: vectors and matrices in part, structs in structs, double, uniforms."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import double, double2, float2, float2x2, float2x3, float3, float3x3, half, int2
from tests.lower.loop_cases import floats

N = 7
PICKS = np.array([0, 1, 2, 0, 1, 2, 0], np.int32)


@sad.struct
class Inner:
    w: float2
    k: int
    h: half


@sad.struct
class Mat:
    albedo: float3
    inner: Inner
    table: sad.LocalArray[float, 3]
    basis: float2x3
    flag: bool


@sad.function
def shade(m: Mat, t: float, k: int) -> float3:
    b = m.inner
    b.w.x = b.w.x * t
    r = m.albedo * b.w.x + m.basis[k % 2] * m.table[k % 3]
    r.zx = r.xz * float(b.h) + m.table[1]
    if m.flag:
        r[k % 3] += b.w.y * t
    return r


@sad.kernel
def structs(
    i: sad.Index,
    mats: sad.In[Mat],
    x: sad.In[float],
    u: Mat,
    y: sad.Out[float3],
    z: sad.Out[Mat],
    tot: sad.Add[float3],
):
    m = mats[(i * 2) % len(mats)]
    y[i] = shade(m, x[i], i) + shade(u, x[i] * 2.0, i + 1)
    n = m
    for k in sad.range(i % 3, limit=3):
        n.albedo = n.albedo * x[i] + y[i] * 0.1
        n.inner.w[k % 2] *= n.table[k]
        n.table[(k + i) % 3] = n.table[k] + n.albedo.y
        n.basis[k % 2][i % 3] += x[i] * n.basis[1][1]
        n.inner.k += 1
    z[i] = n
    z[i].albedo.y = x[i] * x[i]
    z[i].basis[1] = float3(x[i])
    tot[i % 2] += n.albedo
    tot[1].y -= x[i] * n.albedo.z
    tot[i % 3].zx += n.inner.w


@sad.kernel
def components(
    i: sad.Index,
    a: sad.In[float3],
    m: sad.In[float3x3],
    k: sad.In[int],
    y: sad.Out[float3],
    q: sad.Out[float3x3],
    mm: sad.Out[float2x2],
):
    y[i].x = a[i].x * 2.0
    y[i].zy = a[i].xy * a[i].z
    y[i][k[i]] += a[k[i]][k[i]]
    v = a[i]
    v[k[i]] = v[(k[i] + 1) % 3] * v.x
    v.xy = v.yx
    n = m[i]
    n[k[i]] = n[0] * v + n[k[i]]
    n[1][k[i]] = n[k[i]][1] + n[1][2]
    n[k[i]][2] = n[2][k[i]] * v.y
    q[i] = n @ sad.transpose(m[0]) + n * 0.5
    q[i][2] = n @ v
    q[i][0, k[i]] = v.x
    r = float2x2(v.x, v.y, v.z, n[0][0])
    r[k[i] % 2] = r[0] + r[1] * r[k[i] % 2]
    mm[i] = r / 2.0 - r * r[0][1]


@sad.kernel
def doubles(
    i: sad.Index,
    d: sad.In[double],
    dv: sad.In[double2],
    s: double,
    y: sad.Out[double],
    yv: sad.Out[double2],
    z: sad.Out[float],
):
    y[i] = d[i] * d[i] * s
    yv[i] = dv[i] * d[i] + dv[i] * dv[i]
    z[i] = float(dv[i].x) * 2.0
    for _k in sad.range(i % 3, limit=2):
        y[i] = y[i] * d[i]


@sad.kernel
def uniforms(
    i: sad.Index,
    m: float3x3,
    v: float3,
    s: float,
    b: bool,
    n: int,
    u: sad.uint,
    k: int2,
    x: sad.In[float],
    y: sad.Out[float3],
):
    s2 = s * x[i]
    s = s2 + s
    w = v
    w.x = w.x * s
    if b and n > 3:
        w[k.y] += m[n % 3][k.x]
    for _t in sad.range(n, limit=6):
        w = m @ w * 0.5 + v
        s = s * 0.5
    y[i] = w * s * float(u)


@sad.kernel
def local_arrays(
    i: sad.Index,
    a: sad.LocalArray[float, 2],
    grid: sad.LocalArray[sad.LocalArray[float2, 2], 3],
    lamps: sad.LocalArray[Inner, 2],
    fine: sad.LocalArray[half, 3],
    picks: sad.LocalArray[int, 2],
    x: sad.In[float],
    y: sad.Out[float],
):
    lamp = lamps[i % 2]
    near = grid[i % 3][picks[1]] * a[i % 2] + grid[2][i % 2] * a[0]
    y[i] = sad.dot(near, lamp.w) * x[i] + lamps[1].w.y * float(lamp.h) + float(fine[i % 3]) * x[i]
    own = a
    own[1] = a[0] * x[i]
    y[i] += own[1] * own[i % 2]


def materials(count: int) -> dict[str, object]:
    return {
        "albedo": floats(count, 3),
        "inner": {
            "w": floats(count, 2),
            "k": np.arange(count, dtype=np.int32),
            "h": floats(count).astype(np.float16),
        },
        "table": floats(count, 3),
        "basis": floats(count, 2, 3),
        "flag": np.arange(count) % 2 == 0,
    }


MATERIAL = Mat(
    albedo=floats(3),
    inner=Inner(w=floats(2), k=3, h=np.float16(0.75)),
    table=floats(3),
    basis=floats(2, 3),
    flag=True,
)
ARGUMENTS = {
    components: (floats(N, 3), floats(N, 3, 3), PICKS),
    doubles: (floats(N).astype(np.float64), floats(N, 2).astype(np.float64), 0.75),
    uniforms: (
        floats(3, 3), floats(3), 0.7, True, 5, 2, np.array([1, 2], np.int32), floats(N),
    ),
    local_arrays: (
        floats(2), floats(3, 2, 2), {"w": floats(2, 2), "k": np.int32([1, 2]),
        "h": floats(2).astype(np.float16)}, floats(3).astype(np.float16), np.int32([1, 0]),
        floats(N),
    ),
}  # fmt: skip
