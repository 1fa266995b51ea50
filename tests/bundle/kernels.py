"""Kernels whose builds use every kind of resource; read by the tests of this folder."""

from __future__ import annotations

import shaderad as sad
from shaderad import float3


@sad.struct
class Cloud:
    points: sad.In[float3]
    sizes: sad.In[sad.half]
    scale: float


@sad.kernel
def splat(
    i: sad.Index,
    cloud: Cloud,
    x_1: sad.In[float],
    bin: sad.In[int],
    gain: float,
    words: sad.Out[float],
    total: sad.Add[float],
    low: sad.Min[float],
):
    j = bin[i]
    value = cloud.points[j] * cloud.scale * gain * float(cloud.sizes[i])
    words[i] = value.x * x_1[i]
    total[j] += value.y
    low[0] = sad.min(low[0], value.z + x_1[i])


@sad.kernel
def levels(i: sad.Index, x: sad.In[float], count: sad.Const[int], top: sad.Const[float],
           y: sad.Out[float]):  # fmt: skip
    y[i] = round(sad.min(x[i], top) * count) / count


@sad.kernel
def shuffle(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    y[target[i]] = x[i]
