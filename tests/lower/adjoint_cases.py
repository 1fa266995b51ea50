"""Kernels whose adjoints are easy to get wrong: names that come back, places, bounds that move."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case

N = 7


@sad.function
def mixed(a: float, b: float) -> float:
    return a * a * 0.5 + sad.sin(a * b)


@sad.function
def turned(v: float3, k: float) -> float3:
    own = v
    own.x = own.y * k
    own.y = own.z * own.x
    return own * k


@sad.kernel
def names_again(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float], z: sad.Out[float]):
    y[i] = sad.max(x[i], z[i]) + z[i]
    t = mixed(x[i], x[i])
    t = mixed(t, t)
    t = mixed(t, a) * t
    a = a * t
    z[i] = t + a
    if x[i] > 0.8:
        t = z[i] * t
        a = mixed(a, t)
    else:
        z[i] = z[i] * z[i]
    y[i] += t * a


@sad.kernel
def vectors_again(i: sad.Index, x: sad.In[float3], k: int, y: sad.Out[float3]):
    v = x[i]
    v = turned(v, v.x)
    v.zx = v.xy * v.z
    w = v
    v[(i + k) % 3] *= w[i % 3]
    if v.x > 0.3:
        v.y = w.x * v.z
        w = v
    y[i].xz = v.zy * w.xy
    y[i].y = v[k]


@sad.kernel
def places_in_loops(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = sad.LocalArray[float, 4]()
    for k in range(4):
        a[k] = x[(i + k) % len(x)]
    total = 1.0
    for k in sad.range(n[i], limit=5):
        a[(k * 3) % 4] = a[k % 4] * total + a[(k + 1) % 4]
        total = total * 0.7 + a[(k * 3) % 4]
        if total > 1.5:
            a[k % 4] = total * 0.25
    y[i] = total * a[i % 4]


@sad.kernel
def places_assigned_whole(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = sad.LocalArray[float, 2]()
    a[0] = x[i]
    a[1] = x[0]
    first = a[0] * a[1]
    for k in sad.range(n[i], limit=5):
        a = sad.LocalArray[float, 2]()
        a[k % 2] = first * x[k % len(x)]
        first = first + a[k % 2] * a[k % 2]
    y[i] = first * a[0] + a[1]


@sad.struct
class Row:
    at: sad.LocalArray[int, 2]
    weight: sad.LocalArray[float, 2]
    count: int


@sad.kernel
def indices_in_places(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    row = Row(sad.LocalArray[int, 2](), sad.LocalArray[float, 2](), 2)
    row.at[0] = i
    total = x[row.at[0]] * x[row.at[0]]
    row.at[0] = 1
    total += total * x[row.at[0]]
    for k in sad.range(row.count, limit=3):
        row.count = 0
        row.at[1] = k
        row.weight[row.at[1]] += total * x[row.at[1]]
        total = total * row.weight[k] + x[row.at[0]]
    y[i] = total * row.weight[1]


@sad.kernel
def places_of_branches(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    if x[i] > 0.8:
        a = sad.LocalArray[float, 2]()
        a[0] = x[i] * x[i]
        a[i % 2] = a[0] * x[0]
    else:
        a = sad.LocalArray[float, 2]()
        a[1] = x[i] * x[1]
        a[0] = a[1] * a[1]
    y[i] = a[0] * a[1] + sad.select(i < 3 and x[i + 4] > 0.6, x[i], 0.5 * x[i])


@sad.kernel
def bounds_move(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    first = n - 4
    total = x[i]
    for k in sad.range(n, first, -2, limit=6):
        first = first + 1
        n = k
        total = total * x[(k + 20) % len(x)] + float(first)
    for k in sad.range(first, n + 5, limit=9):
        n = n - k
        total = sad.sin(total) + float(k - n) * 0.01 * total
    while sad.limit(first > 0, 9):
        first = first - 2
        total = total * 1.1 + x[i] * x[i]
    y[i] = total


@sad.kernel
def starts_in_loops(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    for k in range(3):
        for j in range(2):
            y[i] = y[i] * y[i] + x[(i + j) % len(x)]
        if x[k] > 0.5:
            z[i] = z[i] * y[i] + x[i]


@sad.kernel
def sides_apart(i: sad.Index, x: sad.In[float], y: sad.Out[float], total: sad.Add[float]):
    t = (mixed(x[i], x[0]) if x[i] > 0.6 else x[i] * x[1]) * (x[2] if x[0] > 2.0 else 0.5)
    for k in range(3):
        t = t * (sad.sqrt(x[k]) if t > 0.2 else x[i])
        total[k] += t if k == 1 else mixed(t, x[k])
    y[i] = t


@sad.function
def clipped(x: float) -> float:
    return x


@clipped.backward_derivative(check=False)
def clipped_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += sad.clamp(d_out, -1.0, 1.0)


@clipped.forward_derivative
def clipped_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(x.p, x.d)


@sad.function
def cubed(x: float) -> float:
    return clipped(x * x) * x


@sad.kernel
def derivatives_inside(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    d = sad.fwd_diff(mixed)(sad.diff_pair(x[i], 1.0), sad.diff_pair(a, x[i]))
    t = d.d * d.p
    for k in range(3):
        t += sad.fwd_diff(mixed)(sad.diff_pair(t, a), sad.diff_pair(x[k])).d
    y[i] = t * sad.fwd_diff(cubed)(sad.diff_pair(x[i], 1.0)).d


CASES = {
    "names_again": Case(names_again, (floats(N), 0.6), N),
    "places_in_loops": Case(
        places_in_loops, (floats(N), np.array([0, 1, 2, 3, 4, 5, 3], np.int32)), N
    ),
    "places_assigned_whole": Case(
        places_assigned_whole, (floats(N), np.array([0, 1, 2, 3, 4, 5, 3], np.int32)), N
    ),
    "places_of_branches": Case(places_of_branches, (floats(N),), N),
    "bounds_move": Case(bounds_move, (floats(N), 7), N),
    "bounds_move, none": Case(bounds_move, (floats(N), -3), N),
    "starts_in_loops": Case(starts_in_loops, (floats(N),), N),
    "sides_apart": Case(sides_apart, (floats(N),), N, {"total": (3,)}),
}
BY_ORACLE = {
    "indices_in_places": Case(indices_in_places, (floats(N),), N),
    "vectors_again": Case(vectors_again, (floats(N, 3), 2), N),
    "derivatives_inside": Case(derivatives_inside, (floats(N), 0.6), N),
}
"""Those that plain Python cannot run."""
