"""Triangles in clip space -> what each pixel shows of them, and of values at their vertices.

A pixel looks through the triangles of its cells on all levels (`kernels/bins.py`) and keeps the
nearest. Then a second kernel, which has derivatives, computes where on its triangle the pixel is.

Sources: Olano, Greer, *Triangle scan conversion using 2D homogeneous coordinates*, Graphics
Hardware 1997; Laine et al., *Modular primitives for high-performance differentiable rendering*,
SIGGRAPH Asia 2020.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import shaderad as sad
from shaderad import int2, int3
from shaderad.arrays.traced_sizes import shape_of, shown
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.array_function import array_function
from shaderad.functions.elements import as_array, as_floats, conform
from shaderad.ir.sizes import Shape
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.render.kernels.bins import (
    CELL,
    LARGEST,
    LEVEL_COUNT,
    PAIR_COUNT,
    bin_triangles,
    find_levels,
    find_spans,
)
from shaderad.render.kernels.fragments import STRIP, locate, pick
from shaderad.trace.primitives import known_shape, size_array
from shaderad.trace.traced import tracing

__all__ = ["Fragments", "interpolate", "rasterize"]


class Fragments(NamedTuple):
    """The triangles that the pixels of a picture show, in arrays of its shape.

    Attributes:
        face: The triangle, -1 for none.
        uv: Where on it the pixel's centre is: the weights of corners 1 and 2, of which 0 has
            ``1 - u - v``; 0 for none.
        depth: ``z / w``, from 0 to 1; 1 for none.
        uv_dx: How `uv` changes a pixel to the right.
        uv_dy: How `uv` changes a pixel down.
    """

    face: sad.Array
    uv: sad.Array
    depth: sad.Array
    uv_dx: sad.Array
    uv_dy: sad.Array


class Bins(NamedTuple):
    """The triangles of each cell, one cell after the other."""

    corners: sad.Array
    """By view and triangle: its corners in the order of `is_before`."""
    levels: sad.Array
    """By view and cell of level 0: a bit for each level whose cell there has triangles."""
    begin: sad.Array
    """By cell: the position in `pairs` of its first."""
    end: sad.Array
    """By cell: the position behind its last; of a cell without triangles that of its first."""
    pairs: sad.Array
    """Pairs of a cell and a triangle: `PAIR_COUNT` times the number of the triangle in all views,
    and which of its cells it is."""
    size: sad.Array
    """(width, height) of the picture."""
    cell_count: Any
    """How many cells a view has, on all levels."""


def cell_count_of(height: Any, width: Any) -> Any:
    """How many cells a picture has, on all levels."""
    edges = [CELL << level for level in range(LEVEL_COUNT)]
    return sum(((height + e - 1) // e) * ((width + e - 1) // e) for e in edges)


def corners_of(clip: Any, triangles: Any) -> Any:
    """By view and triangle: its corners, side by side; NaN for vertices that are not there.

    Those are reported: a row of the vertices holds one vertex as all views see it.
    """
    i = sad.stack([triangles.x, triangles.y, triangles.z], axis=1)
    is_there = (i >= 0) & (i < clip.shape[1])
    corners = sad.transpose(sad.gather(sad.transpose(clip), i), (2, 0, 1))
    return sad.where(is_there, corners, math.nan)


def bins_of(corners: Any, extents: Shape) -> Bins:
    """The bins of all views, in pictures of these extents."""
    views, count = corners.shape[:2]
    height, width = map(shown, extents)
    size = int2(*map(size_array, reversed(extents)))
    cell_count = cell_count_of(height, width)
    cells, ordered = bin_triangles(
        corners, size, cell_count, dim=(views, count),
        shapes={"cells": (views, count, PAIR_COUNT), "ordered": (views, count, 3)},
    )  # fmt: skip
    cells = sad.reshape(cells, -1)
    pairs, spans = sad.argsort(cells), cell_count * views + 1
    begin, end = find_spans(cells, pairs, shapes={"begin": (spans,), "end": (spans,)})
    levels = find_levels(
        begin, end, size, cell_count,
        dim=(views, (height + CELL - 1) // CELL, (width + CELL - 1) // CELL), bounds="unchecked",
    )  # fmt: skip
    return Bins(ordered, levels, begin, end, pairs, size, cell_count)


@array_function
def rasterize(clip: Any, triangles: Any, size: Any) -> Fragments:
    """Draws triangles in clip space: for each pixel, which of them shows, and where on it.

    The centre of a pixel is covered where its edge functions, evaluated in homogeneous coordinates,
    have one sign; a centre on an edge belongs to the triangle below or to the right of it. The
    nearest triangle that covers a centre shows, and the first of several at one depth. Both sides
    of a triangle are drawn. Nothing outside of ``0 <= z <= w`` is drawn.

    Args:
        clip: ``float4`` of shape [vertices] or [views, vertices]: clip space, y up.
        triangles: ``int3`` of shape [triangles], positions in `clip`. A triangle with an index out
            of range, which is reported, a vertex that is not finite, or two equal corners is not
            drawn; (0, 0, 0) leaves one out.
        size: (height, width) in pixels, at most 524,288 each.

    Returns:
        The fragments, of shape `size` or (views, height, width).

    Raises:
        ShapeError: SR0330 for other elements, SR0370, SR0371 and SR0806 for another size, SR0807
            for another shape of `clip`.
        BoundsError: SR0660 at the next synchronisation, where a triangle has an index that is none
            of `clip`.

    Differentiable: `uv`, `depth`, `uv_dx` and `uv_dy` by `clip`; `face` is constant. Edges of what
    is covered have no derivative here: see `antialias`.

    Source: Olano, Greer, *Triangle scan conversion using 2D homogeneous coordinates*, Graphics
    Hardware 1997.
    """
    clip = conform(clip, Vector(FLOAT, 4), "clip")
    triangles = conform(triangles, Vector(INT, 3), "triangles")
    if len(clip.shape) not in (1, 2):
        raise error("SR0807", user_span(), shape=known_shape(clip.value.shape))
    extents = _checked_size(size)
    height, width = map(shown, extents)
    views = clip if len(clip.shape) == 2 else clip[None]
    count = views.shape[0]
    corners = corners_of(views, triangles)
    bins = bins_of(sad.detach(corners), extents)
    face = pick(
        *bins, dim=(count, (height + STRIP - 1) // STRIP, width),
        shapes={"face": (count, height, width)}, bounds="unchecked",
    )  # fmt: skip
    parts = (face, *locate(corners, face, bounds="unchecked"))
    return Fragments(*(parts if len(clip.shape) == 2 else (part[0] for part in parts)))


@array_function
def interpolate(values: Any, triangles: Any, fragments: Any, footprint: bool = False) -> Any:
    """Values at the vertices, where the pixels see them: perspective-correct.

    ``(1 - u - v) a + u b + v c`` for the values a, b, c at the corners of the face.

    Args:
        values: Floats or float vectors of shape [vertices] or [views, vertices].
        triangles: The ``int3`` that were drawn.
        fragments: The result of `rasterize`.
        footprint: Also gives how far the values differ from pixel to pixel.

    Returns:
        The values in the shape of the fragments, 0 where no triangle shows. With `footprint`,
        ``(values, (d_dx, d_dy))``: their derivatives by the position in the picture, a pixel to the
        right and down.

    Raises:
        ShapeError: SR0330 for other elements, SR0805 for another shape of `values`.
        BoundsError: SR0660 where a pixel shows a face that is none of `triangles`, or a corner that
            is none of `values`.

    Differentiable in `values` and in the fragments, through which positions have derivatives.
    """
    fragments = Fragments(*fragments)
    values = _attributes(values, has_views=len(fragments.face.shape) == 3)
    i = conform(triangles, Vector(INT, 3), "triangles")
    zero = sad.zeros(fragments.face.shape, values.dtype)
    if not all(map(tracing().is_positive, (i.extents[0], values.extents[-1]))):
        return (zero, (zero, zero)) if footprint else zero
    shown = fragments.face >= 0
    # Pixels without a triangle read vertex 0: corners of triangle 0 may be out of range.
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
        raise error("SR0806", user_span(), found=repr(size), limit=f"{LARGEST:,}")
    return extents


def _attributes(values: Any, *, has_views: bool) -> Any:
    """Values at the vertices as an array of floats or float vectors."""
    values = as_floats(as_array(values))
    rank, limit = len(values.shape), 2 if has_views else 1
    if not 0 < rank <= limit:
        raise error("SR0805", user_span(), shape=known_shape(values.value.shape))
    return values


def _at_corners(values: Any, corner: Any) -> Any:
    """The values at one corner of the face of each pixel."""
    if len(values.shape) == 1:
        return values[corner]
    views, count = values.shape
    return sad.reshape(values, -1)[sad.iota(views)[:, None, None] * count + corner]
