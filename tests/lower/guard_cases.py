"""Kernels whose guards must hold in derivatives too: a side not taken contributes exactly 0."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from tests.lower.loop_cases import floats
from tests.lower.reference import Case


@sad.kernel
def cond_loads(i: sad.Index, x: sad.In[float], g: sad.In[int], y: sad.Out[float]):
    v = x[g[i]] if g[i] >= 0 else 1.0
    ok = g[i] >= 0 and x[g[i]] > 0.5
    y[i] = v * v + (x[i] if ok else sad.sqrt(x[i] - x[i]) * 0.0 + 2.0 * x[i])


@sad.kernel
def ternary_sqrt(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    d = x[i] - x[i]
    y[i] = sad.sqrt(d) if d > 0.0 else x[i]
    s = 0.0
    for k in sad.range(3, limit=3):
        s += sad.sqrt(d) if k > 5 else x[i] * float(k)
        if k > 5:
            s += sad.log(d) / d
    y[i] += s


@sad.kernel
def ints_carried(i: sad.Index, x: sad.In[float], y: sad.Out[float], n: sad.Out[int]):
    a = 1
    b = 1
    f = True
    s = 1.0
    while sad.limit(a < 50, 20):
        a, b = a + b, a
        f = not f
        s = s * x[(a + i) % len(x)] if f else s + x[b % len(x)]
    y[i] = s
    n[i] = a


@sad.kernel
def uniform_rebound(i: sad.Index, x: sad.In[float], a: float, n: int, y: sad.Out[float]):
    while sad.limit(n > 0, 8):
        a = a * x[i] + 0.5
        n -= 1
    y[i] = a


@sad.kernel
def static_nest(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 0.0
    for a in sad.static_range(2):
        for k in sad.range(i % 3, limit=2):
            for b in sad.static_range(2):
                s = s * x[k] + x[(a + b) % len(x)]
                if s > 3.0:
                    break
            if s > 2.5:
                y[i] = s * s
                return
    y[i] = s


CASES: dict[str, Case] = {
    "cond_loads": Case(cond_loads, (floats(5), np.int32([0, -1, 2, -1, 4])), 5),
    "ternary_sqrt": Case(ternary_sqrt, (floats(5),), 5),
    "ints_carried": Case(ints_carried, (floats(5),), 5),
    "uniform_rebound": Case(uniform_rebound, (floats(5), 0.7, 5), 5),
    "static_nest": Case(static_nest, (floats(5, low=0.9, high=1.6),), 5),
}
