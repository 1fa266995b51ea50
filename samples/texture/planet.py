"""A planet seen by random cameras, and a step of two fits of its texture: with mips and without.

The texture is a cube, and the mesh interpolates the direction from the middle, so that there is
neither a seam nor a pole. `shaderad build` compiles this file for the web page.

This repeats the experiment with the Earth in Laine et al., "Modular primitives for high-performance
differentiable rendering", 2020, with a planet of our own.
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any, TypedDict

import shaderad as sad
from shaderad import float3, float4x4, int3, render, uint2

VIEWS, PIXELS = 4, 96
"""Pictures per step, and pixels along an edge of each."""
OVERSAMPLED = 4
"""Samples along an edge of each pixel of the targets, which are means over them."""
FIELD_OF_VIEW, NEAREST, FARTHEST = 0.7, 2.0, 5.0
"""An angle in radians, and distances from the middle of the planet in radii."""
SHOWN_FROM, ENLARGED = (-1.6, -0.9, 1.4), 3
"""The camera of close-ups, and their pixels per texel along an edge of a face."""
RATE, DECAY = 0.04, 0.985
"""The learning rate of the first step, and its factor per step."""
ADAM = sad.optim.Adam(RATE, beta2=0.99)


class Fits(TypedDict):
    """The texels that are fitted by lookups with mips, and by lookups without."""

    mips: sad.Array[float3, 6, "n", "n"]
    plain: sad.Array[float3, 6, "n", "n"]


class State(TypedDict):
    """The state of `ADAM` between steps."""

    mean: Fits
    square: Fits
    mean_weight: float
    square_weight: float


def seen_from(eye: Any) -> Any:
    """The matrix of a camera that looks at the middle of the planet."""
    lens = render.perspective(FIELD_OF_VIEW, 1.0, 0.1, 2 * FARTHEST)
    return lens @ render.look_at(eye, sad.zeros((), float3))


def anywhere(key: Any) -> Any:
    """The matrices of cameras at random places around the planet."""
    keys = sad.random.split(key)
    x, y, z = sad.random.normal(keys[0], (3, VIEWS))
    distance = sad.random.uniform(keys[1], VIEWS, low=NEAREST, high=FARTHEST)
    return seen_from(distance * sad.normalize(float3(x, y, z)))


class View:
    """The part of the planet at each pixel of square pictures, without its colours."""

    def __init__(self, camera: Any, positions: Any, triangles: Any, pixels: Any) -> None:
        clip = render.transform(camera, positions)
        self.fragments = render.rasterize(clip, triangles, (pixels, pixels))
        self.direction, self.footprint = render.interpolate(
            positions, triangles, self.fragments, footprint=True
        )

    def colored(self, texels: Any, *, mips: bool) -> Any:
        """The pictures."""
        color = render.texture(
            render.Texture(texels, mips=mips, cube=True),
            self.direction,
            footprint=self.footprint,
            filter="trilinear",
        )
        return sad.where(self.fragments.face >= 0, color, sad.zeros(color.shape, float3))


def photographed(goal: Any, camera: Any, positions: Any, triangles: Any) -> Any:
    """Antialiased pictures of the true planet, as means over finer ones."""
    view = View(camera, positions, triangles, OVERSAMPLED * PIXELS)
    edges = PIXELS, OVERSAMPLED, PIXELS, OVERSAMPLED
    parts = sad.reshape(view.colored(goal, mips=True), (*camera.shape, *edges))
    return sad.mean(sad.mean(parts, axis=-1), axis=-2)


def missed(a: Any, b: Any) -> Any:
    """The mean squared difference of colours, over channels as well."""
    return sad.mean(sad.dot(a - b, a - b)) / 3.0


@sad.graph
def step(
    goal: sad.Array[float3, 6, "n", "n"],
    positions: sad.Array[float3, "v"],
    triangles: sad.Array[int3, "t"],
    fits: Fits,
    state: State,
    key: sad.Array[uint2, ()],
    rate: float,
) -> Any:
    """The error of the texels by lookups with mips, and the arguments of the next step."""
    keys = sad.random.split(key)
    camera = anywhere(keys[0])
    pictures = photographed(goal, camera, positions, triangles)
    view = View(camera, positions, triangles, PIXELS)

    def error(fits: Any) -> Any:
        with_mips, without = (view.colored(fits[k], mips=k == "mips") for k in ("mips", "plain"))
        return missed(with_mips, pictures) + missed(without, pictures)

    value, _ = errors(goal, fits)
    fits, state = ADAM.step(fits, sad.grad(error)(fits), state, rate)
    return value, fits, state, keys[1], DECAY * rate


@sad.graph
def errors(goal: sad.Array[float3, 6, "n", "n"], fits: Fits) -> Any:
    """The error of the texels by lookups with mips, and of those by lookups without."""
    return missed(fits["mips"], goal), missed(fits["plain"], goal)


@sad.graph
def photo(
    goal: sad.Array[float3, 6, "n", "n"],
    positions: sad.Array[float3, "v"],
    triangles: sad.Array[int3, "t"],
    camera: float4x4,
) -> sad.Array[float3]:
    """A picture as the fits see it."""
    return photographed(goal, camera, positions, triangles)


def close_up(texels: Any, positions: Any, triangles: Any) -> Any:
    """A picture in which texels are larger than pixels."""
    camera = seen_from(float3(*(sad.full((), part) for part in SHOWN_FROM)))
    view = View(camera, positions, triangles, ENLARGED * texels.shape[1])
    return view.colored(texels, mips=True)


@sad.graph
def with_mips(
    fits: Fits, positions: sad.Array[float3, "v"], triangles: sad.Array[int3, "t"]
) -> sad.Array[float3]:
    """A close-up of the texels that are fitted with mips."""
    return close_up(fits["mips"], positions, triangles)


@sad.graph
def without_mips(
    fits: Fits, positions: sad.Array[float3, "v"], triangles: sad.Array[int3, "t"]
) -> sad.Array[float3]:
    """A close-up of the texels that are fitted without mips."""
    return close_up(fits["plain"], positions, triangles)


@sad.graph
def wanted(
    goal: sad.Array[float3, 6, "n", "n"],
    positions: sad.Array[float3, "v"],
    triangles: sad.Array[int3, "t"],
) -> sad.Array[float3]:
    """A close-up of the true texels."""
    return close_up(goal, positions, triangles)
