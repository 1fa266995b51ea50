"""Loops whose gradients other systems were reported to get wrong; each kernel is ours.

The names say where: ``NVIDIA/warp`` 1293, 1552, 1694, 1740, 1754; ``taichi-dev/taichi`` 7771, 8356;
``shader-slang/slang`` 13000; ``shader-slang/slangpy`` 1051, 1055.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case

N = 6


@sad.kernel
def warp_1694(i: sad.Index, x: sad.In[float], s: sad.In[float], n: int, y: sad.Out[float]):
    """What is computed before a loop of unknown count is used after it."""
    area = x[i] * x[i]
    total = 0.0
    for k in range(n):
        total += s[k] * float(k + 1)
    y[i] = area * total + sad.sin(area)


@sad.kernel
def warp_1740(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    """A nonlinear function of what a loop of unknown count has summed."""
    total = 0.5
    for k in range(n):
        total += x[(i + k) % 6] * x[(i + k) % 6]
    y[i] = x[i] / sad.sqrt(total)


@sad.function
def norm(x: sad.In[float], first: int, n: int) -> float:
    total = 2.0
    for k in range(n):
        total -= x[(first + k) % 6] * 0.1
    return sad.sqrt(total) * total


@sad.kernel
def warp_1754(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    """The same inside a function."""
    y[i] = norm(x, i, n) * x[i]


@sad.kernel
def warp_1552(i: sad.Index, c: sad.In[float, 2], x: sad.In[float], y: sad.Out[float]):
    """The largest of products, found with `continue` in a nest of loops."""
    best = -1e20
    for p in range(c.shape[0]):
        for q in range(c.shape[1]):
            if c[p, q] == 0.0:
                continue
            value = x[i] * c[p, q] * (float(p + 1) + float(q + 1))
            if value > best:
                best = value
    y[i] = best


@sad.function
def turned(v: float3, angle: float) -> float3:
    c, s = sad.cos(angle), sad.sin(angle)
    return float3(c * v.x - s * v.y, s * v.x + c * v.y, v.z + angle * v.x)


@sad.kernel
def warp_1293(
    i: sad.Index,
    starts: sad.In[int],
    joints: sad.In[int],
    angles: sad.In[float],
    y: sad.Out[float3],
):
    """Bodies on a branch, joints on a body: two loops of unknown count."""
    at = float3(1.0, 0.5, 0.25)
    for body in range(starts[i], starts[i + 1]):
        for j in range(joints[body], joints[body + 1]):
            at = turned(at, angles[j])
        at = at * 1.1 + float3(0.1, 0.0, at.x * at.y)
    y[i] = at


@sad.kernel
def taichi_8356(i: sad.Index, x: sad.In[float], y: sad.In[float], total: sad.Add[float]):
    """Every element is added to every other."""
    for j in range(len(y)):
        total[i] += y[j] * x[i]


@sad.kernel
def taichi_7771(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    """Bounds that are the counters of the loops around."""
    total = 0.0
    for a in range(i + 1):
        for b in range(a):
            for c in range(b):
                total += x[b] * x[c] * total + x[a]
    y[i] = total


@sad.kernel
def slang_13000(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """A network of three layers, whose inner loops are longer than the outer ones."""
    first = sad.LocalArray[float, 6]()
    second = sad.LocalArray[float, 6]()
    for j in range(6):
        s = w[j]
        for k in range(2):
            s += w[6 + 2 * j + k] * x[(i + k) % 6]
        first[j] = sad.max(s, 0.1 * s)
    for j in range(6):
        s = w[18 + j]
        for k in range(6):
            s += w[24 + 6 * j + k] * first[k]
        second[j] = sad.max(s, 0.1 * s)
    out = 0.0
    for j in range(2):
        s = w[60 + j]
        for k in range(6):
            s += w[62 + 6 * j + k] * second[k]
        out += s * s
    y[i] = out


@sad.kernel
def slangpy_1051(i: sad.Index, x: sad.In[float], radius: int, y: sad.Out[float]):
    """A loop that starts below zero, at run time."""
    total, weight = 0.0, 0.0
    for d in range(-radius, radius + 1):
        j = sad.clamp(i + d, 0, 5)
        w = sad.exp(-(x[j] - x[i]) * (x[j] - x[i]))
        total += w * x[j]
        weight += w
    y[i] = total / weight


@sad.function
def filtered(x: sad.In[float3], i: int, radius: int) -> float3:
    total = float3(0.0)
    weight = 0.1
    for d in range(radius):
        v = x[(i + d) % 6]
        w = sad.exp(-sad.dot(v - x[i], v - x[i]))
        total += w * v
        weight += w
    return total / weight


@sad.kernel
def slangpy_1055(i: sad.Index, x: sad.In[float3], radius: int, y: sad.Out[float3]):
    """A function that loops and returns a vector."""
    y[i] = filtered(x, i, radius)


CASES = {
    "warp_1694": Case(warp_1694, (floats(N), floats(9), 9), N),
    "warp_1740": Case(warp_1740, (floats(N), 4), N),
    "warp_1754": Case(warp_1754, (floats(N), 5), N),
    "warp_1552": Case(
        warp_1552,
        (floats(25).reshape(5, 5) * (np.arange(25).reshape(5, 5) % 4 > 0), floats(N)),
        N,
    ),
    "warp_1293": Case(
        warp_1293,
        (np.int32([0, 1, 1, 3]), np.int32([0, 2, 2, 7]), floats(7)),
        3,
    ),
    "taichi_8356": Case(taichi_8356, (floats(N), floats(3)), N),
    "taichi_7771": Case(taichi_7771, (floats(N) * np.float32(0.3),), N),
    "slang_13000": Case(slang_13000, (floats(74) - np.float32(0.7), floats(N)), N),
    "slangpy_1051": Case(slangpy_1051, (floats(N), 2), N),
    "slangpy_1055": Case(slangpy_1055, (floats(3 * N).reshape(N, 3), 4), N),
}  # fmt: skip
