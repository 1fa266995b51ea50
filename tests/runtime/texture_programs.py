"""Programs in plain Slang that read textures, a file of their own for their number."""

from __future__ import annotations

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.ir.dimensions import Dimension

TYPES = {
    Dimension.LINE: ("Texture1D", "p.x", "int2(t.x, level)"),
    Dimension.PLANE: ("Texture2D", "p.xy", "int3(t.xy, level)"),
    Dimension.LAYERS: ("Texture2DArray", "p.xyz", "int4(t, level)"),
    Dimension.VOLUME: ("Texture3D", "p.xyz", "int4(t, level)"),
    Dimension.CUBE: ("TextureCube", "p.xyz", ""),
}
"""By view: the Slang type, a coordinate of `p`, the place of texel `t`."""


def sampling(view: Dimension, space: int = 0) -> Program:
    """Values at points (x, y, z, level), by a sampler."""
    kind, at, _ = TYPES[view]
    return Program(
        name="sample_points",
        slang=f"""
struct Parameters {{ uint count; }}
[[vk::binding(0, {space})]] ConstantBuffer<Parameters> parameters : register(b0, space{space});
[[vk::binding(1, {space})]] StructuredBuffer<float4> points : register(t1, space{space});
[[vk::binding(2, {space})]] {kind}<float4> picture : register(t2, space{space});
[[vk::binding(3, {space})]] SamplerState filtered : register(s3, space{space});
[[vk::binding(4, {space})]] RWStructuredBuffer<float4> values : register(u4, space{space});

[shader("compute")]
[numthreads(64, 1, 1)]
void sample_points(uint3 thread : SV_DispatchThreadID)
{{
    if (thread.x >= parameters.count)
        return;
    float4 p = points[thread.x];
    values[thread.x] = picture.SampleLevel(filtered, {at}, p.w);
}}
""",
        workgroup=(64, 1, 1),
        bindings=(
            Binding(0, "parameters", BindingAccess.UNIFORM),
            Binding(1, "points", BindingAccess.READ),
            Binding(2, "picture", BindingAccess.TEXTURE, view, is_filtered=True),
            Binding(3, "filtered", BindingAccess.SAMPLER),
            Binding(4, "values", BindingAccess.WRITE),
        ),
        parameter_words=("count",),
        space=space,
    )


def loading(view: Dimension) -> Program:
    """All texels of a level, row after row."""
    kind, _, texel = TYPES[view]
    return Program(
        name="load_texels",
        slang=f"""
struct Parameters {{ uint width; uint height; uint count; int level; }}
[[vk::binding(0, 0)]] ConstantBuffer<Parameters> parameters;
[[vk::binding(1, 0)]] {kind}<float4> picture;
[[vk::binding(2, 0)]] RWStructuredBuffer<float4> values;

[shader("compute")]
[numthreads(64, 1, 1)]
void load_texels(uint3 thread : SV_DispatchThreadID)
{{
    uint i = thread.x;
    if (i >= parameters.count)
        return;
    uint width = parameters.width, height = parameters.height;
    int level = parameters.level;
    int3 t = int3(i % width, i / width % height, i / (width * height));
    values[i] = picture.Load({texel});
}}
""",
        workgroup=(64, 1, 1),
        bindings=(
            Binding(0, "parameters", BindingAccess.UNIFORM),
            Binding(1, "picture", BindingAccess.TEXTURE, view),
            Binding(2, "values", BindingAccess.WRITE),
        ),
        parameter_words=("width", "height", "count", "level"),
    )
