"""The cells of a pixel -> the nearest triangle, and where on it the pixel is.

Coverage is decided in homogeneous coordinates, so that nothing has to be clipped. Only `locate` has
derivatives.
"""

from __future__ import annotations

import math

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3
from shaderad.render.kernels.bins import CELL


@sad.function
def center_of(y: int, x: int, size: int2) -> float2:
    """The centre of a pixel in normalised device coordinates, y up."""
    return float2(
        float(2 * x + 1) / float(size.x) - 1.0,
        1.0 - float(2 * y + 1) / float(size.y),
    )


@sad.function
def seen_from(p: float2, v: float4) -> float2:
    """A corner relative to a pixel at `p`, times its w."""
    return v.xy - p * v.w


@sad.function
def edge(a: float2, b: float2) -> float:
    """Twice the area of the triangle of the pixel and an edge, times w of its ends."""
    return a.x * b.y - a.y * b.x


@sad.function
def depth_at(p: float2, a: float4, b: float4, c: float4) -> float:
    """The depth of a triangle at a pixel; infinite where it does not cover the pixel.

    a, b and c are ordered by `is_before`.
    """
    pa, pb, pc = seen_from(p, a), seen_from(p, b), seen_from(p, c)
    ab, bc, ac = edge(pa, pb), edge(pb, pc), edge(pa, pc)
    w = bc * a.w - ac * b.w + ab * c.w
    depth = (bc * a.z - ac * b.z + ab * c.z) / w
    turns_left = ab >= 0.0
    # Of a triangle that reaches behind the eye, pixels see the part before it.
    is_inside = ((bc >= 0.0) == turns_left) & ((ac >= 0.0) != turns_left)
    is_before_eye = (w > 0.0) == turns_left
    return depth if is_inside & is_before_eye & (depth >= 0.0) & (depth <= 1.0) else math.inf


@sad.kernel
def pick(
    view: sad.Index,
    y: sad.Index,
    strip: sad.Index,
    clip: sad.In[float4, 2],
    corners: sad.In[int3, 2],
    levels: sad.In[int, 3],
    first: sad.In[int],
    triangles: sad.In[int],
    size: int2,
    cell_count: int,
    face: sad.Out[int, 3],
):
    """The nearest triangle at each pixel of a strip, of several the first; -1 for none.

    A strip is a row of a cell of level 0, so that its pixels look through the same cells.
    """
    nearest, best = sad.LocalArray[float, CELL](), sad.LocalArray[int, CELL]()
    for j in sad.static_range(CELL):
        nearest[j], best[j] = math.inf, -1
    across, down = (size.x + CELL - 1) // CELL, (size.y + CELL - 1) // CELL
    row, column, start = y // CELL, strip, view * cell_count
    left = levels[view, row, column]
    while left != 0:
        cell = start + row * across + column
        begin, end = 0, 0
        if left & 1 == 1:
            begin, end = first[cell], first[cell + 1]
        for k in range(begin, end):
            t = triangles[k] - view * corners.shape[1]
            i = corners[view, t]
            a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
            for j in sad.static_range(CELL):
                depth = depth_at(center_of(y, strip * CELL + j, size), a, b, c)
                if (depth < nearest[j]) | ((depth == nearest[j]) & (t < best[j])):
                    nearest[j], best[j] = depth, t
        left >>= 1
        start += across * down
        across, down, row, column = (across + 1) >> 1, (down + 1) >> 1, row >> 1, column >> 1
    for j in sad.static_range(CELL):
        x = strip * CELL + j
        if x < size.x:
            face[view, y, x] = best[j]


@sad.kernel
def locate(
    view: sad.Index,
    y: sad.Index,
    x: sad.Index,
    clip: sad.In[float4, 2],
    triangles: sad.In[int3],
    face: sad.In[int, 3],
    uv: sad.Out[float2, 3],
    depth: sad.Out[float, 3],
    uv_dx: sad.Out[float2, 3],
    uv_dy: sad.Out[float2, 3],
):
    """Where on its triangle a pixel is, and how that changes from pixel to pixel."""
    depth[view, y, x] = 1.0
    t = face[view, y, x]
    if t >= 0:
        i = triangles[t]
        a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
        size = int2(face.shape[2], face.shape[1])
        p = center_of(y, x, size)
        pa, pb, pc = seen_from(p, a), seen_from(p, b), seen_from(p, c)
        # The edges across from a, b and c; all have the sign of their sums.
        e = float3(edge(pb, pc), edge(pc, pa), edge(pa, pb))
        total = e.x + e.y + e.z
        at = e.yz / total
        uv[view, y, x] = at
        w = float3(a.w, b.w, c.w)
        depth[view, y, x] = sad.dot(e, float3(a.z, b.z, c.z)) / sad.dot(e, w)
        # d edge(pb, pc) / dp, where d pb / dp is -b.w.
        by_x = float3(b.y * c.w - b.w * c.y, c.y * a.w - c.w * a.y, a.y * b.w - a.w * b.y)
        by_y = float3(b.w * c.x - b.x * c.w, c.w * a.x - c.x * a.w, a.w * b.x - a.x * b.w)
        by_x *= 2.0 / float(size.x)
        by_y *= -2.0 / float(size.y)
        uv_dx[view, y, x] = (by_x.yz - at * (by_x.x + by_x.y + by_x.z)) / total
        uv_dy[view, y, x] = (by_y.yz - at * (by_y.x + by_y.y + by_y.z)) / total
