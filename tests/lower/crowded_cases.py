"""A kernel with more arrays than portable devices bind, so that gradients and cotangents share."""

from __future__ import annotations

import shaderad as sad
from tests.lower.loop_cases import floats
from tests.lower.reference import Case


@sad.kernel
def crowded(
    i: sad.Index,
    x: sad.In[float],
    w: sad.In[float],
    v: sad.In[float],
    a: float,
    y: sad.Out[float],
    z: sad.Out[float],
    t: sad.Add[float],
    m: sad.Min[float],
):
    s = x[i] * a
    for k in sad.range(i % 3, limit=3):
        s = s * w[(i + k) % len(w)] + v[0]
    y[i] = s
    z[2 * i + 1] = s * v[1]
    t[i % 3] += s * w[i % len(w)]
    m[i % 2] = sad.min(m[i % 2], s * x[0])


N = 9
CROWDED = Case(
    crowded, (floats(N), floats(4), floats(2), 0.8), N, {"z": (2 * N,), "t": (3,), "m": (2,)}
)


@sad.kernel
def wide(
    i: sad.Index,
    x: sad.In[float],
    w: sad.In[float],
    y: sad.Out[float],
    z: sad.Out[float],
    t: sad.Add[float],
):
    y[i] = x[i] * w[(i + 1) % len(w)]
    z[2 * i + 1] = x[i] * x[i] + w[0]
    t[i % 3] += x[i] * w[i % len(w)]


WIDE = Case(wide, (floats(N), floats(4)), N, {"z": (2 * N,), "t": (3,)})
