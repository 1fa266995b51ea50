"""NaN, infinity, singular points, results and arguments without influence."""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float4
from tests.conformance.programs.program import over_kernel


@sad.kernel
def raise_to(i: sad.Index, x: sad.In[float], p: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** p[i]


@sad.kernel
def smallest_and_largest(i: sad.Index, x: sad.In[float], lo: sad.Min[float], hi: sad.Max[float]):
    lo[0] = sad.min(lo[0], x[i])
    hi[0] = sad.max(hi[0], x[i])


@sad.kernel
def fold_operands(i: sad.Index, x: sad.In[float], lo: sad.Out[float], hi: sad.Out[float]):
    lo[i] = min(x[0], x[1], x[2])
    hi[i] = max(x[0], x[1], x[2])


@sad.kernel
def sum_and_product(i: sad.Index, x: sad.In[float], s: sad.Out[float], q: sad.Out[float]):
    total = 0.0
    for k in range(3):
        total += x[k]
    s[i] = total
    q[i] = x[0] * x[1] * x[2]


@sad.kernel
def special_points(i: sad.Index, x: sad.In[float], y: sad.Out[float4]):
    y[i].x = abs(x[0])
    y[i].y = sad.sign(x[1])
    y[i].z = max(x[2], 0.0)
    y[i].w = sad.length(float2(x[3], 0.0))


@sad.kernel
def constant_and_unused(i: sad.Index, a: float, b: float, c: sad.In[float], y: sad.Out[float],
                        k: sad.Out[float]):  # fmt: skip
    y[i] = a + b
    k[i] = 0.0


PROGRAMS = {
    "fut-pow0": over_kernel(raise_to, dim=4),
    "warp-max-nan": over_kernel(smallest_and_largest, "lo hi", dim=3, shapes={"lo": 1, "hi": 1}),
    "warp-max-nan/operands": over_kernel(fold_operands, "lo hi", dim=1),
    "own-sum-nan": over_kernel(sum_and_product, "s q", dim=1),
    "own-special-points": over_kernel(special_points, dim=1),
    "own-const-unused": over_kernel(constant_and_unused, "y k", dim=1),
}
