"""A material and cameras -> photographs of a plane, and their difference to others.

The material is three textures: base colour, roughness, and slopes that turn the normal. A pixel
looks them up where its ray meets the plane, on the mip level of its footprint, and shades them by
the light of one lamp. `shaderad build` takes this file.

Walter et al., "Microfacet models for refraction through rough surfaces", 2007 (GGX); Heitz,
"Understanding the masking-shadowing function in microfacet-based BRDFs", 2014; Karis, "Real shading
in Unreal Engine 4", 2013 (roughness).
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float4

PI = 3.14159265
FACING = 0.04
"""The share of light that a dielectric reflects at normal incidence."""
POWER = 8.0
"""The light of a lamp at a distance of 1."""
SKY = 0.06
"""Light from all directions, which each point reflects with its base colour."""


@sad.struct
class Material:
    """The material of the plane; its textures repeat once per unit of length."""

    color: sad.Texture2D[float4]
    roughness: sad.Texture2D[float]
    slope: sad.Texture2D[float2]
    smooth: sad.Sampler


@sad.struct
class Shot:
    """The position and axes of a camera over the plane z = 0, and the position of the lamp."""

    eye: float3
    right: float3
    down: float3
    forward: float3
    lamp: float3


@sad.function
def ground(shot: Shot, pixel: float2, size: int) -> float2:
    """The point of the plane at a pixel."""
    at = 2.0 * pixel / float(size) - 1.0
    ray = shot.forward + at.x * shot.right + at.y * shot.down
    return shot.eye.xy - ray.xy * (shot.eye.z / ray.z)


@sad.function
def reflected(base: float3, rough: float, normal: float3, light: float3, view: float3) -> float3:
    """The BRDF times the cosine: Lambert's and GGX with Smith's masking and Schlick's Fresnel."""
    half = sad.normalize(light + view)
    nl, nh = sad.max(sad.dot(normal, light), 0.0), sad.max(sad.dot(normal, half), 0.0)
    nv = sad.max(sad.dot(normal, view), 0.01)
    a2 = rough**4
    bell = nh * nh * (a2 - 1.0) + 1.0
    distribution = a2 / (PI * bell * bell)
    across = nl * sad.sqrt(nv * nv * (1.0 - a2) + a2) + nv * sad.sqrt(nl * nl * (1.0 - a2) + a2)
    fresnel = FACING + (1.0 - FACING) * (1.0 - sad.dot(view, half)) ** 5
    return (base * (1.0 - fresnel) / PI + 0.5 * distribution * fresnel / across) * nl


@sad.function
def seen(m: Material, shot: Shot, pixel: float2, step: float, size: int) -> float3:
    """The light through a pixel, for samples that are `step` pixels apart."""
    place = ground(shot, pixel, size)
    dx = ground(shot, pixel + float2(step, 0.0), size) - place
    dy = ground(shot, pixel + float2(0.0, step), size) - place
    base = m.color.sample_grad(m.smooth, place, dx, dy).xyz
    rough = m.roughness.sample_grad(m.smooth, place, dx, dy)
    normal = sad.normalize(float3(-m.slope.sample_grad(m.smooth, place, dx, dy), 1.0))
    here = float3(place, 0.0)
    to_lamp, view = shot.lamp - here, sad.normalize(shot.eye - here)
    strength = POWER / sad.dot(to_lamp, to_lamp)
    lit = strength * reflected(base, rough, normal, sad.normalize(to_lamp), view)
    return lit + SKY * base


@sad.function
def developed(light: float3) -> float3:
    """Light of any strength -> 0 to 1 (Reinhard et al., 2002)."""
    return light / (1.0 + light)


@sad.kernel
def photographs(
    k: sad.Index,
    y: sad.Index,
    x: sad.Index,
    m: Material,
    shots: sad.In[Shot],
    samples: int,
    out: sad.Out[float3, 3],
):
    """The photographs of the cameras: means over samples x samples points in each pixel."""
    total, step = float3(0.0), 1.0 / float(samples)
    for j in range(samples):
        for i in range(samples):
            pixel = float2(x, y) + step * (float2(i, j) + 0.5)
            total += seen(m, shots[k], pixel, step, out.shape[1])
    out[k, y, x] = developed(total * step * step)


@sad.kernel
def error(
    k: sad.Index,
    y: sad.Index,
    x: sad.Index,
    m: Material,
    shots: sad.In[Shot],
    wanted: sad.In[float3, 3],
    total: sad.Add[float],
):
    """The mean squared difference to other photographs, with one sample per pixel."""
    light = seen(m, shots[k], float2(x, y) + 0.5, 1.0, wanted.shape[1])
    miss = developed(light) - wanted[k, y, x]
    count = 3 * wanted.shape[0] * wanted.shape[1] * wanted.shape[2]
    total[0] += sad.dot(miss, miss) / float(count)
