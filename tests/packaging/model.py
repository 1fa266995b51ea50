"""A kernel and a graph, to be built where there is a compiler and run where there is none."""

# ruff: noqa: UP037, F821
from __future__ import annotations

import shaderad as sad


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.graph
def loss(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.sin(x) * x)
