"""The fit of positions: the positions of vertices -> those after one step, in one graph.

A pixel's colour depends on the positions of three vertices: by the point at which its ray meets
their triangle, and at an outline by the coverage of the pixel. The visible triangles are computed
anew in each step and have no derivative.

The gradient of a single vertex is noisy, because it depends on a few pixels. The direction of
descent is therefore smoothed: see `smoothed`.

Source: Nicolet, Jacobson, Jakob, "Large steps in inverse rendering of geometry" (2021).
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import shaderad as sad
from kernels import Camera, project
from shaderad import float3, int3, render
from steps import Adam

ADAM = sad.optim.Adam(0.03, beta1=0.9, beta2=0.999)
SWEEPS = 32
"""The number of sweeps, which is also their reach in vertices; smoothing need not be exact."""


@sad.kernel
def relax(
    i: sad.Index,
    neighbours: sad.In[int, 2],
    rough: sad.In[float3],
    smooth: sad.In[float3],
    stiffness: float,
    smoother: sad.Out[float3],
):
    """One Jacobi sweep for ``s[i] + stiffness * sum(s[i] - s[j] for j near i) = rough[i]``.

    All rows of `neighbours` have the length of the longest one; -1 fills them up.
    """
    total, weight = rough[i], 1.0
    for k in range(neighbours.shape[1]):
        j = neighbours[i, k]
        if j >= 0:
            total += stiffness * smooth[j]
            weight += stiffness
    smoother[i] = total / weight


def seen(
    corners: Any, positions: Any, colors: Any, views: Any, shape: Any, adjacency: Any = None
) -> tuple[Any, Any]:
    """For each view, the unlit colours on black, and the visible triangles, or -1."""
    clip = project(views, positions, dim=(*views.shape, *positions.shape))
    fragments = render.rasterize(clip, corners, shape)
    hard = render.interpolate(colors, corners, fragments)
    return render.antialias(hard, fragments, clip, corners, adjacency), fragments.face


@sad.graph
def adjacent(corners: sad.Array[int3, "faces"]) -> sad.Array[int3]:
    """The adjacency of a mesh, as an argument of `position_step`."""
    return render.adjacency(corners)


@sad.graph
def watched(
    corners: sad.Array[int3, "faces"],
    positions: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    views: sad.Array[Camera, "views"],
    like: sad.Array[float3, "size", "size"],
) -> Any:
    """The results of `seen` in pictures of the shape of `like`."""
    return seen(corners, positions, colors, views, like.shape)


@sad.graph
def position_step(
    corners: sad.Array[int3, "faces"],
    adjacency: sad.Array[int3, "faces"],
    neighbours: sad.Array[int, "vertices", "most"],
    positions: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    state: Adam,
    views: sad.Array[Camera, "views"],
    targets: sad.Array[float3, "views", "size", "size"],
    stiffness: float,
    outlier: float,
    lr: float,
) -> Any:
    """The error of `positions`, its gradient, and the positions and state after one step.

    Args:
        corners: Three vertices per triangle.
        adjacency: The result of `render.adjacency` for `corners`.
        neighbours: The neighbours of each vertex, see `relax`.
        positions: Positions in the model's units, as `lr` is.
        colors: The known colours, which are those of `targets`.
        state: The state of `ADAM`.
        views: The cameras of `targets`.
        targets: Unlit colours, on black.
        stiffness: The smoothing, which reaches about as many edges as its square root.
        outlier: Pixels with larger errors weigh less. At first such a pixel shows a wrong part of
            the mesh; later it is at an outline, where colours differ most.
        lr: The learning rate of `ADAM`.
    """

    def error(positions: Any) -> Any:
        return errors(corners, adjacency, positions, colors, views, targets, outlier)

    (_, square), pullback = sad.vjp(error, positions)
    (gradient,) = pullback((1.0, 0.0))
    downhill = smoothed(gradient, neighbours, stiffness)
    moved, state = ADAM.step(0.0 * positions, downhill, state, lr)
    positions = positions + smoothed(moved, neighbours, stiffness)
    return square, gradient, positions, state


def errors(
    corners: Any,
    adjacency: Any,
    positions: Any,
    colors: Any,
    views: Any,
    targets: Any,
    outlier: Any,
) -> tuple[Any, Any]:
    """The error to descend, and the mean square of a channel, for each pixel that shows the mesh.

    The first is that of Geman and McClure: about a square if it is small, and never more than
    ``outlier ** 2`` per pixel.
    """
    found, face = seen(corners, positions, colors, views, targets.shape[1:], adjacency)
    miss = found - targets
    square = sad.dot(miss, miss)
    count = sad.sum(sad.where(face < 0, 0.0, 1.0))
    robust = square / (1.0 + square / (outlier * outlier))
    return sad.sum(robust) / count, sad.sum(square) / (3.0 * count)


def smoothed(rough: Any, neighbours: Any, stiffness: Any) -> Any:
    """Approximately ``(1 + stiffness * L) ** -1`` of `rough`, with the mesh's Laplacian L.

    This is symmetric and positive for any number of sweeps, so a descent direction remains one.
    """
    count = rough.shape

    def sweep(_: Any, smooth: Any) -> Any:
        return relax(neighbours, rough, smooth, stiffness, dim=count)

    return sad.fori_loop(SWEEPS, sweep, 0.0 * rough)
