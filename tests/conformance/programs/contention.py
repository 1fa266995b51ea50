"""Kernels in which many threads add to, or compete for, few elements; and their references.

They are no cases of the catalogue: cases are small, and what a device does without float atomics,
or with few bindings, shows only under load. Every reference is NumPy in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float3

Array = np.ndarray[Any, Any]


@sad.struct
class Vertex:
    color: float3
    weight: float


@sad.kernel
def shade(i: sad.Index, vertices: sad.In[Vertex], corner: sad.In[int], exposure: float,
          color: sad.Out[float3]):  # fmt: skip
    vertex = vertices[corner[i]]
    color[i] = exposure * vertex.weight * vertex.color


def shade_gradients(
    colors: Array, weights: Array, corner: Array, exposure: float, color_bar: Array
) -> tuple[Array, Array, float]:
    """Cotangents of colors, weights and exposure, each summed over the threads."""
    by_color, by_weight = np.zeros_like(colors), np.zeros_like(weights)
    np.add.at(by_color, corner, exposure * weights[corner, None] * color_bar)
    along = np.sum(colors[corner] * color_bar, axis=1)
    np.add.at(by_weight, corner, exposure * along)
    return by_color, by_weight, float(np.sum(weights[corner] * along))


@sad.kernel
def bin_squares(i: sad.Index, x: sad.In[float], bin: sad.In[int], y: sad.Add[float]):
    y[bin[i]] += x[i] * x[i]


@sad.kernel
def bin_extremes(i: sad.Index, x: sad.In[float], bin: sad.In[int], lo: sad.Min[float],
                 hi: sad.Max[float]):  # fmt: skip
    lo[bin[i]] = sad.min(lo[bin[i]], x[i])
    hi[bin[i]] = sad.max(hi[bin[i]], x[i])


# Backward, were none shared: five arrays, four gradients, two cotangents and the report. With
# eight bindings allowed, all gradients have one and all cotangents have one.
@sad.kernel
def mix(i: sad.Index, a: sad.In[float], b: sad.In[float], c: sad.In[float], d: sad.In[float],
        index: sad.In[int], total: sad.Add[float], out: sad.Out[float]):  # fmt: skip
    k = index[i]
    total[k] += a[k] * b[k]
    out[i] = b[k] * c[k] + d[k]


def mix_gradients(
    arrays: tuple[Array, ...], index: Array, total_bar: Array, out_bar: Array
) -> tuple[Array, ...]:
    """By a, b, c, d, with n[k] the threads at k, and o[k] the sum of their out_bar."""
    a, b, c, _ = arrays
    n = np.bincount(index, minlength=len(a))
    o = np.bincount(index, weights=out_bar, minlength=len(a))
    return n * total_bar * b, n * total_bar * a + o * c, o * b, o


@sad.kernel
def read_nine(i: sad.Index, a: sad.In[float], b: sad.In[float], c: sad.In[float],
              d: sad.In[float], e: sad.In[float], f: sad.In[float], g: sad.In[float],
              h: sad.In[float], k: sad.In[float], y: sad.Out[float]):  # fmt: skip
    y[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + k[i]
