"""Programs in plain Slang that read textures, a file of their own for their number."""

from __future__ import annotations

from shaderad.compiler.artifact import Binding, BindingAccess, Program, TextureView

TYPES = {
    "1d": ("Texture1D", TextureView.LINE, "p.x", "int2(t.x, level)"),
    "2d": ("Texture2D", TextureView.PLANE, "p.xy", "int3(t.xy, level)"),
    "3d": ("Texture3D", TextureView.VOLUME, "p.xyz", "int4(t, level)"),
    "cube": ("TextureCube", TextureView.CUBE, "p.xyz", ""),
    "planes": ("Texture2DArray", TextureView.PLANES, "p.xyz", "int4(t, level)"),
}
"""By dimension: the Slang type, its view, a coordinate of `p`, the place of texel `t`."""


def sampling(dimension: str, space: int = 0) -> Program:
    """Values at points (x, y, z, level), by a sampler."""
    kind, view, at, _ = TYPES[dimension]
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


def loading(dimension: str) -> Program:
    """All texels of a level, row after row."""
    kind, view, _, texel = TYPES[dimension]
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
