"""Directions <-> points on the faces of a cube, and texels beyond the edges of a face."""

from __future__ import annotations

from shaderad.decorators import function
from shaderad.language.annotations import TYPES
from shaderad.textures.kernels.products import product

float2, float3, float4 = TYPES["float2"], TYPES["float3"], TYPES["float4"]
int2, int3 = TYPES["int2"], TYPES["int3"]


@function
def on_cube(d: float3) -> tuple[int, float2]:
    """The face through which a direction leaves the cube, and the point there.

    Faces are +x, -x, +y, -y, +z, -z as in Vulkan and D3D; points run from (0, 0) to (1, 1).
    """
    size = abs(d)
    face, side, down, major = 4 if d.z >= 0.0 else 5, d.x, -d.y, size.z
    if d.z < 0.0:
        side = -d.x
    if size.x >= size.y and size.x >= size.z:
        face, side, down, major = 0 if d.x >= 0.0 else 1, -d.z, -d.y, size.x
        if d.x < 0.0:
            side = d.z
    elif size.y >= size.z:
        face, side, down, major = 2 if d.y >= 0.0 else 3, d.x, d.z, size.y
        if d.y < 0.0:
            down = -d.z
    # A zero direction, as in pixels without a triangle, maps to the middle of a face, because NaN
    # would reach its texels.
    return face, 0.5 * float2(side, down) / (major if major > 0.0 else 1.0) + 0.5


@function
def direction_of(face: int, at: float2) -> float3:
    """The inverse of `on_cube`, also for points beyond the edge of a face."""
    a, b = 2.0 * at.x - 1.0, 2.0 * at.y - 1.0
    d = float3(1.0, -b, -a)
    if face == 1:
        d = float3(-1.0, -b, a)
    elif face == 2:
        d = float3(a, 1.0, b)
    elif face == 3:
        d = float3(a, -1.0, -b)
    elif face == 4:
        d = float3(a, -b, 1.0)
    elif face == 5:
        d = float3(-a, -b, -1.0)
    return d


@function
def corner_weights(t: float2) -> float4:
    """The weights of four texels for a point between them, row-major."""
    s = 1.0 - t
    return float4(product(s.x, s.y), product(t.x, s.y), product(s.x, t.y), product(t.x, t.y))


@function
def cube_texel(face: int, x: int, y: int, n: int) -> int3:
    """The texel (x, y, face) at x and y from -1 to n, which is on the next face beyond an edge."""
    f, at = face, int2(x, y)
    if min(x, y) < 0 or max(x, y) >= n:
        center = float2(float(x) + 0.5, float(y) + 0.5) / float(n)
        f, point = on_cube(direction_of(face, center))
        at = int2(point * float(n))
    return int3(at.x, at.y, f)
