"""Rays through a hierarchy of boxes over 1,000 triangles, by the colours and places of corners.

The walk keeps a stack of 32 nodes in a local array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float3, int3

TRIANGLES = 1000
STACK = 32
MOST_NODES = 512


@sad.struct
class Node:
    low: float3
    high: float3
    first: int
    """A leaf's first triangle; else the first of two children."""
    count: int
    """Triangles of a leaf, or 0."""


@sad.struct
class Corner:
    place: float3
    color: float3


@sad.function
def crosses(node: Node, origin: float3, inverse: float3, nearest: float) -> bool:
    a = (node.low - origin) * inverse
    b = (node.high - origin) * inverse
    near = sad.min(a, b)
    far = sad.max(a, b)
    enter = sad.max(sad.max(near.x, near.y), sad.max(near.z, 0.0))
    leave = sad.min(sad.min(far.x, far.y), sad.min(far.z, nearest))
    return enter <= leave


@sad.function
def hit(a: float3, b: float3, c: float3, origin: float3, direction: float3) -> float3:
    """Distance and two weights; a negative distance where the ray misses."""
    ab = b - a
    ac = c - a
    normal = sad.cross(direction, ac)
    determinant = sad.dot(ab, normal)
    if abs(determinant) < 1e-9:
        return float3(-1.0, 0.0, 0.0)
    from_a = origin - a
    u = sad.dot(from_a, normal) / determinant
    across = sad.cross(from_a, ab)
    v = sad.dot(direction, across) / determinant
    if u < 0.0 or v < 0.0 or u + v > 1.0:
        return float3(-1.0, 0.0, 0.0)
    return float3(sad.dot(ac, across) / determinant, u, v)


@sad.kernel
def kernel(
    y: sad.Index,
    x: sad.Index,
    nodes: sad.In[Node],
    faces: sad.In[int3],
    corners: sad.In[Corner],
    size: int,
    out: sad.Out[float3, 2],
):
    origin = float3(0.0, 0.0, -3.0)
    across = (float(x) + 0.5) / float(size) * 2.0 - 1.0
    down = (float(y) + 0.5) / float(size) * 2.0 - 1.0
    direction = sad.normalize(float3(across, -down, 2.0))
    inverse = 1.0 / direction
    stack = sad.LocalArray[int, STACK]()
    top = 1
    nearest = 1e9
    found = -1
    while sad.limit(top > 0, MOST_NODES):
        top -= 1
        at = stack[top]
        node = sad.detach(nodes[at])
        if not crosses(node, origin, inverse, nearest):
            continue
        if node.count == 0:
            stack[top] = node.first
            stack[top + 1] = node.first + 1
            top += 2
            continue
        for k in range(node.first, node.first + node.count):
            face = faces[k]
            t = hit(
                sad.detach(corners[face.x].place),
                sad.detach(corners[face.y].place),
                sad.detach(corners[face.z].place),
                origin,
                direction,
            ).x
            if 0.0 < t < nearest:
                nearest = t
                found = k
    color = float3(0.1)
    if found >= 0:
        face = faces[found]
        a = corners[face.x]
        b = corners[face.y]
        c = corners[face.z]
        weights = hit(a.place, b.place, c.place, origin, direction)
        color = a.color * (1.0 - weights.y - weights.z) + b.color * weights.y + c.color * weights.z
        color *= sad.exp(-0.2 * weights.x)
    out[y, x] = color


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` x `size` rays into a cloud of triangles."""
    rng = np.random.default_rng(6)
    centers = rng.uniform(-1.0, 1.0, (TRIANGLES, 1, 3))
    places = (centers + rng.normal(0.0, 0.08, (TRIANGLES, 3, 3))).astype(np.float32)
    order, nodes = _hierarchy(places)
    corners = {
        "place": places.reshape(-1, 3),
        "color": rng.uniform(0.0, 1.0, (3 * TRIANGLES, 3)).astype(np.float32),
    }
    faces = np.arange(3 * TRIANGLES, dtype=np.int32).reshape(-1, 3)[order]
    given = (
        sad.array(nodes, dtype=Node),
        sad.array(faces, dtype=int3),
        sad.array(corners, dtype=Corner),
        size,
    )
    return given, {"dim": (size, size)}


def _hierarchy(places: Any) -> tuple[Any, dict[str, Any]]:
    """The order of triangles, and nodes that split at the median of the longest axis."""
    centers = places.mean(1)
    order = np.arange(len(places))
    rows: list[Any] = [None]
    todo = [(0, 0, len(places))]
    while todo:
        at, first, end = todo.pop()
        inside = places[order[first:end]].reshape(-1, 3)
        low, high = inside.min(0), inside.max(0)
        if end - first <= 4:
            rows[at] = (low, high, first, end - first)
            continue
        axis = int(np.argmax(high - low))
        part = order[first:end]
        order[first:end] = part[np.argsort(centers[part, axis])]
        middle = (first + end) // 2
        rows[at] = (low, high, len(rows), 0)
        todo += [(len(rows), first, middle), (len(rows) + 1, middle, end)]
        rows += [None, None]
    names = ("low", "high", "first", "count")
    columns = {n: np.array([row[k] for row in rows]) for k, n in enumerate(names)}
    return order, {n: c.astype(np.int32 if c.ndim == 1 else np.float32) for n, c in columns.items()}
