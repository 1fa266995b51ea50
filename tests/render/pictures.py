"""A picture with all of the kit: a graph to be run, batched, wrapped and built."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float4, int3, render


@sad.graph
def picture(
    clip: sad.Array[float4, "v"],
    triangles: sad.Array[int3, "t"],
    texels: sad.Array[float3, "h", "w"],
    coordinates: sad.Array[float2, "v"],
    canvas: sad.Array[float, "rows", "columns"],
) -> sad.Array[float3]:
    fragments = render.rasterize(clip, triangles, canvas.shape)
    uv, footprint = render.interpolate(coordinates, triangles, fragments, footprint=True)
    color = render.texture(texels, uv, footprint=footprint, filter="trilinear")
    shown = sad.where(fragments.face >= 0, color, sad.zeros(color.shape, float3))
    return render.antialias(shown, fragments, clip, triangles)
