"""Kernels and graphs of every kind that a manifest describes; builds of this file are spoiled."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3


@sad.struct
class Cloud:
    points: sad.In[float3]
    sizes: sad.In[sad.half]
    scale: float


@sad.struct
class Mesh:
    triangles: sad.Pointer[float2]
    weight: float


@sad.kernel
def splat(i: sad.Index, cloud: Cloud, bin: sad.In[int], gain: float, words: sad.Out[float],
          total: sad.Add[float], low: sad.Min[float]):  # fmt: skip
    value = cloud.points[bin[i]] * cloud.scale * gain * float(cloud.sizes[i])
    words[i] = value.x
    total[bin[i]] += value.y
    low[0] = sad.min(low[0], value.z)


@sad.kernel
def behind(i: sad.Index, meshes: sad.In[Mesh], k: sad.In[int], y: sad.Out[float]):
    mesh = meshes[k[i]]
    y[i] = mesh.triangles[i % 2].x * mesh.weight


@sad.kernel
def powers(i: sad.Index, j: sad.Index, x: sad.In[float], count: int, y: sad.Out[float, 2]):
    found = 1.0
    for _ in sad.range(count, limit=16):
        found *= x[i]
    y[i, j] = found + float(j)


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)


@sad.graph
def moved(x: sad.Array[float, "n"], pairs: tuple[sad.Array[float, "n"], sad.Array[int, "m"]],
          order=3):  # fmt: skip
    def step(k, carry):
        a, b = carry
        return sad.reverse(sad.sin(a)) + b, sad.roll(b, -1) * 0.9 + sad.sum(a) * 0.01

    first, second = sad.fori_loop(order, step, (x, pairs[0]))
    return {"parts": [first, (sad.gather(second, pairs[1]), 1.5)], "count": x.shape[0] * 2}


@sad.graph
def halved(x: sad.Array[float, "n"]):
    return sad.while_loop(lambda a: sad.sum(a) > 1.0, lambda a: sad.reverse(a) * 0.5, x, limit=40)


@sad.graph
def sorted_rows(x: sad.Array[float, "n"], base: sad.Array[sad.half, "m", 2]):
    return sad.sort(x), sad.sum(sad.cast(base, float), axis=0), sad.reshape(base, (-1,))
