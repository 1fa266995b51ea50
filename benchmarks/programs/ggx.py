"""A specular reflection: 16 samples of the GGX lobe a pixel, by roughness and colour.

Walter et al., "Microfacet Models for Refraction through Rough Surfaces", EGSR 2007.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float3

SAMPLES = 16


@sad.struct
class Surface:
    normal: float3
    roughness: float
    specular: float3


@sad.function
def sky(d: float3, sun: float3) -> float3:
    glow = sad.exp(20.0 * (sad.dot(d, sad.normalize(sun)) - 1.0))
    height = 0.5 + 0.5 * d.y
    return sad.lerp(float3(0.3, 0.25, 0.2), float3(0.2, 0.4, 0.8), height) + 3.0 * glow


@sad.function
def half_vector(n: float3, roughness: float, u: float, v: float) -> float3:
    a = roughness * roughness
    cosine = sad.sqrt((1.0 - v) / (1.0 + (a * a - 1.0) * v))
    sine = sad.sqrt(sad.max(1.0 - cosine * cosine, 0.0))
    up = float3(1.0, 0.0, 0.0)
    if abs(n.x) > 0.9:
        up = float3(0.0, 1.0, 0.0)
    tangent = sad.normalize(sad.cross(up, n))
    bitangent = sad.cross(n, tangent)
    angle = 2.0 * math.pi * u
    return tangent * (sine * sad.cos(angle)) + bitangent * (sine * sad.sin(angle)) + n * cosine


@sad.function
def shadowing(cosine: float, roughness: float) -> float:
    k = roughness * roughness * 0.5
    return cosine / (cosine * (1.0 - k) + k)


@sad.function
def fresnel(f0: float3, cosine: float) -> float3:
    rest = 1.0 - cosine
    rest2 = rest * rest
    return f0 + (float3(1.0) - f0) * (rest2 * rest2 * rest)


@sad.kernel
def kernel(
    y: sad.Index,
    x: sad.Index,
    surfaces: sad.In[Surface, 2],
    sun: float3,
    out: sad.Out[float3, 2],
):
    s = surfaces[y, x]
    n = sad.normalize(s.normal)
    view = float3(0.0, 0.0, 1.0)
    facing = sad.max(sad.dot(n, view), 1e-3)
    total = float3(0.0)
    seed = sad.uint(y * 65536 + x)
    for k in range(SAMPLES):
        seed = sad.pcg(seed)
        u = sad.uniform01(seed)
        v = (float(k) + 0.5) / float(SAMPLES)
        h = half_vector(n, s.roughness, u, v)
        toward = sad.max(sad.dot(view, h), 1e-3)
        light = 2.0 * toward * h - view
        lit = sad.dot(n, light)
        if lit > 0.0:
            slope = sad.max(sad.dot(n, h), 1e-3)
            weight = shadowing(lit, s.roughness) * shadowing(facing, s.roughness)
            weight *= toward / (slope * facing)
            total += sky(light, sun) * fresnel(s.specular, toward) * weight
    out[y, x] = total / float(SAMPLES)


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A picture of `size` x `size` pixels of a bumpy plate."""
    rng = np.random.default_rng(1)
    normals = rng.normal(0.0, 0.3, (size, size, 3)).astype(np.float32)
    normals[..., 2] = 1.0
    surfaces = {
        "normal": normals,
        "roughness": rng.uniform(0.2, 0.8, (size, size)).astype(np.float32),
        "specular": rng.uniform(0.1, 0.9, (size, size, 3)).astype(np.float32),
    }
    sun = float3(0.4, 0.7, 0.6)
    return (sad.array(surfaces, dtype=Surface), sun), {"dim": (size, size)}
