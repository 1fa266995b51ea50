"""Kernels whose loops are hard to differentiate: nesting, jumps, what is carried and read."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from tests.lower.reference import Case


def floats(*shape: int, low: float = 0.4, high: float = 1.3, seed: int = 3) -> np.ndarray:
    """Numbers that are the same whoever asks before: some lie on the edge of a branch."""
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape).astype(np.float32)


@sad.kernel
def triple_nesting(
    i: sad.Index, x: sad.In[float], counts: sad.In[int], a: float, y: sad.Out[float]
):
    total = 0.1
    for p in sad.range(counts[i], limit=4):
        row = 1.0
        for q in sad.range(counts[i] + p, limit=8):
            cell = x[(i + q) % len(x)]
            for r in sad.range(p + q, limit=12):
                cell = cell * a + sad.sin(cell + x[(r + p) % len(x)])
            row = row * 0.9 + cell * row * 0.1
        total = total * row + a
    y[i] = total * x[i]


@sad.kernel
def every_jump(
    i: sad.Index, x: sad.In[float], stop: sad.In[int], y: sad.Out[float], z: sad.Out[float]
):
    total = x[i]
    for p in sad.range(10, limit=10):
        if p == stop[i]:
            break
        k = 0
        while sad.limit(k < 6, 6):
            k = k + 1
            if k == 2:
                continue
            if total > 6.0:
                z[i] = total * 2.0
                break
            for m in range(3):
                if m == 1 and k == 4:
                    continue
                if total > 9.0:
                    y[i] = total * x[i]
                    return
                total = total + x[m] * 0.1 * total
        total = total * 0.9
        if total < 0.3:
            continue
        total = total + sad.sin(total) * 0.2
    y[i] = total


@sad.function
def first_over(x: sad.In[float], start: int, bar: float) -> float:
    power = 1.0
    for k in sad.range(len(x), limit=16):
        power = power * x[(start + k) % len(x)]
        for m in range(3):
            if power * float(m) > bar:
                return power * bar
    if power > 0.5:
        return power + bar
    return bar * bar * power


@sad.kernel
def returns_in_loops_of_functions(i: sad.Index, x: sad.In[float], bar: float, y: sad.Out[float]):
    s = 0.0
    for k in sad.range(i % 4, limit=4):
        s = s * x[k] + first_over(x, k + i, bar + 0.1 * float(k))
    y[i] = s + first_over(x, i, bar)


@sad.kernel
def many_steps(
    i: sad.Index, x: sad.In[float], count: int, a: float, y: sad.Out[float], z: sad.Out[float]
):
    s = x[i]
    t = 0.2
    for k in sad.range(count, limit=5000):
        s = s * 0.99 + 0.01 * sad.sin(s * a + t)
        t = t * 0.98 + 0.02 * s * x[k % len(x)]
    y[i] = s
    u = x[i]
    for _k in range(300):
        u = u + 0.01 * sad.cos(u * a)
    z[i] = u * t


@sad.kernel
def sums_without_limit(
    i: sad.Index, x: sad.In[float], count: int, a: float, y: sad.Out[float], total: sad.Add[float]
):
    s = 0.0
    for k in range(count):
        row = x[k % len(x)] * a
        for m in range(k % 3):
            row += x[(k + m) % len(x)] * row_weight(m, a)
        s += row * row
        total[k % 2] += row * x[i]
    y[i] = s * x[i]


@sad.function
def row_weight(m: int, a: float) -> float:
    return sad.sin(a * float(m + 1))


@sad.kernel
def carried_arrays(i: sad.Index, x: sad.In[float], pick: sad.In[int], y: sad.Out[float]):
    a = sad.LocalArray[float, 4]()
    for k in range(4):
        a[k] = x[(i + k) % len(x)]
    for k in sad.range(pick[i] + 3, limit=8):
        j = (pick[i] * k) % 4
        a[j] = a[(j + pick[i]) % 4] * a[1] + a[j] * 0.5
        a[(j + 1) % 4] += a[j] * a[j]
        if a[0] > 3.0:
            a[0] = a[0] * 0.1
    y[i] = a[0] + 2.0 * a[1] + a[pick[i]] * a[3] + a[2]


@sad.kernel
def carried_grids(i: sad.Index, x: sad.In[float], pick: sad.In[int], y: sad.Out[float]):
    g = sad.LocalArray[sad.LocalArray[float, 3], 2]()
    for r in range(2):
        for c in range(3):
            g[r][c] = x[(i + r * 3 + c) % len(x)]
    for k in sad.range(4, limit=4):
        r = (k + pick[i]) % 2
        g[r][(k * pick[i]) % 3] = g[1][k % 3] * g[r][1] + g[0][pick[i] % 3]
    s = 0.0
    for r in sad.static_range(2):
        for c in sad.static_range(3):
            s += g[r][c] * float(r + c + 1)
    y[i] = s + g[pick[i] % 2][1] * g[1][pick[i] % 3]


@sad.kernel
def unrolled_loops(i: sad.Index, x: sad.In[float], stop: sad.In[int], y: sad.Out[float]):
    s = x[i]
    for a in sad.static_range(3):
        for b in sad.static_range(4, 0, -2):
            if a * b == stop[i]:
                break
            s = s * x[(i + a + b) % len(x)] + 0.3
            if s > 2.0:
                continue
            s = s * 1.1
        t = 1.0
        for _k in sad.range(stop[i] % 5, limit=4):
            t = t * s * 0.8
        s = s + t * 0.1
        if s > 40.0:
            y[i] = s * 0.5
            return
    y[i] = s


@sad.kernel
def newton_until_converged(i: sad.Index, x: sad.In[float], y: sad.Out[float], steps: sad.Out[int]):
    r = x[i]
    n = 0
    done = False
    while sad.limit(not done, 40):
        old = r
        r = 0.5 * (r + x[i] / r)
        n += 1
        done = abs(r - old) < 1e-3
    y[i] = r * 2.0
    steps[i] = n


@sad.kernel
def bounds_and_steps(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    s = 1.0
    for k in sad.range(n, -n, -2, limit=16):
        s = s * (1.0 + 0.1 * x[abs(k) % len(x)]) + 0.01 * float(k)
    step = 1 + i % 3
    for k in sad.range(i, n + i, step, limit=16):
        s = s + s * x[k % len(x)] * 0.1
    for _k in range(5, 5):
        s = s * 100.0
    for k in sad.range(n, limit=16):
        for m in sad.range(k, limit=16):
            s = s + 0.01 * s * x[m % len(x)] * float(k - m)
    y[i] = s


@sad.kernel
def guarded_singularities(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    v = x[i] - x[0]
    r = 1.0 / v if v != 0.0 else 2.0 * x[i]
    q = sad.sqrt(v) if v > 0.0 and 1.0 / v < 50.0 else v * 3.0
    p = 0.0
    if v == 0.0 or sad.log(abs(v)) < 5.0:
        p = x[i] * x[i]
    for _k in sad.range(2, limit=2):
        p = p + (sad.log(v) if v > 0.1 else x[i])
    y[i] = r + p
    z[i] = q


@sad.kernel
def outputs_in_loops(
    i: sad.Index,
    x: sad.In[float],
    y: sad.Out[float],
    pairs: sad.Out[float],
    total: sad.Add[float],
    low: sad.Min[float],
):
    for k in sad.range(2, limit=2):
        v = x[i] * x[(i + k + 1) % len(x)]
        pairs[2 * i + k] = v * v
        y[i] = y[i] + v * float(k + 1)
        for m in range(2):
            total[(i + m) % len(total)] += v * x[m] * 0.5
            low[(i + k) % len(low)] = sad.min(low[(i + k) % len(low)], v + 0.01 * float(m))


N = 7
COUNTS = np.array([0, 1, 2, 3, 4, 2, 1], np.int32)
CASES: dict[str, Case] = {
    "triple_nesting": Case(triple_nesting, (floats(N), COUNTS, 0.4), N),
    "every_jump": Case(every_jump, (floats(N), np.array([0, 1, 3, 10, 2, 9, 5], np.int32)), N),
    "returns_in_loops_of_functions": Case(returns_in_loops_of_functions, (floats(N), 0.7), N),
    "many_steps": Case(many_steps, (floats(3), 613, 1.7), 3),
    "many_steps none": Case(many_steps, (floats(3), 0, 1.7), 3),
    "sums_without_limit": Case(sums_without_limit, (floats(5), 9, 0.8), 5, {"total": (2,)}),
    "carried_arrays": Case(
        carried_arrays, (floats(N), np.array([0, 1, 2, 3, 1, 2, 3], np.int32)), N
    ),
    "carried_grids": Case(carried_grids, (floats(N), np.array([0, 1, 2, 3, 1, 2, 3], np.int32)), N),
    "unrolled_loops": Case(
        unrolled_loops, (floats(N), np.array([0, 1, 2, 3, 4, 8, 1], np.int32)), N
    ),
    "newton_until_converged": Case(newton_until_converged, (floats(N, high=4.0),), N),
    "bounds_and_steps": Case(bounds_and_steps, (floats(5), 6), 5),
    "guarded_singularities": Case(guarded_singularities, (floats(N),), N),
    "outputs_in_loops": Case(
        outputs_in_loops, (floats(N),), N, {"pairs": (14,), "total": (3,), "low": (4,)}
    ),
}
