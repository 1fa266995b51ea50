"""Kernels whose functions are hard: own derivatives, tuples, methods, arrays by value."""

from __future__ import annotations

import shaderad as sad
from shaderad import float3
from tests.lower.loop_cases import floats

N = 7


@sad.function
def square(x: float, y: float) -> float:
    return x * x * y


@square.backward_derivative
def square_bwd(x: sad.DifferentialPair[float], y: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * y.p * d_out
    if x.p > 0.0:
        y.d += x.p * x.p * d_out


@square.forward_derivative
def square_fwd(
    x: sad.DifferentialPair[float], y: sad.DifferentialPair[float]
) -> sad.DifferentialPair[float]:
    return sad.diff_pair(square(x.p, y.p), 2.0 * x.p * y.p * x.d + x.p * x.p * y.d)


@sad.kernel
def custom_in_loops(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    s = x[i]
    for k in sad.range(i % 4, limit=4):
        for m in range(2):
            s = s * 0.5 + square(x[(k + m) % len(x)], s) * a
        if s > 1.5:
            break
    y[i] = square(s, a) + square(x[0], x[i])


@sad.function
def get(w: sad.In[float], j: int, scale: float) -> float:
    return w[j % len(w)] * scale


@get.backward_derivative
def get_bwd(
    w: sad.DifferentialPair[sad.In[float]], j: int, scale: sad.DifferentialPair[float], d_out: float
):
    w.d[j % len(w.p)] += d_out * scale.p
    scale.d += d_out * w.p[j % len(w.p)]


@sad.kernel
def reads_with_own(i: sad.Index, w: sad.In[float], v: sad.In[float], a: float, y: sad.Out[float]):
    s = get(w, i, a)
    for k in sad.range(i % 3, limit=3):
        s = s * get(v, k + i, s) + w[k]
    y[i] = s + get(w, 0, 2.0)


@sad.function
def poly(x: float, n: int) -> float:
    s = 1.0
    for k in sad.range(n, limit=6):
        if k == 4:
            break
        s = s * x + sad.sin(x * float(k))
    return s


@sad.kernel
def slopes(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    p = sad.fwd_diff(poly)(sad.diff_pair(x[i], 1.0), i)
    y[i] = p.d * p.p
    z[i] = sad.detach(x[i]) * x[i] + sad.detach(p.d)


@sad.kernel
def pulls(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    a = sad.diff_pair(x[i])
    sad.bwd_diff(poly)(a, i, 1.0)
    b = sad.diff_pair(x[i], 7.0)
    c = sad.diff_pair(2.0)
    sad.bwd_diff(square)(b, c, 3.0)
    y[i] = a.d
    z[i] = b.d + c.d


@sad.function
def both(v: float3, m: float) -> tuple[float, float3]:
    r = v * m
    if m > 0.8:
        return r.x, v.zyx
    return m, r


@sad.kernel
def tuples(
    i: sad.Index, v: sad.In[float3], m: sad.In[float], y: sad.Out[float], z: sad.Out[float3]
):
    a, b = both(v[i], m[i])
    for k in sad.range(i, limit=8):
        a, c = both(b * a, m[k])
        b = c + v[k] * 0.1
    y[i], z[i] = a, b


@sad.struct
class Ray:
    o: float3
    d: float3
    n: int

    def at(self, t: float) -> float3:
        return self.o + self.d * t

    def turned(self, k: float) -> Ray:
        r = self
        r.d.x = r.d.y * k
        r.n += 1
        return r


@sad.kernel
def marches(i: sad.Index, v: sad.In[float3], radius: float, y: sad.Out[float3], hit: sad.Out[int]):
    r = Ray(v[i], float3(0.1, 0.2, 0.3), 0)
    t = 0.0
    hit[i] = -1
    for k in sad.range(12, limit=12):
        p = r.at(t)
        d = sad.length(p) - radius
        if d > 1.5:
            hit[i] = k
            break
        t += 0.3 * d
        r = r.turned(1.0 + 0.1 * radius)
    y[i] = r.at(t) * float(r.n)


@sad.function
def norm2(a: sad.LocalArray[float, 3], m: sad.In[float]) -> sad.LocalArray[float, 3]:
    b = a
    for k in range(3):
        b[k] = a[k] * a[(k + 1) % 3] + m[k]
        a = b
    return b


@sad.kernel
def arrays_through(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 3]()
    if i % 2 == 0:
        a[i % 3] = x[i]
    a[1] += x[0]
    for k in sad.range(i % 3, limit=3):
        a = norm2(a, w)
        if k == 1:
            a = norm2(a, x)
    b = a
    b[0] = b[2]
    y[i] = a[0] + b[0] * a[i % 3] + b[1]


@sad.kernel
def calls_in_blocks(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    """The reverse of the uses before a block runs after that of the block, and adds to its sums."""
    s, t = sad.sin(x[i]), sad.cos(x[i])
    total = 2.0 * s + 3.0 * t
    if x[i] > 0.5:
        total += square(s, x[i])
    for _k in range(3):
        total += square(t, x[i])
    y[i] = total


ARGUMENTS = {
    custom_in_loops: (floats(N), 0.6),
    calls_in_blocks: (floats(N),),
    tuples: (floats(N, 3), floats(N)),
    marches: (floats(N, 3), 0.7),
    arrays_through: (floats(N), floats(4)),
}
