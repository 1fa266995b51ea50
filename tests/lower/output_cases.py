"""Kernels that write where it is hard: other elements, shared elements, several axes, functions."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float2, float2x2, float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case


@sad.kernel
def strided_stores(
    i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float], z: sad.Out[float], w: sad.Out[float]
):
    for k in sad.static_range(3):
        y[3 * i + k] = x[i] * x[k] * float(k + 1)
    for k in range(2):
        z[13 - 2 * i - k] = sad.sin(x[i]) + float(k)
    if x[i] > 0.8:
        w[i + n] = x[i] * x[i]
    else:
        w[i + n] = x[i] * 3.0


@sad.struct
class Sample:
    color: float3
    weight: float
    slope: float2x2


@sad.kernel
def stores_in_parts(
    i: sad.Index, x: sad.In[float], order: sad.In[int], y: sad.Out[float3], s: sad.Out[Sample]
):
    j = order[i]
    y[2 * i + 1].x = x[i] * x[j]
    if x[i] > 0.8:
        y[2 * i + 1].zy = float2(x[j], sad.sin(x[i]))
    for k in sad.static_range(2):
        y[2 * i][2 * k] = x[i] * float(k + 1)
    s[sad.unique(j)].color.y = x[i] * x[i]
    s[sad.unique(j)].slope[1][0] = x[j] * x[0]
    s[sad.unique(j)].weight = x[i]


@sad.kernel
def promised_stores(i: sad.Index, x: sad.In[float], order: sad.In[int], y: sad.Out[float]):
    j = order[i]
    for k in sad.range(2, limit=2):
        y[sad.unique(2 * j + k)] = x[i] * x[j] + float(k) * x[i]


@sad.kernel
def permuted_grid(
    r: sad.Index,
    c: sad.Index,
    m: sad.In[float, 2],
    scale: sad.In[float],
    t: sad.Out[float, 2],
    own: sad.Out[float, 2],
    rows: sad.Add[float],
):
    v = m[r, c] * scale[c]
    t[c, r] = v * v
    own[r, c] = v + m[(r + 1) % m.shape[0], c]
    rows[r] += v * m[r, 0]


@sad.kernel
def solid(
    a: sad.Index,
    b: sad.Index,
    c: sad.Index,
    v: sad.In[float, 3],
    k: float,
    out: sad.Out[float, 3],
    front: sad.Max[float, 2],
):
    e = v[a, b, c] * k + v[a, b, (c + 1) % v.shape[2]] * v[0, 0, 0]
    out[a, b, c] = e * e
    front[b, c] = sad.max(front[b, c], e * float(a + 1))


@sad.kernel
def fixed_sums(
    i: sad.Index, x: sad.In[float], at: int, a: float, total: sad.Add[float], y: sad.Out[float]
):
    total[0] += x[i] * a
    total[at] += x[i] * x[i]
    total[i % 3] -= x[0] * x[i]
    if i % 2 == 0:
        total[0] += a * a
    total[5] += x[2]
    y[i] = a * x[at]


@sad.function
def deposit(total: sad.Add[float], x: sad.In[float], j: int, w: float) -> float:
    v = x[j] * w
    total[j % len(total)] += v * v
    if v > 0.6:
        return v
    total[0] += v
    return v * x[0]


@sad.kernel
def sums_in_functions(
    i: sad.Index,
    x: sad.In[float],
    z: sad.In[float],
    first: sad.Add[float],
    second: sad.Add[float],
    y: sad.Out[float],
):
    s = 0.0
    for k in sad.range(i % 3, limit=2):
        s = s + s * deposit(first, x, (i + k) % len(x), z[i])
        s += deposit(second, z, k, s + 0.5)
    y[i] = s + deposit(first, z, i, x[i])


@sad.kernel
def effects_in_heads(
    i: sad.Index, x: sad.In[float], total: sad.Add[float], low: sad.Min[float], y: sad.Out[int]
):
    """Calls that write, where a loop says how often it runs; and no result of one's own floats."""
    steps = 0
    while sad.limit(deposit(total, x, i, x[0] + float(steps)) < 1.9 and steps < 3, 4):
        steps += 1
        if x[i] > 1.1:
            continue
        if steps == 2:
            break
    for k in sad.range(int(2.0 * deposit(total, x, 1, x[i])), 4, 1 + keep(low, x[i]), limit=4):
        for _k in sad.range(keep(low, x[k] * x[i])):
            total[1] += x[i] * x[i]
    y[i] = steps


@sad.function
def keep(low: sad.Min[float], v: float) -> int:
    low[1] = sad.min(low[1], v * v)
    return 1


@sad.kernel
def outputs_read_back(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = x[i]
    z[i] = y[i] * y[i]
    for k in sad.range(i % 4, limit=3):
        y[i] = y[i] * z[i] + x[k]
        if y[i] > 2.0:
            z[i] += y[i]
            continue
        z[i] = z[i] * 0.5
    y[i] *= z[i]
    if z[i] > 1.5:
        y[i] = x[0]


@sad.kernel
def least_and_greatest(
    i: sad.Index,
    x: sad.In[float],
    group: sad.In[int],
    low: sad.Min[float],
    high: sad.Max[float],
    y: sad.Out[float],
):
    g = group[i]
    for k in sad.range(i % 3 + 1, limit=3):
        v = x[(i + k) % len(x)] * x[i] - 0.1 * float(k)
        low[g] = sad.min(low[g], v)
        if k == 1:
            high[g + k] = sad.max(high[g + k], v * v)
    high[0] = sad.max(high[0], x[i] * 3.0)
    y[i] = x[i]


@sad.kernel
def elements_at_constants(
    i: sad.Index, w: sad.In[float], x: sad.In[float], n: int, y: sad.Out[float], z: sad.Out[float]
):
    y[i] = w[0] * x[i] + w[n] * w[1] * x[i] + w[(i + 2) % len(w)] * x[i]
    if x[i] > 0.8:
        z[i] = w[2] * x[i]
    for k in range(3):
        z[i] += w[3] * x[k] + w[k]


@sad.kernel
def reads_out_of_range(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * w[i - 1] + w[i + 2] + x[i] * x[i]


N = 7
ORDER = np.array([3, 0, 6, 1, 5, 2, 4], np.int32)
CASES: dict[str, Case] = {
    "strided_stores": Case(strided_stores, (floats(N), 2), N, {"y": (21,), "z": (14,), "w": (12,)}),
    "promised_stores": Case(promised_stores, (floats(N), ORDER), N, {"y": (14,)}),
    "permuted_grid": Case(
        permuted_grid, (floats(3, 5), floats(5)), (3, 5), {"t": (5, 3), "rows": (3,)}
    ),
    "permuted_grid in part": Case(
        permuted_grid, (floats(4, 6), floats(6)), (3, 5), {"t": (5, 4), "rows": (3,)}
    ),
    "solid": Case(solid, (floats(2, 3, 4), 0.7), (2, 3, 4), {"front": (3, 4)}),
    "fixed_sums": Case(fixed_sums, (floats(N), 1, 0.6), N, {"total": (6,)}),
    "sums_in_functions": Case(
        sums_in_functions, (floats(N), floats(N)), N, {"first": (5,), "second": (3,)}
    ),
    "effects_in_heads": Case(effects_in_heads, (floats(N),), N, {"total": (4,), "low": (3,)}),
    "outputs_read_back": Case(outputs_read_back, (floats(N),), N),
    "least_and_greatest": Case(
        least_and_greatest,
        (floats(N), np.array([0, 1, 2, 0, 1, 2, 0], np.int32)),
        N,
        {"low": (4,), "high": (5,)},
    ),
    "elements_at_constants": Case(elements_at_constants, (floats(5), floats(N), 4), N),
    "elements_at_constants, short": Case(elements_at_constants, (floats(6), floats(9), 5), N),
    "one thread": Case(fixed_sums, (floats(3), 2, 0.6), 1, {"total": (6,)}),
}
