"""Triangles in clip space -> the triangle at each pixel, and interpolated vertex values.

One thread per triangle draws it if it is small, and else puts it on the lists of its cells
(`kernels/drawing.py`, `kernels/bins.py`). Each pixel searches the lists of its cells on all levels
for a triangle that is nearer than the small ones. The last kernel, which has derivatives, computes
the position of the pixel on its triangle.

Sources: Olano, Greer, *Triangle scan conversion using 2D homogeneous coordinates*, Graphics
Hardware 1997; Laine et al., *Modular primitives for high-performance differentiable rendering*,
SIGGRAPH Asia 2020.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import shaderad as sad
from shaderad import int3
from shaderad.arrays.traced_sizes import shape_of, shown
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.ir.sizes import Shape
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.render.kernels.bins import CELL, LARGEST, LEVEL_COUNT, PAIR_COUNT, find_levels
from shaderad.render.kernels.drawing import draw
from shaderad.render.kernels.fragments import STRIP, locate, pick
from shaderad.trace.elements import as_array, as_floats, conform
from shaderad.trace.primitives import known_shape
from shaderad.trace.traced import tracing

__all__ = ["Fragments", "interpolate", "rasterize"]


class Fragments(NamedTuple):
    """The triangles that the pixels of a picture show, in arrays of its shape.

    Attributes:
        face: The triangle, -1 for none.
        uv: The barycentric coordinates of the pixel's centre: the weights of corners 1 and 2,
            while corner 0 has ``1 - u - v``; 0 for none.
        depth: ``z / w``, from 0 to 1; 1 for none.
        uv_dx: The derivative of `uv` per pixel to the right.
        uv_dy: The derivative of `uv` per pixel down.
    """

    face: sad.Array
    uv: sad.Array
    depth: sad.Array
    uv_dx: sad.Array
    uv_dy: sad.Array


def cell_count_of(height: Any, width: Any) -> Any:
    """The number of cells of a picture on all levels."""
    edges = [CELL << level for level in range(LEVEL_COUNT)]
    return sum(((height + e - 1) // e) * ((width + e - 1) // e) for e in edges)


def faces_of(clip: Any, triangles: Any, extents: Shape) -> Any:
    """The triangle at each pixel of all views, in pictures of these extents; -1 for none."""
    views, count = clip.shape[0], triangles.shape[0]
    height, width = map(shown, extents)
    cell_count = cell_count_of(height, width)
    words = cell_count + PAIR_COUNT * count
    drawn, lists, ordered = draw(
        clip, triangles, width, height, cell_count, dim=(views, count),
        shapes={"nearest": (views, height, width), "lists": (views, words)},
    )  # fmt: skip
    levels = find_levels(
        lists, width, height,
        dim=(views, (height + CELL - 1) // CELL, (width + CELL - 1) // CELL), bounds="unchecked",
    )  # fmt: skip
    return pick(
        clip, ordered, drawn, lists, levels, width, height, cell_count,
        dim=(views, (height + STRIP - 1) // STRIP, width),
        shapes={"face": (views, height, width)}, bounds="unchecked",
    )  # fmt: skip


@array_function
def rasterize(clip: Any, triangles: Any, size: Any) -> Fragments:
    """Draws triangles in clip space: for each pixel, the visible triangle and the position on it.

    A triangle covers the centre of a pixel if its edge functions, evaluated in homogeneous
    coordinates, have the same sign there. A centre on an edge belongs to the triangle below or to
    the right of it. The nearest triangle that covers a centre is visible, or the first of several
    at the same depth. Both sides of a triangle are drawn. Nothing outside ``0 <= z <= w`` is drawn.

    Args:
        clip: ``float4`` of shape [vertices] or [views, vertices]: clip space, y up.
        triangles: ``int3`` of shape [triangles], indices into `clip`. A triangle is not drawn if a
            vertex is not finite, two corners are equal, or an index is out of range, which is
            reported. Use (0, 0, 0) to leave one out.
        size: (height, width) in pixels, at most 524,288 each.

    Returns:
        The fragments, of shape `size` or (views, height, width).

    Raises:
        ShapeError: SR0330 for other elements, SR0370, SR0371 and SR0806 for another size, SR0807
            for another shape of `clip`.
        BoundsError: SR0660 at the next synchronisation, if an index of a triangle is out of range
            for `clip`.

    Differentiable: `uv`, `depth`, `uv_dx` and `uv_dy` by `clip`; `face` is constant. Coverage has
    no derivative here: see `antialias`.

    Source: Olano, Greer, *Triangle scan conversion using 2D homogeneous coordinates*, Graphics
    Hardware 1997.
    """
    clip = conform(clip, Vector(FLOAT, 4), "clip")
    triangles = conform(triangles, Vector(INT, 3), "triangles")
    if len(clip.shape) not in (1, 2):
        raise error("SR0807", user_span(), shape=known_shape(clip.value.shape))
    extents = _checked_size(size)
    views = clip if len(clip.shape) == 2 else clip[None]
    face = faces_of(views, triangles, extents)
    parts = (face, *locate(views, triangles, face, bounds="unchecked"))
    return Fragments(*(parts if len(clip.shape) == 2 else (part[0] for part in parts)))


@array_function
def interpolate(values: Any, triangles: Any, fragments: Any, footprint: bool = False) -> Any:
    """Interpolates values at the vertices to the pixels, perspective-correctly.

    ``(1 - u - v) a + u b + v c`` for the values a, b, c at the corners of the face.

    Args:
        values: Floats or float vectors of shape [vertices] or [views, vertices].
        triangles: The ``int3`` that `rasterize` has drawn.
        fragments: The result of `rasterize`.
        footprint: If true, also returns the derivatives of the values along the picture.

    Returns:
        The values in the shape of the fragments, 0 at pixels without a triangle. With `footprint`,
        ``(values, (d_dx, d_dy))`` with their derivatives per pixel to the right and down.

    Raises:
        ShapeError: SR0330 for other elements, SR0805 for another shape of `values`.
        BoundsError: SR0660 if the face of a pixel is not an index into `triangles`, or a corner not
            an index into `values`.

    Differentiable in `values` and in the fragments, through which positions have derivatives.
    """
    fragments = Fragments(*fragments)
    values = _attributes(values, has_views=len(fragments.face.shape) == 3)
    i = conform(triangles, Vector(INT, 3), "triangles")
    zero = sad.zeros(fragments.face.shape, values.dtype)
    if not all(map(tracing().is_positive, (i.extents[0], values.extents[-1]))):
        return (zero, (zero, zero)) if footprint else zero
    shown = fragments.face >= 0
    # Pixels without a triangle read vertex 0, because corners of triangle 0 may be out of range.
    first = sad.zeros(fragments.face.shape, int3)
    corners = sad.where(shown, i[sad.maximum(fragments.face, 0)], first)
    a, b, c = (_at_corners(values, corner) for corner in (corners.x, corners.y, corners.z))

    def weighted(weights: Any) -> Any:
        return sad.where(shown, weights.x * (b - a) + weights.y * (c - a), zero)

    result = sad.where(shown, a, zero) + weighted(fragments.uv)
    if not footprint:
        return result
    return result, (weighted(fragments.uv_dx), weighted(fragments.uv_dy))


def _checked_size(size: Any) -> Shape:
    """The height and width of a picture."""
    extents = shape_of(size, "size")
    if len(extents) != 2 or any(isinstance(n, int) and n > LARGEST for n in extents):
        raise error("SR0806", user_span(), found=text_of(size), limit=f"{LARGEST:,}")
    return extents


def _attributes(values: Any, *, has_views: bool) -> Any:
    """Values at the vertices as an array of floats or float vectors."""
    values = as_floats(as_array(values))
    rank, limit = len(values.shape), 2 if has_views else 1
    if not 0 < rank <= limit:
        raise error("SR0805", user_span(), shape=known_shape(values.value.shape))
    return values


def _at_corners(values: Any, corner: Any) -> Any:
    """For each pixel, the value at one corner of its face."""
    if len(values.shape) == 1:
        return values[corner]
    views, count = values.shape
    return sad.reshape(values, -1)[sad.iota(views)[:, None, None] * count + corner]
