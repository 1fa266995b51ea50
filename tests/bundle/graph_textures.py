"""Graphs with textures, to be built."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import TypedDict

import shaderad as sad
from shaderad import float2, float3, float4


@sad.kernel
def look(
    i: sad.Index,
    t: sad.Texture2D[float4],
    s: sad.Sampler,
    at: sad.In[float2],
    level: float,
    c: sad.Out[float4],
):
    c[i] = t.sample_level(s, at[i], level) + 0.01 * float(t.shape()[1])


@sad.struct
class Sky:
    cube: sad.TextureCube[float4]
    smooth: sad.Sampler
    tint: float3


@sad.kernel
def lit(i: sad.Index, sky: Sky, d: sad.In[float3], out: sad.Out[float3]):
    out[i] = sky.tint * sky.cube.sample(sky.smooth, d[i]).xyz


class Pair(TypedDict):
    color: sad.Texture2D[float4]
    unused: sad.Texture2D[float4]


@sad.graph
def shaded(
    maps: Pair,
    s: sad.Sampler,
    sky: Sky,
    at: sad.Array[float2, "n"],
    d: sad.Array[float3, "n"],
    levels: tuple[float, float] = (0.5, 1.25),
):
    """Reads a texture twice, so that its gradient is a sum, and once in a loop."""
    base = look(maps["color"], s, at, levels[0]) * look(maps["color"], s, at, levels[1])

    def step(k, carry):
        return carry + 0.5 * look(maps["color"], s, at + 0.1 * carry.xy, 0.0)

    total = sad.fori_loop(2, step, base)
    return {"color": lit(sky, d) * total.xyz, "loss": sad.sum(sad.dot(total, total))}


@sad.kernel
def cloud(
    i: sad.Index,
    t: sad.Texture2DArray[float],
    s: sad.Sampler,
    at: sad.In[float3],
    c: sad.Out[float],
):
    c[i] = t.sample_level(s, at[i], 0.75)


@sad.graph
def clouds(t: sad.Texture2DArray[float], s: sad.Sampler, at: sad.Array[float3, "n"]):
    return sad.sum(cloud(t, s, at) ** 2)
