"""Many threads on one element: sums, minima and maxima."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from tests.conformance.programs.program import Program, over_kernel


@sad.kernel
def add_squares(i: sad.Index, x: sad.In[float], idx: sad.In[int], y: sad.Add[float]):
    y[idx[i]] += x[i] * x[i]


@sad.kernel
def extremes(i: sad.Index, x: sad.In[float], idx: sad.In[int], lo: sad.Min[float],
             hi: sad.Max[float]):  # fmt: skip
    hi[idx[i]] = sad.max(hi[idx[i]], x[i])
    lo[idx[i]] = sad.min(lo[idx[i]], x[i])


@sad.kernel
def larger(j: sad.Index, start: sad.In[float], found: sad.In[float], hi: sad.Out[float]):
    hi[j] = max(start[j], found[j])


@sad.kernel
def smaller(j: sad.Index, start: sad.In[float], found: sad.In[float], lo: sad.Out[float]):
    lo[j] = min(start[j], found[j])


def extremes_from(x: Any, idx: Any, h0: Any, l0: Any) -> dict[str, Any]:
    """Min and Max arrays start at the infinities; initial values are folded in, and win ties."""
    lo, hi = extremes(x, idx, dim=4, shapes={"lo": 2, "hi": 2})
    return {"hi": larger(h0, hi, dim=2), "lo": smaller(l0, lo, dim=2)}


PROGRAMS = {
    "warp-atomic-add-dup": over_kernel(add_squares, dim=4, shapes={"y": 2}),
    "warp-atomic-max": Program(extremes_from),
}
