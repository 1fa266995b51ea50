"""Matrices, rotations, textures and triangles: what graphics kernels compute."""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float3x3, float4
from tests.conformance.programs.program import over_kernel


@sad.kernel
def rotate(i: sad.Index, q: float4, v: float3, y: sad.Out[float3]):
    unit = sad.normalize(q)
    turned = 2.0 * sad.cross(unit.xyz, v)
    y[i] = v + unit.w * turned + sad.cross(unit.xyz, turned)


@sad.kernel
def invert(i: sad.Index, A: float3x3, B: sad.Out[float3x3], d: sad.Out[float]):
    B[i] = sad.inverse(A)
    d[i] = sad.determinant(A)


@sad.function
def refined(c: float, r: float) -> float:
    """A step of Newton's method to a root of ``4 c**3 - 3 c = r``, near which `c` is."""
    return c - ((4.0 * c * c - 3.0) * c - r) / (12.0 * c * c - 3.0)


@sad.kernel
def eigenvalues(i: sad.Index, A: float3x3, w: sad.Out[float3]):
    """Of the symmetric part, ascending, by the roots of the characteristic cubic.

    Drivers may know `acos` to 1e-4 alone: the cosines of its thirds are refined.
    """
    s = 0.5 * (A + sad.transpose(A))
    mean = (s[0].x + s[1].y + s[2].z) / 3.0
    a = s[0].x - mean
    b = s[1].y - mean
    c = s[2].z - mean
    off = float3(s[0].y, s[0].z, s[1].z)
    size = sad.sqrt((a * a + b * b + c * c + 2.0 * sad.dot(off, off)) / 6.0)
    cofactors = a * (b * c - off.z * off.z) - off.x * (off.x * c - off.z * off.y)
    determinant = cofactors + off.y * (off.x * off.z - b * off.y)
    r = determinant / (2.0 * size * size * size)
    angle = sad.acos(r) / 3.0
    third = 2.0943951023931953
    largest = mean + 2.0 * size * refined(sad.cos(angle), r)
    smallest = mean + 2.0 * size * refined(sad.cos(angle + third), r)
    w[i] = float3(smallest, 3.0 * mean - largest - smallest, largest)


@sad.kernel
def sample(i: sad.Index, T: sad.In[float, 2], uv: sad.In[float2], y: sad.Out[float]):
    height = T.shape[0]
    width = T.shape[1]
    x = uv[i].x * float(width) - 0.5
    v = uv[i].y * float(height) - 0.5
    left = int(sad.floor(x))
    top = int(sad.floor(v))
    p = x - sad.floor(x)
    q = v - sad.floor(v)
    x0 = min(max(left, 0), width - 1)
    x1 = min(max(left + 1, 0), width - 1)
    y0 = min(max(top, 0), height - 1)
    y1 = min(max(top + 1, 0), height - 1)
    above = T[y0, x0] * (1.0 - p) + T[y0, x1] * p
    below = T[y1, x0] * (1.0 - p) + T[y1, x1] * p
    y[i] = above * (1.0 - q) + below * q


@sad.kernel
def distance_to_plane(i: sad.Index, p: float3, a: float3, b: float3, c: float3,
                      y: sad.Out[float]):  # fmt: skip
    ab = b - a
    ac = c - a
    ap = p - a
    aa = sad.dot(ab, ab)
    cc = sad.dot(ac, ac)
    bc = sad.dot(ab, ac)
    scale = 1.0 / (aa * cc - bc * bc)
    u = (cc * sad.dot(ap, ab) - bc * sad.dot(ap, ac)) * scale
    v = (aa * sad.dot(ap, ac) - bc * sad.dot(ap, ab)) * scale
    apart = ap - u * ab - v * ac
    y[i] = sad.dot(apart, apart)


PROGRAMS = {
    "warp-quat-rotate": over_kernel(rotate, dim=1),
    "warp-inverse-det": over_kernel(invert, "B d", dim=1),
    "warp-eig-sym": over_kernel(eigenvalues, "w", dim=1),
    "warp-texture2d": over_kernel(sample, dim=4),
    "warp-mesh-point": over_kernel(distance_to_plane, dim=1),
}
