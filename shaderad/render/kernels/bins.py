"""Triangles in clip space -> their bounding boxes, and the cells of a picture that cover these.

Cells are squares of pixels, on `LEVEL_COUNT` levels: those of level 0 have `CELL` pixels along an
edge, those of the next level twice as many. A triangle belongs to the cells of the finest level
where its bounding box touches at most two by two cells. Each triangle is thus on the lists of at
most `PAIR_COUNT` cells, and the room that lists need follows from the number of triangles.
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float4, int2, int3, int4

CELL_BITS = 3
CELL = 1 << CELL_BITS
PAIR_COUNT = 4
"""Maximum cells per triangle."""
LEVEL_COUNT = 16
LARGEST = 2 * CELL << (LEVEL_COUNT - 1)
"""Maximum pixels along an edge of a picture: two by two cells of the last level."""


@sad.struct
class Box:
    """Pixels that a triangle may cover, from `low` to `high`, both included."""

    low: int2
    high: int2


@sad.function
def is_finite(v: float4) -> bool:
    return sad.all(sad.isfinite(v))


@sad.function
def may_show(a: float4, b: float4, c: float4) -> bool:
    """False for a triangle behind the eye, in front of the near plane or beyond the far plane."""
    finite = is_finite(a) and is_finite(b) and is_finite(c)
    before_eye = a.w > 0.0 or b.w > 0.0 or c.w > 0.0
    behind_near = a.z >= 0.0 or b.z >= 0.0 or c.z >= 0.0
    before_far = a.z <= a.w or b.z <= b.w or c.z <= c.w
    return finite and before_eye and behind_near and before_far


@sad.function
def reach(v: float4, size: float2, slack: float, box: Box) -> Box:
    """`box` extended by the pixels around a point; all pixels for a point behind the eye."""
    last = int2(size) - 1
    if v.w <= 0.0:
        return Box(int2(0), last)
    # Row 0 is at the top, where clip space has y = w.
    at = (float2(v.x, -v.y) / v.w * 0.5 + 0.5) * size - 0.5
    margin = 1.0 / 64.0 + slack / v.w * size.x
    low = int2(sad.clamp(sad.ceil(at - margin), float2(0.0), size))
    high = int2(sad.clamp(sad.floor(at + margin), float2(-1.0), size - 1.0))
    return Box(sad.min(box.low, low), sad.max(box.high, high))


@sad.function
def reach_of_edge(a: float4, b: float4, size: float2, box: Box) -> Box:
    """`box` extended by the first end of an edge and its crossing with the near plane, z = 0."""
    if a.z >= 0.0:
        box = reach(a, size, 0.0, box)
    if (a.z >= 0.0) != (b.z >= 0.0):
        crossing = a + (b - a) * (a.z / (a.z - b.z))
        rounding = 1e-6 * (sad.length(a) + sad.length(b))
        box = reach(crossing, size, rounding, box)
    return box


@sad.function
def box_of(a: float4, b: float4, c: float4, size: float2) -> Box:
    """The pixels of a picture that a triangle may cover; if none, `high` is below `low`."""
    box = Box(int2(size), int2(-1))
    # A loop gives one copy of the code: slow drivers took a minute to compile three.
    for _ in range(3):
        box = reach_of_edge(a, b, size, box)
        a, b, c = b, c, a
    return box


@sad.function
def is_before(a: float4, b: float4) -> bool:
    """Orders points: in front of the eye before behind, then upper before lower, then right first.

    Both triangles that share an edge evaluate its edge function from the first end to the second,
    so that both get the same float. If it is 0, the pixel belongs to the triangle below or to the
    right, which is the top-left rule.
    """
    if (a.w > 0.0) != (b.w > 0.0):
        return a.w > 0.0
    if a.w > 0.0 and a.y / a.w != b.y / b.w:
        return a.y / a.w > b.y / b.w
    if a.w > 0.0 and a.x / a.w != b.x / b.w:
        return a.x / a.w > b.x / b.w
    if a.w != b.w:
        return a.w > b.w
    return a.y > b.y if a.y != b.y else a.x > b.x


@sad.function
def in_order(a: float4, b: float4, c: float4) -> int3:
    """The order of the corners 0, 1 and 2, at a, b and c, by `is_before`."""
    ab, bc, ac = False, False, False
    first, second = a, b
    # A loop gives one copy of the code, as for the edges.
    for k in range(3):
        before = is_before(first, second)
        if k == 0:
            ab, first, second = before, b, c
        elif k == 1:
            bc, first, second = before, a, c
        else:
            ac = before
    if ab:
        if bc:
            return int3(0, 1, 2)
        return int3(0, 2, 1) if ac else int3(2, 0, 1)
    if ac:
        return int3(1, 0, 2)
    return int3(1, 2, 0) if bc else int3(2, 1, 0)


@sad.function
def cells_of(box: Box, size: int2) -> int4:
    """Up to four cells that cover `box`, on the finest level where four are enough; -1 for none."""
    shift, level_start = CELL_BITS, 0
    for _ in range(LEVEL_COUNT):
        spread = (box.high >> shift) - (box.low >> shift)
        if spread.x > 1 or spread.y > 1:
            level_start += (((size.x - 1) >> shift) + 1) * (((size.y - 1) >> shift) + 1)
            shift += 1
    low, high = box.low >> shift, box.high >> shift
    across = ((size.x - 1) >> shift) + 1
    corner = level_start + low.y * across + low.x
    wide, tall = high.x > low.x, high.y > low.y
    return int4(
        corner,
        corner + 1 if wide else -1,
        corner + across if tall else -1,
        corner + across + 1 if wide and tall else -1,
    )


@sad.kernel
def find_levels(
    view: sad.Index,
    row: sad.Index,
    column: sad.Index,
    lists: sad.In[int, 2],
    width: int,
    height: int,
    levels: sad.Out[int, 3],
):
    """For each cell of level 0, one bit per level that is set if the cell there has triangles."""
    size = int2(width, height)
    across, down = (size.x + CELL - 1) // CELL, (size.y + CELL - 1) // CELL
    y, x, start, levels_here = row, column, 0, 0
    for level in range(LEVEL_COUNT):
        if lists[view, start + y * across + x] != 0:
            levels_here |= 1 << level
        # No triangle needs a coarser level than one with two by two cells.
        if sad.max(across, down) <= 2:
            break
        start += across * down
        across, down, y, x = (across + 1) >> 1, (down + 1) >> 1, y >> 1, x >> 1
    levels[view, row, column] = levels_here
