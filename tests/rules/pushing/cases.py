"""Kernels whose tangents are hard to write out: effects in heads, ties, what changes under way."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float2, float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case


@sad.function
def counted(x: float, total: sad.Add[float], k: int) -> float:
    total[k] += x * x
    return sad.sin(x) * x


@sad.function
def noted(x: float, total: sad.Add[float]) -> bool:
    total[1] += sad.exp(x)
    return x > 0.9


@sad.function
def lowered(x: float, low: sad.Min[float], k: int):
    if x > 0.7:
        low[k % len(low)] = sad.min(low[k % len(low)], x * x)


@sad.kernel
def effects(
    i: sad.Index,
    x: sad.In[float],
    a: float,
    y: sad.Out[float],
    total: sad.Add[float],
    low: sad.Min[float],
):
    v = counted(x[i], total, 0) if x[i] > 0.8 and noted(x[i] * a, total) else a * x[0]
    y[i] = v * v
    y[i] = y[i] * y[i] + counted(v * 0.1, total, 2)
    for k in sad.range(i % 3 + 1, limit=3):
        lowered(x[(i + k) % len(x)] * a, low, k)
        if noted(v, total) or counted(v, total, 3) > 0.3:
            break
        v = v * a + x[k]
    while sad.limit(noted(v * 0.5, total), 3):
        v = v * 0.7
        if v > 1.2:
            continue
        v = v * 0.8
    assert v < 100.0
    y[i] += v


@sad.struct
class Body:
    place: float3
    mass: float
    kind: int


@sad.kernel
def changing(i: sad.Index, b: sad.In[Body], a: float3, s: float, y: sad.Out[Body]):
    a = float3(a.x, a.x * s, a.z)
    a, s = a.zyx * s, sad.dot(a, a)
    body = b[i]
    body.place[int(body.mass * 2.0) % 3] = s * body.mass
    body.place.xz = body.place.zx * a.xy
    v = sad.LocalArray[float2, 3]()
    for k in range(3):
        v[k] = float2(body.place[k], s) * (v[(k + 2) % 3] + a.xy)
        s = v[k].x * v[k].y
    body.mass = s if body.kind == 1 else v[1].x * s
    y[i].place = body.place
    y[i].mass = body.mass * y[i].place.x


@sad.kernel
def ties(
    i: sad.Index, x: sad.In[float3], low: sad.Min[float3], high: sad.Max[float], y: sad.Out[float]
):
    low[i % 2] = sad.min(low[i % 2], x[i] * x[i])
    low[0].y = sad.min(low[0].y, x[i].x * x[i].z)
    for k in range(2):
        high[k] = sad.max(high[k], x[(i + k) % len(x)].x * x[0].y)
    y[i] = sad.max(x[i].x, x[i].y) * sad.min(x[i].y, x[i].z) + sad.clamp(x[i].x, 0.5, 1.0) ** 3


@sad.function
def cubed(x: float) -> float:
    return x * x * x


@cubed.backward_derivative
def cubed_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 3.0 * x.p * x.p * d_out


@cubed.forward_derivative
def cubed_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(cubed(x.p), 3.0 * x.p * x.p * x.d)


@sad.kernel
def own(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = cubed(x[i] * cubed(x[0])) * x[i]


@sad.kernel
def counting(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    s, v = x[i], float2(x[0], x[i])
    for k in range(n[i]):
        s += sad.uniform01(sad.pcg(sad.uint(k)))
        v.x -= float(k)
        v.y += x[k] * x[i]
    y[i] = s * v.x * v.y


@sad.kernel
def mixed(
    row: sad.Index, column: sad.Index, m: sad.In[float, 2], w: sad.In[float],
    n: int, y: sad.Out[float, 2], t: sad.Out[float, 2], norms: sad.Add[float],
):  # fmt: skip
    s = w[0] * m[row, column] + w[n]
    while sad.limit(s < 2.0, 30):
        s = s * 1.3 + w[column] * 0.1
        if s > 1.8:
            continue
        s += m[column % 2, row] * m[row, column]
    y[row, column] = s
    t[column, row] = s * w[(row + n) % len(w)]
    norms[row] += s * s


CASES = {
    "effects": Case(effects, (floats(7), 0.9), 7, {"total": (4,), "low": (2,)}),
    "changing": Case(
        changing,
        ({"place": floats(5, 3), "mass": floats(5), "kind": np.int32([0, 1, 1, 0, 2])},
         floats(3), 0.6),
        5,
    ),
    "ties": Case(
        ties,
        (np.float32([[1, 0.5, 2], [0.5, 0.5, 0.5], [1, 1, 1], [0.5, 1, 0.5]]),),
        4,
        {"low": (2,), "high": (2,)},
    ),
    "counting": Case(counting, (floats(4), np.int32([0, 1, 3, 2])), 4),
    "own": Case(own, (floats(5),), 5),
    "mixed": Case(mixed, (floats(2, 3), floats(4), 1), (2, 3), {"t": (3, 2), "norms": (2,)}),
    "no threads": Case(mixed, (floats(2, 3), floats(4), 1), (0, 3), {"t": (3, 0), "norms": (2,)}),
}  # fmt: skip
"""What each tests: functions with effects where they are called conditionally; names that are
read and written in one statement; winners; own derivatives; several axes and uniforms."""
