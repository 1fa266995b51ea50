"""Loops whose counts nobody knows, and derivatives inside derivatives."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case

N = 7
COUNTS = np.array([0, 1, 2, 16, 17, 18, 200], np.int32)

# -- loops without a limit ---------------------------------------------------------------------


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], counts: sad.In[int], a: float, y: sad.Out[float]):
    s = x[i]
    for k in range(counts[i]):
        s = sad.sin(s * a + x[k % 7]) + s * 0.1
    y[i] = s


@sad.kernel
def backwards(i: sad.Index, x: sad.In[float], counts: sad.In[int], y: sad.Out[float]):
    s = x[i]
    for k in range(counts[i] * 3, 1, -3):
        s = s * x[k % 5] + x[i] * float(k) * 0.01
        if s > 3.0:
            s *= 0.25
    y[i] = s


@sad.kernel
def until_small(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float], steps: sad.Out[int]):
    s, n = 10.0 * x[i], 0
    while s > 0.1:
        s = s * a * sad.cos(s * 0.1)
        n += 1
        if n == 30:
            break
    y[i] = s * x[i]
    steps[i] = n


@sad.kernel
def nests(i: sad.Index, x: sad.In[float], counts: sad.In[int], y: sad.Out[float]):
    s = x[i]
    for k in range(counts[i] % 19):
        t = s
        for j in range(k):
            t = sad.sin(t * x[j % 7]) + 0.3
            if t > 1.1:
                continue
            t = t * 1.01
        s = s * 0.5 + t * t
    y[i] = s


@sad.kernel
def arrays_carried(i: sad.Index, x: sad.In[float], counts: sad.In[int], y: sad.Out[float]):
    a = sad.LocalArray[float, 5]()
    for k in range(5):
        a[k] = x[k]
    for k in range(counts[i] % 40):
        a[(k * 3) % 5] = sad.sin(a[k % 5] * x[i]) + a[(k + 1) % 5] * 0.5
    y[i] = a[0] * a[1] + a[4]


@sad.kernel
def too_many_states(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    """Eight floats in 1,000 states: more than a thread has room for."""
    a = sad.LocalArray[float, 8]()
    a[i % 8] = x[i]
    for k in range(1000):
        a[k % 8] = sad.sin(a[(k + 1) % 8] * 1.1 + x[k % 7]) * 0.9
    y[i] = a[0] + a[3] * a[5]


# -- derivatives of derivatives ----------------------------------------------------------------


@sad.function
def wave(x: float, y: float) -> float:
    return sad.sin(x * y) * x + y * y * x


@sad.function
def slope_of_wave(x: float, y: float) -> float:
    return sad.fwd_diff(wave)(sad.diff_pair(x, 1.0), sad.diff_pair(y)).d


@sad.function
def pulled_wave(x: float, y: float) -> float:
    px, py = sad.diff_pair(x), sad.diff_pair(y)
    sad.bwd_diff(wave)(px, py, x)
    return px.d * y + py.d


@sad.function
def repeated(x: float, count: int) -> float:
    s = x
    for _k in range(count):
        s = s * x + 0.1
        if s > 5.0:
            break
    return s


@sad.function
def element(w: sad.In[float], k: int, x: float) -> float:
    return w[k] * x * x + w[k + 1]


@sad.kernel
def pulls(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    p, q = sad.diff_pair(x[i], 5.0), sad.diff_pair(a)
    sad.bwd_diff(wave)(p, q, x[i] * a)
    y[i] = p.d * p.p + q.d


@sad.kernel
def pulls_in_loops(i: sad.Index, x: sad.In[float], counts: sad.In[int], y: sad.Out[float]):
    s = x[i]
    for k in range(counts[i] % 20):
        p = sad.diff_pair(s)
        sad.bwd_diff(repeated)(p, k % 4, x[i])
        s = s * 0.5 + p.d * 0.1
    y[i] = s


@sad.kernel
def of_each_other(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float], z: sad.Out[float]):
    p = sad.diff_pair(x[i])
    q = sad.diff_pair(a)
    sad.bwd_diff(slope_of_wave)(p, q, 1.0)
    y[i] = p.d + q.d * a
    f = sad.fwd_diff(pulled_wave)(sad.diff_pair(x[i], a), sad.diff_pair(a, 1.0))
    r, s = sad.diff_pair(x[i]), sad.diff_pair(a)
    sad.bwd_diff(pulled_wave)(r, s, f.d)
    z[i] = r.d + s.d + f.p


@sad.kernel
def thirds(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    y[i] = sad.fwd_diff(slope_of_wave)(sad.diff_pair(x[i], 1.0), sad.diff_pair(a, x[i])).d


@sad.kernel
def of_elements(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    f = sad.fwd_diff(element)(w, i % 3, sad.diff_pair(x[i], 2.0))
    p = sad.diff_pair(x[i])
    sad.bwd_diff(element)(w, i % 4, p, f.p)
    y[i] = f.d * p.d


@sad.struct
class Inner:
    scale: float
    count: int


@sad.struct
class Outer:
    inner: Inner
    direction: float3
    weights: sad.LocalArray[float, 2]


@sad.function
def scaled(o: Outer, x: float) -> Outer:
    own = o
    own.direction = o.direction * (o.inner.scale * x)
    own.weights[1] = o.weights[0] * x * float(o.inner.count)
    return own


@sad.kernel
def of_structs(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float], z: sad.Out[float]):
    o = Outer(Inner(a, 3), float3(x[i], 1.0, a), sad.LocalArray[float, 2]())
    o.weights[0] = x[i]
    o.weights[1] = a
    f = sad.fwd_diff(scaled)(sad.diff_pair(o, o), sad.diff_pair(x[i], 1.0))
    y[i] = f.d.direction.x + f.d.weights[1] * f.d.inner.scale + f.p.weights[1]
    p, q = sad.diff_pair(o), sad.diff_pair(x[i])
    sad.bwd_diff(scaled)(p, q, f.d)
    d = p.d
    z[i] = d.direction.y + d.inner.scale + d.weights[0] * q.d


@sad.function
def smooth(x: float, y: float) -> float:
    return wave(x, y) * 2.0


@smooth.backward_derivative
def smooth_bwd(x: sad.DifferentialPair[float], y: sad.DifferentialPair[float], d_out: float):
    p, q = sad.diff_pair(x.p), sad.diff_pair(y.p)
    sad.bwd_diff(wave)(p, q, 2.0 * d_out)
    x.d += p.d + sad.fwd_diff(wave)(x, y).d
    y.d += q.d


@smooth.forward_derivative
def smooth_fwd(
    x: sad.DifferentialPair[float], y: sad.DifferentialPair[float]
) -> sad.DifferentialPair[float]:
    both = sad.fwd_diff(wave)(x, y)
    return sad.diff_pair(both.p * 2.0, both.d * 2.0)


@sad.kernel
def own_that_derive(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    p, q = sad.diff_pair(x[i]), sad.diff_pair(a)
    sad.bwd_diff(smooth)(p, q, 1.0)
    y[i] = smooth(x[i], a) + p.d * q.d


@sad.function
def weighted(w: sad.In[float], k: int, x: float) -> float:
    return w[k] * x * x


@weighted.backward_derivative
def weighted_bwd(
    w: sad.DifferentialPair[sad.In[float]], k: int, x: sad.DifferentialPair[float], d_out: float
):
    w.d[k] += x.p * x.p * d_out
    x.d += 2.0 * w.p[k] * x.p * d_out


@sad.function
def through_own(w: sad.In[float], k: int, x: float) -> float:
    return weighted(w, k, x)


@through_own.backward_derivative
def through_own_bwd(
    w: sad.DifferentialPair[sad.In[float]], k: int, x: sad.DifferentialPair[float], d_out: float
):
    p = sad.diff_pair(x.p)
    sad.bwd_diff(weighted)(w.p, k, p, d_out)
    x.d += p.d


@sad.kernel
def gradients_inside(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """What `bwd_diff` in a kernel adds to arrays is nobody's; in a derivative, the caller's."""
    p = sad.diff_pair(sad.detach(x[i]))
    sad.bwd_diff(weighted)(w, i % 3, p, 1.0)
    y[i] = sad.detach(p.d) * x[i] * through_own(w, i % 3, x[i])


CASES = {
    "powers": Case(powers, (floats(N), COUNTS, 0.8), N),
    "backwards": Case(backwards, (floats(N), COUNTS % 23), N),
    "until_small": Case(until_small, (floats(N), 0.9), N),
    "nests": Case(nests, (floats(N), COUNTS), N),
    "arrays_carried": Case(arrays_carried, (floats(N), COUNTS), N),
    "too_many_states": Case(too_many_states, (floats(N),), N),
    "pulls": Case(pulls, (floats(N), 0.6), N),
    "pulls_in_loops": Case(pulls_in_loops, (floats(N), COUNTS), N),
    "of_each_other": Case(of_each_other, (floats(N), 0.6), N),
    "thirds": Case(thirds, (floats(N), 0.6), N),
    "of_elements": Case(of_elements, (floats(5, seed=3), floats(N)), N),
    "of_structs": Case(of_structs, (floats(N), 0.6), N),
    "own_that_derive": Case(own_that_derive, (floats(N), 0.6), N),
}
