"""Trilinear lookups in 8 grids of hashed features, by the features.

Müller et al., "Instant Neural Graphics Primitives with a Multiresolution Hash Encoding", 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2, float3, uint3

LEVELS = 8
ENTRIES = 1 << 14


@sad.function
def entry(level: int, corner: uint3) -> int:
    key = corner.x ^ (corner.y * sad.uint(2654435761)) ^ (corner.z * sad.uint(805459861))
    return level * ENTRIES + int(key & sad.uint(ENTRIES - 1))


@sad.kernel
def kernel(
    i: sad.Index,
    points: sad.In[float3],
    table: sad.In[float2],
    weights: sad.In[float2],
    out: sad.Out[float],
):
    total = 0.0
    resolution = 16.0
    for level in range(LEVELS):
        p = points[i] * resolution
        low = sad.floor(p)
        f = p - low
        base = uint3(low)
        feature = float2(0.0)
        for corner in range(8):
            dx = corner & 1
            dy = (corner >> 1) & 1
            dz = (corner >> 2) & 1
            wx = f.x if dx == 1 else 1.0 - f.x
            wy = f.y if dy == 1 else 1.0 - f.y
            wz = f.z if dz == 1 else 1.0 - f.z
            feature += wx * wy * wz * table[entry(level, base + uint3(dx, dy, dz))]
        total += sad.dot(feature, weights[level])
        resolution *= 1.5
    out[i] = total


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared points in the unit cube."""
    rng = np.random.default_rng(2)
    points = rng.uniform(0.0, 1.0, (size * size, 3)).astype(np.float32)
    table = rng.normal(0.0, 0.1, (LEVELS * ENTRIES, 2)).astype(np.float32)
    weights = rng.normal(0.0, 1.0, (LEVELS, 2)).astype(np.float32)
    given = [
        sad.array(x, dtype=t) for x, t in ((points, float3), (table, float2), (weights, float2))
    ]
    return tuple(given), {"dim": size * size}
