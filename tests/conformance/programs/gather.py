"""Reads at indices that come from other arrays."""

from __future__ import annotations

import shaderad as sad
from tests.conformance.programs.program import over_kernel


@sad.kernel
def gather(k: sad.Index, x: sad.In[float], idx: sad.In[int], y: sad.Out[float]):
    y[k] = x[idx[k]]


@sad.kernel
def gather_in_rows(r: sad.Index, k: sad.Index, X: sad.In[float, 2], idx: sad.In[int],
                   y: sad.Out[float, 2]):  # fmt: skip
    y[r, k] = X[r, idx[k]]


@sad.kernel
def gather_clamped(k: sad.Index, x: sad.In[float], idx: sad.In[int], y: sad.Out[float]):
    y[k] = x[sad.clamp(idx[k], 0, len(x) - 1)]


@sad.kernel
def sparse_product(r: sad.Index, a: sad.In[float], col: sad.In[int], ptr: sad.In[int],
                   x: sad.In[float], y: sad.Out[float]):  # fmt: skip
    total = 0.0
    for k in sad.range(ptr[r], ptr[r + 1], limit=4):
        total += a[k] * x[col[k]]
    y[r] = total


PROGRAMS = {
    "fut-gather0-dup": over_kernel(gather, dim=4),
    "fut-gather1-nested": over_kernel(gather_in_rows, dim=(2, 4)),
    "own-gather-clamp": over_kernel(gather_clamped, dim=6),
    "own-spmv-csr": over_kernel(sparse_product, dim=4),
}
