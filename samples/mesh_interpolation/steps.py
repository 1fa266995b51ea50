"""The kernels of a fit as graphs: the picture of a camera, and a step of gradient descent.

`shaderad build` compiles this file for the web page. Each graph is one submission, and the state
between steps stays on the device.
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import shaderad as sad
from kernels import NO_FACE, Camera, Hit, Mesh, Surface, depths, faces, heat, locate, shade
from shaderad import float3, int3

ADAM = sad.optim.Adam(0.02, beta1=0.9, beta2=0.99)


class Adam(TypedDict):
    """The state of `ADAM` between steps."""

    mean: sad.Array[float3, "vertices"]
    square: sad.Array[float3, "vertices"]
    mean_weight: float
    square_weight: float


@sad.graph
def hits_of(
    corners: sad.Array[int3, "faces"],
    positions: sad.Array[float3, "vertices"],
    camera: sad.Array[Camera, ()],
    like: sad.Array[float3, "size", "size"],
) -> sad.Array[Hit]:
    """The points at which the rays of a picture of the shape of `like` meet the mesh."""
    return rasterised(Surface(corners, positions), camera, like.shape)


@sad.graph
def picture(
    corners: sad.Array[int3, "faces"],
    positions: sad.Array[float3, "vertices"],
    normals: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    camera: sad.Array[Camera, ()],
    like: sad.Array[float3, "size", "size"],
) -> sad.Array[float3]:
    """The picture of a camera, in the shape of `like`."""
    hits = rasterised(Surface(corners, positions), camera, like.shape)
    return shade(Mesh(corners, normals, colors), camera, hits, dim=like.shape)


@sad.graph
def difference(
    found: sad.Array[float3, "size", "size"], wanted: sad.Array[float3, "size", "size"]
) -> sad.Array[float3]:
    """The absolute difference of two pictures in each channel."""
    return abs(found - wanted)


@sad.graph
def heated(gradient: sad.Array[float3, "vertices"]) -> sad.Array[float3]:
    """A colour for each vertex, by the length of its gradient relative to the longest."""
    longest = sad.max(sad.length(gradient))
    return heat(gradient, longest, dim=gradient.shape)


def rasterised(surface: Surface, camera: Any, shape: Any) -> Any:
    """The first point at which each pixel's ray meets the mesh."""
    count = surface.corners.shape[0]
    depth = depths(surface, camera, dim=count, shapes={"depth": shape})
    shown = faces(surface, camera, depth, dim=count, shapes={"shown": shape})
    return locate(surface, camera, shown, dim=shape)


@sad.graph
def color_step(
    corners: sad.Array[int3, "faces"],
    normals: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    state: Adam,
    camera: sad.Array[Camera, ()],
    hits: sad.Array[Hit, "size", "size"],
    target: sad.Array[float3, "size", "size"],
    lr: float,
) -> Any:
    """The error of `colors`, its gradient, and the colours and state after one step."""

    def error(colors: Any) -> Any:
        return mean_square(Mesh(corners, normals, colors), camera, hits, target)

    return descended(error, colors, state, lr)


@sad.graph
def normal_step(
    corners: sad.Array[int3, "faces"],
    normals: sad.Array[float3, "vertices"],
    colors: sad.Array[float3, "vertices"],
    state: Adam,
    camera: sad.Array[Camera, ()],
    hits: sad.Array[Hit, "size", "size"],
    target: sad.Array[float3, "size", "size"],
    lr: float,
) -> Any:
    """The same for `normals`."""

    def error(normals: Any) -> Any:
        return mean_square(Mesh(corners, normals, colors), camera, hits, target)

    return descended(error, normals, state, lr)


def descended(error: Callable[[Any], Any], fitted: Any, state: Any, lr: Any) -> Any:
    """The error, its gradient, and the fitted attribute and state after one step."""
    value, gradient = sad.value_and_grad(error)(fitted)
    return value, gradient, *ADAM.step(fitted, gradient, state, lr)


def mean_square(mesh: Mesh, camera: Any, hits: Any, target: Any) -> Any:
    """The mean of squared differences, over the channels of all pixels that show the mesh."""
    miss = shade(mesh, camera, hits, dim=target.shape) - target
    shown = sad.sum(sad.where(hits.face == NO_FACE, 0.0, 1.0))
    return sad.sum(sad.dot(miss, miss)) / (3.0 * shown)
