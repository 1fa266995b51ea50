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
def fold_in(j: sad.Index, h0: sad.In[float], found_hi: sad.In[float], l0: sad.In[float],
            found_lo: sad.In[float], hi: sad.Out[float], lo: sad.Out[float]):  # fmt: skip
    hi[j] = max(h0[j], found_hi[j])
    lo[j] = min(l0[j], found_lo[j])


def extremes_from(x: Any, idx: Any, h0: Any, l0: Any) -> dict[str, Any]:
    """Min and Max arrays start at the infinities; initial values are folded in, and win ties."""
    found_lo, found_hi = extremes(x, idx, dim=4, shapes={"lo": 2, "hi": 2})
    hi, lo = fold_in(h0, found_hi, l0, found_lo, dim=2)
    return {"hi": hi, "lo": lo}


PROGRAMS = {
    "warp-atomic-add-dup": over_kernel(add_squares, dim=4, shapes={"y": 2}),
    "warp-atomic-max": Program(extremes_from),
}
