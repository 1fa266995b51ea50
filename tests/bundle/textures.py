"""A kernel with textures, to be built."""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float4


@sad.struct
class Material:
    color: sad.Texture2D[float4]
    sky: sad.TextureCube[float4]
    decals: sad.Texture2DArray[float2]
    smooth: sad.Sampler
    tint: float3


@sad.kernel
def shaded(i: sad.Index, m: Material, at: sad.In[float2], d: sad.In[float3], out: sad.Out[float3]):
    base = m.color.sample_level(m.smooth, at[i], 0.5).xyz
    decal = m.decals.sample_grad(m.smooth, float3(at[i], 2.0 * d[i].x), 0.1 * at[i], float2(0.0))
    out[i] = base * m.tint + m.sky.sample(m.smooth, d[i]).xyz * decal.x + decal.y
