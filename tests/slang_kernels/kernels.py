"""Kernels in Slang, and what they compute in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2x2, float3

MIX = """
// y[i] = k x[i]^2 + x[i + 1]
float after(In<float> x, uint i) { return i + 1 < x.length() ? x[i + 1] : 0.0; }

void mix(uint3 thread : SV_DispatchThreadID, In<float> x, Out<float> y, float k)
{
    uint i = thread.x;
    if (i >= y.length())
        return;
    y[i] = k * x[i] * x[i] + after(x, i);
}

void mix_bwd(uint i : SV_DispatchThreadID, Add<float> k_bar, Add<float> x_bar, In<float> y_bar,
             In<float> x, float k)
{
    if (i >= x.length())
        return;
    float bar = y_bar[i];
    k_bar.add(0, x[i] * x[i] * bar);
    x_bar.add(i, 2 * k * x[i] * bar);
    if (i + 1 < x.length())
        x_bar.add(i + 1, bar);
}

void mix_fwd(uint i : SV_DispatchThreadID, In<float> x, float k, In<float> x_dot, float k_dot,
             Out<float> y_dot)
{
    if (i >= x.length())
        return;
    y_dot[i] = 2 * k * x[i] * x_dot[i] + k_dot * x[i] * x[i] + after(x_dot, i);
}
"""
MIX_PARAMETERS: dict[str, Any] = {"x": sad.In[float], "k": float, "y": sad.Out[float]}


def mix_kernel(source: str | Path = MIX, **options: Any) -> Any:
    """The kernel `mix`, with both derivatives unless `options` say otherwise."""
    both: dict[str, Any] = {"group": 32, "backward": "mix_bwd", "forward": "mix_fwd"}
    return sad.slang_kernel(source, "mix", MIX_PARAMETERS, **(both | options))


def mix_of(x: np.ndarray, k: float) -> np.ndarray:
    return k * x * x + np.append(x[1:], 0.0)


def pulled_mix(x: np.ndarray, k: float, y_bar: np.ndarray) -> tuple[np.ndarray, float]:
    x_bar = 2 * k * x * y_bar
    x_bar[1:] += y_bar[:-1]
    return x_bar, float((x * x * y_bar).sum())


def differences(f: Callable[..., float], *args: Any, step: float = 1e-5) -> list[Any]:
    """Central differences of `f` in double precision, by each argument."""
    doubles = [np.array(a, float) for a in args]
    gradients = [np.zeros_like(a) for a in doubles]
    for a, gradient in zip(doubles, gradients, strict=True):
        for index in np.ndindex(a.shape):
            start = a[index]
            a[index] = start + step
            above = f(*doubles)
            a[index] = start - step
            gradient[index] = (above - f(*doubles)) / (2 * step)
            a[index] = start
    return gradients


@sad.struct
class Ray:
    origin: float3
    turn: float2x2
    length: float


SHADE = """
void shade(uint3 thread : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID,
           uint3 inGroup : SV_GroupThreadID, In<Ray> rays, In<float3, 2> image, Ray lamp, int n,
           bool isCounted, Out<float3, 2> y, Add<float3> total, Add<int> count)
{
    if (thread.y >= y.length(0) || thread.x >= y.length(1))
        return;
    if (any(group * uint3(4, 2, 1) + inGroup != thread) || lane != inGroup.y * 4 + inGroup.x)
        return;
    float3 value = image[thread.y, thread.x] * rays[thread.y].length
                 + rays[thread.x].origin * lamp.turn[0][1];
    y[thread.y, thread.x] = value;
    total.add(thread.y, value);
    if (isCounted)
        count.add(0, n);
}

void shade_bwd(uint2 thread : SV_DispatchThreadID, In<Ray> rays, In<float3, 2> image, Ray lamp,
               In<float3, 2> y_bar, In<float3> total_bar, Add<Ray> rays_bar,
               Add<float3, 2> image_bar, Add<Ray> lamp_bar)
{
    if (thread.y >= y_bar.length(0) || thread.x >= y_bar.length(1))
        return;
    float3 bar = y_bar[thread.y, thread.x] + total_bar[thread.y];
    image_bar.add(thread.y, thread.x, bar * rays[thread.y].length);
    Ray by_length = {};
    by_length.length = dot(image[thread.y, thread.x], bar);
    rays_bar.add(thread.y, by_length);
    Ray by_origin = {};
    by_origin.origin = bar * lamp.turn[0][1];
    rays_bar.add(thread.x, by_origin);
    Ray by_lamp = {};
    by_lamp.turn[0][1] = dot(rays[thread.x].origin, bar);
    lamp_bar.add(0, by_lamp);
}
"""
shade = sad.slang_kernel(
    SHADE,
    "shade",
    {
        "rays": sad.In[Ray],
        "image": sad.In[float3, 2],
        "lamp": Ray,
        "n": int,
        "isCounted": bool,
        "y": sad.Out[float3, 2],
        "total": sad.Add[float3],
        "count": sad.Add[int],
    },
    group=(2, 4),
    backward="shade_bwd",
)

GROUP_SUMS = """
groupshared float cells[64];

void groupSums(uint thread : SV_DispatchThreadID, uint lane : SV_GroupIndex,
               uint group : SV_GroupID, In<float> x, Out<float> sums)
{
    cells[lane] = thread < x.length() ? x[thread] : 0.0;
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 32; step > 0; step /= 2)
    {
        if (lane < step)
            cells[lane] += cells[lane + step];
        GroupMemoryBarrierWithGroupSync();
    }
    if (lane == 0)
        sums[group] = cells[0];
}
"""
group_sums = sad.slang_kernel(
    GROUP_SUMS, "groupSums", {"x": sad.In[float], "sums": sad.Out[float]}, group=64
)
