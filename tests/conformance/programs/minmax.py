"""min and max: over arrays by the accumulating parameters, and of two operands."""

from __future__ import annotations

import shaderad as sad
from shaderad import float4
from tests.conformance.programs.program import over_kernel


@sad.kernel
def largest_magnitude(i: sad.Index, x: sad.In[float], y: sad.Max[float]):
    y[0] = sad.max(y[0], abs(x[i]))


@sad.kernel
def smallest_and_largest(i: sad.Index, x: sad.In[float], lo: sad.Min[float], hi: sad.Max[float]):
    magnitude = abs(x[i])
    lo[0] = sad.min(lo[0], magnitude)
    hi[0] = sad.max(hi[0], magnitude)


@sad.kernel
def of_two(i: sad.Index, a: float, b: float, c: float4, y0: sad.Out[float],
           y1: sad.Out[float], y2: sad.Out[float4]):  # fmt: skip
    y0[i] = max(a, b)
    y1[i] = min(a, b)
    y2[i] = sad.clamp(c, 0.0, 1.0)


PROGRAMS = {
    "fut-maximum-abs": over_kernel(largest_magnitude, dim=7, shapes={"y": 1}),
    "fut-maximum-tie": over_kernel(largest_magnitude, dim=2, shapes={"y": 1}),
    "fut-minmax-both": over_kernel(smallest_and_largest, "lo hi", dim=7, shapes={"lo": 1, "hi": 1}),
    "own-binary-max-tie": over_kernel(of_two, "y0 y1 y2", dim=1),
}
