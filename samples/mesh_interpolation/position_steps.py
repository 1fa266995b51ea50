"""The fit of positions: where the vertices are -> where they are one step further, in one graph.

A pixel's colour depends on where its ray meets the triangle that it shows, and so on where three
vertices are. Which triangle it shows is found anew in each step and has no derivative; pixels near
an outline, where that matters, are left out.

The gradient of one vertex is noise, as it rests on a few pixels. What is descended along is smooth:
see `smoothed`.

Source: Nicolet, Jacobson, Jakob, "Large steps in inverse rendering of geometry" (2021).
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import shaderad as sad
from kernels import NO_FACE, Camera, Hit, Mesh, Surface, depths, faces, locate
from shaderad import float3, int3
from steps import Adam, rasterised

ADAM = sad.optim.Adam(0.03, beta1=0.9, beta2=0.999)
JUMP = 0.1
"""Surfaces this far behind each other are not one piece; in units of the model."""
ANY_JUMP = 1e9
OUTLIER = 0.15
"""Errors above it weigh less: the pixel probably shows another part of the mesh than it should."""
SWEEPS = 32
"""Enough to reach as many vertices far; what they smooth need not be exact."""


@sad.kernel
def paint(y: sad.Index, x: sad.Index, mesh: Mesh, hits: sad.In[Hit, 2], color: sad.Out[float3, 2]):
    """What each pixel would show by plain light: black where there is no mesh."""
    hit = hits[y, x]
    if hit.face != NO_FACE:
        color[y, x] = mesh.color(hit)


@sad.kernel
def inside(
    y: sad.Index, x: sad.Index, depth: sad.In[float, 2], jump: float, weight: sad.Out[float, 2]
):
    """1 where a pixel and all around it show one piece of surface, 0 at outlines and off the mesh.

    One piece: its depths differ by less than `jump`.
    """
    size = depth.shape[0]
    if 0 < y < size - 1 and 0 < x < size - 1:
        nearest, farthest = depth[y, x], depth[y, x]
        for v in sad.static_range(-1, 2):
            for u in sad.static_range(-1, 2):
                nearest = sad.min(nearest, depth[y + v, x + u])
                farthest = sad.max(farthest, depth[y + v, x + u])
        if farthest < nearest + jump:
            weight[y, x] = 1.0


@sad.kernel
def relax(
    i: sad.Index,
    neighbours: sad.In[int, 2],
    rough: sad.In[float3],
    smooth: sad.In[float3],
    stiffness: float,
    smoother: sad.Out[float3],
):
    """A sweep of Jacobi's towards ``s[i] + stiffness * sum(s[i] - s[j] for j near i) = rough[i]``.

    Rows of `neighbours` are as long as the longest; -1 stands where nobody is.
    """
    total, weight = rough[i], 1.0
    for k in range(neighbours.shape[1]):
        j = neighbours[i, k]
        if j >= 0:
            total += stiffness * smooth[j]
            weight += stiffness
    smoother[i] = total / weight


@sad.graph
def watched(
    corners: sad.Array[int3, "faces"],
    positions: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    views: sad.Array[Camera, "views"],
    like: sad.Array[float3, "size", "size"],
) -> Any:
    """Of each view the colours, what is inside of the outline, and the triangles it shows."""
    surface, shape = Surface(corners, positions), like.shape

    def seen(_: Any, camera: Any) -> Any:
        depth = depths(surface, camera, dim=corners.shape, shapes={"depth": shape})
        hits = rasterised(surface, camera, shape)
        color = paint(Mesh(corners, colors, colors), hits, dim=shape)
        return 0.0, (color, inside(depth, ANY_JUMP, dim=shape), hits.face)

    return sad.loop(seen, 0.0, views)[1]


@sad.graph
def position_step(
    corners: sad.Array[int3, "faces"],
    neighbours: sad.Array[int, "vertices", "most"],
    positions: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    state: Adam,
    views: sad.Array[Camera, "views"],
    targets: sad.Array[float3, "views", "size", "size"],
    outlined: sad.Array[float, "views", "size", "size"],
    stiffness: float,
    lr: float,
) -> Any:
    """The error of `positions`, its gradient, and positions and state one step further.

    Args:
        corners: Three vertices a triangle.
        neighbours: Of each vertex, see `relax`.
        positions: In the model's units, as `lr` is.
        colors: Known, and the same in `targets`.
        state: Of `ADAM`.
        views: The cameras of `targets`.
        targets: Colours without light.
        outlined: 1 inside of a target's outline, else 0.
        stiffness: How far to smooth: roughly its root, in edges of the mesh.
        lr: Of `ADAM`.
    """
    mesh, zero = Mesh(corners, colors, colors), 0.0 * positions

    def add_view(sums: Any, view: Any) -> Any:
        def error(positions: Any) -> Any:
            return view_error(mesh, positions, *view)

        found, pullback = sad.vjp(error, positions)
        (gradient,) = pullback((1.0, 0.0, 0.0))
        return tuple(a + b for a, b in zip(sums, (gradient, *found), strict=True)), 0.0

    none = sad.sum(zero.x)
    xs = (views, targets, outlined)
    (gradient, _, square, count), _ = sad.loop(add_view, (zero, none, none, none), xs)
    # Where pictures are too small to show more than outlines, nothing moves.
    downhill = smoothed(gradient / sad.max(count, 1.0), neighbours, stiffness)
    moved, state = ADAM.step(zero, downhill, state, lr)
    positions = positions + smoothed(moved, neighbours, stiffness)
    return square / (3.0 * count), gradient, positions, state


def view_error(mesh: Mesh, positions: Any, camera: Any, target: Any, outlined: Any) -> Any:
    """Of one view the error to descend, the sum of squares, and how many pixels count.

    The first is Geman and McClure's: a square where it is small, and never more than
    ``OUTLIER ** 2`` a pixel.
    """
    shape, count = target.shape, mesh.corners.shape
    still = Surface(mesh.corners, sad.detach(positions))
    depth = depths(still, camera, dim=count, shapes={"depth": shape})
    shown = faces(still, camera, depth, dim=count, shapes={"shown": shape})
    hits = locate(Surface(mesh.corners, positions), camera, shown, dim=shape)
    miss = paint(mesh, hits, dim=shape) - target
    square, weight = sad.dot(miss, miss), outlined * inside(depth, JUMP, dim=shape)
    robust = square / (1.0 + square / OUTLIER**2)
    return sad.sum(weight * robust), sad.sum(weight * square), sad.sum(weight)


def smoothed(rough: Any, neighbours: Any, stiffness: Any) -> Any:
    """``(1 + stiffness * L) ** -1`` of `rough`, roughly, with the mesh's Laplacian L.

    However few the sweeps, this is symmetric and positive: what was downhill is so, too.
    """
    count = rough.shape

    def sweep(_: Any, smooth: Any) -> Any:
        return relax(neighbours, rough, smooth, stiffness, dim=count)

    return sad.fori_loop(SWEEPS, sweep, 0.0 * rough)
