"""The fit of positions: where the vertices are -> where they are one step further, in one graph.

A pixel's colour depends on where three vertices are: by where its ray meets their triangle, and at
an outline by how much of the pixel that covers. Which triangles pixels show is found anew in each
step and has no derivative.

The gradient of one vertex is noise, as it rests on a few pixels. What is descended along is smooth:
see `smoothed`.

Source: Nicolet, Jacobson, Jakob, "Large steps in inverse rendering of geometry" (2021).
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import shaderad as sad
from kernels import Camera, project
from shaderad import float3, int3, render
from steps import Adam

ADAM = sad.optim.Adam(0.03, beta1=0.9, beta2=0.999)
SWEEPS = 32
"""Enough to reach as many vertices far; what they smooth need not be exact."""


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


def seen(
    corners: Any, positions: Any, colors: Any, views: Any, shape: Any, adjacency: Any = None
) -> tuple[Any, Any]:
    """Of each view the colours by plain light, on black, and the triangles it shows, or -1."""
    clip = project(views, positions, dim=(*views.shape, *positions.shape))
    fragments = render.rasterize(clip, corners, shape)
    hard = render.interpolate(colors, corners, fragments)
    return render.antialias(hard, fragments, clip, corners, adjacency), fragments.face


@sad.graph
def adjacent(corners: sad.Array[int3, "faces"]) -> sad.Array[int3]:
    """Sides along one edge, as `position_step` takes them."""
    return render.adjacency(corners)


@sad.graph
def watched(
    corners: sad.Array[int3, "faces"],
    positions: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    views: sad.Array[Camera, "views"],
    like: sad.Array[float3, "size", "size"],
) -> Any:
    """What `seen` gives, in pictures of the shape of `like`."""
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
    """The error of `positions`, its gradient, and positions and state one step further.

    Args:
        corners: Three vertices a triangle.
        adjacency: What `render.adjacency` returns for `corners`.
        neighbours: Of each vertex, see `relax`.
        positions: In the model's units, as `lr` is.
        colors: Known, and the same in `targets`.
        state: Of `ADAM`.
        views: The cameras of `targets`.
        targets: Colours without light, on black.
        stiffness: How far to smooth: roughly its root, in edges of the mesh.
        outlier: Errors of pixels above it weigh less. At first such a pixel shows another part of
            the mesh than it should; later it is at an outline, where colours differ most.
        lr: Of `ADAM`.
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

    The first is Geman and McClure's: a square where it is small, and never more than
    ``outlier ** 2`` a pixel.
    """
    found, face = seen(corners, positions, colors, views, targets.shape[1:], adjacency)
    miss = found - targets
    square = sad.dot(miss, miss)
    count = sad.sum(sad.where(face < 0, 0.0, 1.0))
    robust = square / (1.0 + square / (outlier * outlier))
    return sad.sum(robust) / count, sad.sum(square) / (3.0 * count)


def smoothed(rough: Any, neighbours: Any, stiffness: Any) -> Any:
    """``(1 + stiffness * L) ** -1`` of `rough`, roughly, with the mesh's Laplacian L.

    However few the sweeps, this is symmetric and positive: what was downhill is so, too.
    """
    count = rough.shape

    def sweep(_: Any, smooth: Any) -> Any:
        return relax(neighbours, rough, smooth, stiffness, dim=count)

    return sad.fori_loop(SWEEPS, sweep, 0.0 * rough)
