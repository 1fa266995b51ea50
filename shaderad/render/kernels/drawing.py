"""Triangles in clip space -> the nearest small triangle at each pixel, and lists of large ones.

One thread per triangle. It draws a small triangle by itself, into an array that keeps the nearest
one at each pixel. A large triangle would keep the other threads waiting, so it is put on the lists
of its cells, where the pixels find it (`fragments.py`).
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float4, int2, int3, uint2
from shaderad.language.own_arrays import Greatest, Lists
from shaderad.render.kernels.bins import PAIR_COUNT, Box, box_of, cells_of, in_order, may_show
from shaderad.render.kernels.fragments import center_of, depths_at

SMALL = 64
"""Maximum pixels in the bounding box of a small triangle."""


@sad.function
def chosen(k: int, a: float4, b: float4, c: float4) -> float4:
    """Corner k of a triangle."""
    return a if k == 0 else b if k == 1 else c


@sad.function
def is_small(extent: int2) -> bool:
    # The product of two large extents would overflow.
    return extent.x <= SMALL and extent.y <= SMALL and extent.x * extent.y <= SMALL


@sad.function
def fill(
    view: int,
    t: int,
    a: float4,
    b: float4,
    c: float4,
    box: Box,
    size: int2,
    nearest: Greatest[uint2, 3],
):
    """Draws a triangle, whose corners are in order, into the pixels of its box, by four."""
    x, y = box.low.x, box.low.y
    extent = box.high - box.low + 1
    for _ in range(extent.x * ((extent.y + 3) >> 2)):
        height = float4(0.0)
        for k in sad.static_range(4):
            height[k] = center_of(y + k, x, size).y
        depth = depths_at(center_of(y, x, size).x, height, a, b, c)
        for k in sad.static_range(4):
            if depth[k] <= 1.0 and y + k < size.y:
                # -0.0 is as near as 0.0.
                bits = sad.bitcast(sad.uint, sad.abs(depth[k]))
                pair = uint2(~sad.uint(t), ~bits)
                nearest[view, y + k, x] = sad.max(nearest[view, y + k, x], pair)
        y += 4
        if y > box.high.y:
            y = box.low.y
            x += 1


@sad.kernel
def draw(
    view: sad.Index,
    t: sad.Index,
    clip: sad.In[float4, 2],
    triangles: sad.In[int3],
    width: int,
    height: int,
    cell_count: int,
    nearest: Greatest[uint2, 3],
    lists: Lists[int, 2],
    ordered: sad.Out[int3, 2],
):
    """Draws a small triangle into `nearest`, or puts a large one on `lists`.

    A pair of `nearest` has the complements of the triangle and of the bits of its depth. So the
    greatest pair is the nearest triangle, the first one at equal depths, and 0 stands for none.
    `lists` has the cells of a view, then `PAIR_COUNT` items per triangle. `ordered` has the
    vertices of each triangle in the order of `is_before`.
    """
    size = int2(width, height)
    i = triangles[t]
    a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
    order = in_order(a, b, c)
    ordered[view, t] = int3(i[order.x], i[order.y], i[order.z])
    first, last = sad.min(i.x, sad.min(i.y, i.z)), sad.max(i.x, sad.max(i.y, i.z))
    if first >= 0 and last < clip.shape[1] and may_show(a, b, c):
        box = box_of(a, b, c, float2(size))
        extent = box.high - box.low + 1
        if extent.x > 0 and extent.y > 0:
            if is_small(extent):
                p, q = chosen(order.x, a, b, c), chosen(order.y, a, b, c)
                fill(view, t, p, q, chosen(order.z, a, b, c), box, size, nearest)
            else:
                cells = cells_of(box, size)
                for k in sad.static_range(PAIR_COUNT):
                    if cells[k] >= 0:
                        lists[view, cells[k]] += cell_count + PAIR_COUNT * t + k
