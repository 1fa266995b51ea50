"""A mesh and cameras -> shaded views and masks of it, and a step of the fit of its vertices.

The gradient of single vertices is noisy, which would fold a mesh. The fit therefore descends along
a smoothed gradient, which moves large parts first and then ever smaller ones.

Source: Nicolet, Jacobson, Jakob, "Large steps in inverse rendering of geometry" (2021).
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any, TypedDict

import shaderad as sad
from shaderad import float3, float4, float4x4, int3, render

STIFFNESS, SOFTENED = 50.0, 0.98
"""The smoothing of moves, which reaches its square root in edges, and its factor per step."""
RATE, SLOWED = 0.03, 0.988
"""The length of a vertex's first move, and its factor per step."""
ADAM = sad.optim.Adam(RATE, beta2=0.99)
BENDING = 20.0
"""The weight of the mean square of the Laplacian, relative to that of a picture."""
SWEEPS = 24
"""The number of sweeps, which is also their reach in vertices; smoothing need not be exact."""
PAPER = (0.93, 0.92, 0.89)


class State(TypedDict):
    """The state of `ADAM` between steps."""

    mean: sad.Array[float3, "vertices"]
    square: sad.Array[float3, "vertices"]
    mean_weight: float
    square_weight: float


@sad.function
def lamp(normal: float3, direction: float3, color: float3) -> float3:
    """The light of a large lamp, which reaches all surfaces except those that face away."""
    return color * (0.5 + 0.5 * sad.dot(normal, sad.normalize(direction))) ** 2


@sad.kernel
def shade(
    view: sad.Index,
    y: sad.Index,
    x: sad.Index,
    face: sad.In[int, 3],
    normal: sad.In[float3, 3],
    color: sad.Out[float4, 3],
):
    """A mesh of plaster in the light of three lamps, and its mask as the fourth channel."""
    if face[view, y, x] >= 0:
        n = sad.normalize(normal[view, y, x])
        light = lamp(n, float3(0.6, 0.7, -0.6), float3(0.85, 0.68, 0.45))
        light += lamp(n, float3(-0.9, 0.2, -0.2), float3(0.12, 0.28, 0.55))
        light += lamp(n, float3(0.3, -0.2, 1.0), float3(0.35, 0.12, 0.2))
        color[view, y, x] = float4(light.x, light.y, light.z, 1.0)


@sad.function
def on_paper(pixel: float4) -> float3:
    """A colour over `PAPER`, by its mask."""
    return pixel.xyz + (1.0 - pixel.w) * float3(PAPER[0], PAPER[1], PAPER[2])


def pictures(positions: Any, triangles: Any, cameras: Any, like: Any, adjacency: Any = None) -> Any:
    """The pictures of the cameras, in the shape of `like`."""
    clip = render.transform(cameras, positions)
    fragments = render.rasterize(clip, triangles, like.shape[1:])
    normals = render.normals(positions, triangles)
    seen = render.interpolate(normals, triangles, fragments)
    color = shade(fragments.face, seen, dim=like.shape)
    return render.antialias(color, fragments, clip, triangles, adjacency)


def smoothed(rough: Any, triangles: Any, stiffness: Any) -> Any:
    """About ``(1 - stiffness L) ** -1`` of `rough`, by Jacobi sweeps; L is the Laplacian."""

    def sweep(_: Any, smooth: Any) -> Any:
        near = smooth + render.laplacian(smooth, triangles)
        return (rough + stiffness * near) / (1.0 + stiffness)

    return sad.fori_loop(SWEEPS, sweep, 0.0 * rough)


@sad.graph
def step(
    triangles: sad.Array[int3, "triangles"],
    adjacency: sad.Array[int3, "triangles"],
    cameras: sad.Array[float4x4, "views"],
    targets: sad.Array[float4, "views", "size", "size"],
    positions: sad.Array[float3, "vertices"],
    state: State,
    stiffness: float,
    rate: float,
) -> Any:
    """The error of `positions`, and the new values of all inputs that change.

    The error is the mean square of a pixel, both shaded and as a mask; the descent also reduces the
    bending of the mesh.
    """

    def cost(positions: Any) -> Any:
        miss = pictures(positions, triangles, cameras, targets, adjacency) - targets
        bend = render.laplacian(positions, triangles)
        error = sad.mean(sad.dot(miss, miss))
        return error + BENDING * sad.mean(sad.dot(bend, bend)), error

    (_, error), pullback = sad.vjp(cost, positions)
    (gradient,) = pullback((1.0, 0.0))
    downhill = smoothed(gradient, triangles, stiffness)
    moved, state = ADAM.step(0.0 * positions, downhill, state, rate)
    positions = positions + smoothed(moved, triangles, stiffness)
    return error, positions, state, stiffness * SOFTENED, rate * SLOWED


@sad.graph
def seen(
    triangles: sad.Array[int3, "triangles"],
    cameras: sad.Array[float4x4, "views"],
    targets: sad.Array[float4, "views", "size", "size"],
    positions: sad.Array[float3, "vertices"],
) -> sad.Array[float4]:
    """Shaded views and masks of `positions`, in the shape of `targets`."""
    return pictures(positions, triangles, cameras, targets)


@sad.graph
def film(
    triangles: sad.Array[int3, "triangles"],
    cameras: sad.Array[float4x4, "views"],
    targets: sad.Array[float4, "views", "size", "size"],
    positions: sad.Array[float3, "vertices"],
) -> sad.Array[float3]:
    """The shaded views on paper, for display."""
    return sad.map(on_paper, pictures(positions, triangles, cameras, targets))


@sad.graph
def wanted(targets: sad.Array[float4, "views", "size", "size"]) -> sad.Array[float3]:
    """The targets on paper, for display."""
    return sad.map(on_paper, targets)
