"""The lists of a pixel's cells -> the nearest triangle, and the position of the pixel on it.

Coverage is computed in homogeneous coordinates, so that no triangle is clipped. Only `locate` has
derivatives.
"""

from __future__ import annotations

import math

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3, int4, uint2
from shaderad.render.kernels.bins import CELL, PAIR_COUNT

FOURS = 2
STRIP = 4 * FOURS
"""Pixels per thread that searches triangles, in one column of a cell, so that they share loads."""


@sad.function
def center_of(y: int, x: int, size: int2) -> float2:
    """The centre of a pixel in normalised device coordinates, y up."""
    return float2(
        float(2 * x + 1) / float(size.x) - 1.0,
        1.0 - float(2 * y + 1) / float(size.y),
    )


@sad.function
def seen_from(p: float2, v: float4) -> float2:
    """A corner relative to a pixel at `p`, times the w of the corner."""
    return v.xy - p * v.w


@sad.function
def edge(a: float2, b: float2) -> float:
    """Twice the area of the triangle between a pixel and an edge, times the w of both ends."""
    return a.x * b.y - a.y * b.x


@sad.function
def depths_at(x: float, y: float4, a: float4, b: float4, c: float4) -> float4:
    """The depths of a triangle at four pixels of a column; infinity if it does not cover a pixel.

    The corners a, b and c are ordered by `is_before`.
    """
    # The corners relative to the pixels, as in `seen_from`.
    ax, bx, cx = a.x - x * a.w, b.x - x * b.w, c.x - x * c.w
    ay, by, cy = a.y - y * a.w, b.y - y * b.w, c.y - y * c.w
    ab, bc, ac = ax * by - ay * bx, bx * cy - by * cx, ax * cy - ay * cx
    w = bc * a.w - ac * b.w + ab * c.w
    depth = (bc * a.z - ac * b.z + ab * c.z) / w
    turns_left, nowhere = ab >= 0.0, float4(math.inf)
    depth = sad.select((bc >= 0.0) == turns_left, depth, nowhere)
    depth = sad.select((ac >= 0.0) != turns_left, depth, nowhere)
    # Pixels see only the part of a triangle that is in front of the eye.
    depth = sad.select((w > 0.0) == turns_left, depth, nowhere)
    depth = sad.select(depth >= 0.0, depth, nowhere)
    return sad.select(depth <= 1.0, depth, nowhere)


@sad.kernel
def pick(
    view: sad.Index,
    strip: sad.Index,
    x: sad.Index,
    clip: sad.In[float4, 2],
    ordered: sad.In[int3, 2],
    drawn: sad.In[uint2, 3],
    lists: sad.In[int, 2],
    levels: sad.In[int, 3],
    width: int,
    height: int,
    cell_count: int,
    face: sad.Out[int, 3],
):
    """The nearest triangle at each pixel of a strip, the first one at equal depths; -1 for none.

    A strip is part of a pixel column of a cell of level 0. Its pixels search the same lists as the
    adjacent strips, which neighbouring threads process. `drawn` has the nearest small triangle of
    each pixel: see `drawing.draw`.
    """
    size = int2(width, height)
    nearest, best = sad.LocalArray[float4, FOURS](), sad.LocalArray[int4, FOURS]()
    heights = sad.LocalArray[float4, FOURS]()
    for j in sad.static_range(FOURS):
        for k in sad.static_range(4):
            y = strip * STRIP + 4 * j + k
            heights[j][k] = center_of(y, x, size).y
            # 0 stands for no small triangle; its complement is -1, as the face is then.
            small = drawn[view, sad.min(y, size.y - 1), x]
            nearest[j][k] = sad.select(small.y == 0, math.inf, sad.bitcast(float, ~small.y))
            best[j][k] = int(~small.x)
    across, down = (size.x + CELL - 1) // CELL, (size.y + CELL - 1) // CELL
    row, column, start = strip * STRIP // CELL, x // CELL, 0
    left, item = levels[view, row, column], 0
    # One loop over the triangles of all levels, because threads of a wave may be on different
    # levels.
    while left != 0 or item != 0:
        if item == 0:
            while left & 1 == 0:
                left >>= 1
                start += across * down
                across, down = (across + 1) >> 1, (down + 1) >> 1
                row, column = row >> 1, column >> 1
            left -= 1
            item = lists[view, start + row * across + column]
        t = (item - cell_count) // PAIR_COUNT
        item = lists[view, item]
        i = ordered[view, t]
        a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
        for j in sad.static_range(FOURS):
            depth = depths_at(center_of(0, x, size).x, heights[j], a, b, c)
            is_nearer = (depth < nearest[j]) | ((depth == nearest[j]) & (t < best[j]))
            nearest[j] = sad.select(is_nearer, depth, nearest[j])
            best[j] = sad.select(is_nearer, int4(t), best[j])
    for j in sad.static_range(FOURS):
        for k in sad.static_range(4):
            y = strip * STRIP + 4 * j + k
            if y < size.y:
                face[view, y, x] = best[j][k]


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
    """The position of a pixel on its triangle, and its derivatives along the picture."""
    depth[view, y, x] = 1.0
    t = face[view, y, x]
    if t >= 0:
        i = triangles[t]
        a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
        size = int2(face.shape[2], face.shape[1])
        p = center_of(y, x, size)
        pa, pb, pc = seen_from(p, a), seen_from(p, b), seen_from(p, c)
        # The edge functions opposite to a, b and c; all have the sign of their sum.
        e = float3(edge(pb, pc), edge(pc, pa), edge(pa, pb))
        scale = 1.0 / (e.x + e.y + e.z)
        at = e.yz * scale
        uv[view, y, x] = at
        w = float3(a.w, b.w, c.w)
        depth[view, y, x] = sad.dot(e, float3(a.z, b.z, c.z)) / sad.dot(e, w)
        # d edge(pb, pc) / dp, where d pb / dp is -b.w.
        by_x = float3(b.y * c.w - b.w * c.y, c.y * a.w - c.w * a.y, a.y * b.w - a.w * b.y)
        by_y = float3(b.w * c.x - b.x * c.w, c.w * a.x - c.x * a.w, a.w * b.x - a.x * b.w)
        pixel = 2.0 * scale / float2(size)
        uv_dx[view, y, x] = (by_x.yz - at * (by_x.x + by_x.y + by_x.z)) * pixel.x
        uv_dy[view, y, x] = (at * (by_y.x + by_y.y + by_y.z) - by_y.yz) * pixel.y
