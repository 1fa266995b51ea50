"""Neighbouring pixels that show different triangles -> the silhouettes between them."""

from __future__ import annotations

import math

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3
from shaderad.render.kernels.fragments import center_of, edge, seen_from

STEP_LIMIT = 16
"""Maximum triangles that a line between two pixels crosses on its way to a silhouette."""


@sad.kernel
def find_mates(
    k: sad.Index,
    low: sad.In[int],
    high: sad.In[int],
    order: sad.In[int],
    mate: sad.Out[int],
):
    """The side that shares an edge with another side; -1 unless exactly two do.

    `low` and `high` are the ends of sides; in `order`, sides with the same edge are neighbours.
    """
    n, own = len(order), order[k]
    first = k
    while first > 0 and k - first < 2 and is_along(order[first - 1], own, low, high):
        first -= 1
    last = k
    while last + 1 < n and last - k < 2 and is_along(order[last + 1], own, low, high):
        last += 1
    mate[sad.unique(own)] = order[first + last - k] if last - first == 1 else -1


@sad.function
def is_along(side: int, other: int, low: sad.In[int], high: sad.In[int]) -> bool:
    return low[side] == low[other] and high[side] == high[other]


@sad.struct
class CenterLine:
    """The line from the centre of a pixel to the centre of its neighbour."""

    p: float2
    q: float2

    def crossing(self, a: float4, b: float4) -> float:
        """The parameter at which the line crosses an edge: 0 at `p`, 1 at `q`."""
        at_p = edge(seen_from(self.p, a), seen_from(self.p, b))
        at_q = edge(seen_from(self.q, a), seen_from(self.q, b))
        return at_p / (at_p - at_q)

    def leaves(self, side: float, a: float4, b: float4) -> float:
        """The crossing if the line goes from this `side` of the edge to the other, else inf."""
        at_p = side * edge(seen_from(self.p, a), seen_from(self.p, b))
        at_q = side * edge(seen_from(self.q, a), seen_from(self.q, b))
        return at_p / (at_p - at_q) if at_p > 0.0 and at_q <= 0.0 else math.inf

    def is_crossed(self, a: float4, b: float4, pixel: float2) -> bool:
        """True if an edge runs across the line rather than along it.

        Steep edges count for lines along rows, flat edges for lines along columns. If an edge
        counted for both, the area that it covers as it moves would count twice.
        """
        slope = pixel * sad.abs(float2(a.y * b.w - a.w * b.y, a.w * b.x - a.x * b.w))
        return slope.x >= slope.y if self.p.y == self.q.y else slope.y > slope.x


@sad.function
def facing(a: float4, b: float4, c: float4) -> float:
    """Positive if the eye sees one side of a triangle, negative if it sees the other."""
    return sad.dot(a.xyw, sad.cross(b.xyw, c.xyw))


@sad.function
def outline_between(
    view: int,
    face: int,
    line: CenterLine,
    pixel: float2,
    clip: sad.In[float4, 2],
    triangles: sad.In[int3],
    mates: sad.In[int3],
) -> int2:
    """The silhouette that a line crosses, from the triangle at its start; (-1, -1) for none.

    The walk follows the line from triangle to triangle over shared edges. It ends at an edge whose
    other triangle faces the other way or does not exist.
    """
    t, entry = face, -1
    for _ in range(STEP_LIMIT):
        i = triangles[t]
        a, b, c = clip[view, i.x], clip[view, i.y], clip[view, i.z]
        side = facing(a, b, c)
        ends = float3(
            line.leaves(side, b, c) if entry != 0 else math.inf,
            line.leaves(side, c, a) if entry != 1 else math.inf,
            line.leaves(side, a, b) if entry != 2 else math.inf,
        )
        end = sad.min(ends.x, sad.min(ends.y, ends.z))
        if end == math.inf:
            return int2(-1)
        corner = 0 if ends.x == end else (1 if ends.y == end else 2)
        for _ in range(corner):
            i, a, b, c = i.yzx, b, c, a
        # The line leaves the triangle over the edge from b to c.
        mate = mates[t][corner]
        is_outline = mate < 0
        if mate >= 0:
            t = int(sad.uint(mate) // sad.uint(3))
            entry = mate - 3 * t
            is_outline = side * facing(clip[view, triangles[t][entry]], b, c) > 0.0
        if is_outline:
            return i.yz if line.is_crossed(b, c, pixel) else int2(-1)
    return int2(-1)


@sad.kernel
def find_outlines(
    view: sad.Index,
    y: sad.Index,
    x: sad.Index,
    clip: sad.In[float4, 2],
    triangles: sad.In[int3],
    mates: sad.In[int3],
    face: sad.In[int, 3],
    depth: sad.In[float, 3],
    down: int,
    outline: sad.Out[int2, 3],
):
    """The silhouette between a pixel and its neighbour to the right, or below if `down` is 1."""
    outline[view, y, x] = int2(-1)
    next_y, next_x = y + down, x + 1 - down
    if next_y < face.shape[1] and next_x < face.shape[2]:
        here, there = face[view, y, x], face[view, next_y, next_x]
        if here != there:
            size = int2(face.shape[2], face.shape[1])
            p, q = center_of(y, x, size), center_of(next_y, next_x, size)
            nearer, line = here, CenterLine(p, q)
            if here < 0 or (there >= 0 and depth[view, next_y, next_x] < depth[view, y, x]):
                nearer, line = there, CenterLine(q, p)
            pixel = 2.0 / float2(size)
            outline[view, y, x] = outline_between(view, nearer, line, pixel, clip, triangles, mates)


@sad.kernel
def find_shares(
    view: sad.Index,
    y: sad.Index,
    x: sad.Index,
    clip: sad.In[float4, 2],
    outline: sad.In[int2, 3],
    down: int,
    share: sad.Out[float, 3],
):
    """The share of the next pixel that this one covers; negative for the reverse."""
    ends = outline[view, y, x]
    if ends.x >= 0:
        size = int2(outline.shape[2], outline.shape[1])
        line = CenterLine(center_of(y, x, size), center_of(y + down, x + 1 - down, size))
        crossing = line.crossing(clip[view, ends.x], clip[view, ends.y])
        share[view, y, x] = sad.clamp(crossing, 0.0, 1.0) - 0.5
