"""Positions and triangles -> normals and Laplacians at the vertices."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import float3
from shaderad.calls.array_function import array_function
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.trace.elements import as_array, conform

__all__ = ["laplacian", "normals"]


@array_function
def normals(positions: Any, triangles: Any) -> sad.Array:
    """Unit normals at the vertices: means of the adjacent triangles' normals, weighted by area.

    ``normalize(sum of cross(b - a, c - a))`` over the triangles (a, b, c) at a vertex. A normal
    points to the side from which these appear counterclockwise.

    Args:
        positions: ``float3`` of shape [vertices].
        triangles: ``int3`` of shape [triangles], indices into `positions`.

    Returns:
        ``float3`` of shape [vertices]; 0 at vertices without triangles or with triangles of zero
        area only.

    Raises:
        ShapeError: SR0330 for other elements.
        BoundsError: SR0611, if an index is out of range.

    Differentiable in `positions`; the derivative is 0 if the normal is 0.

    Source: Max, *Weights for computing vertex normals from facet normals*, Journal of Graphics
    Tools 4 (1999).
    """
    positions = conform(positions, Vector(FLOAT, 3), "positions")
    i = conform(triangles, Vector(INT, 3), "triangles")
    a, b, c = positions[i.x], positions[i.y], positions[i.z]
    across = sad.cross(b - a, c - a)
    summed = sad.zeros(positions.shape, float3)
    for corner in (i.x, i.y, i.z):
        summed = sad.scatter_add(summed, corner, across)
    return sad.normalize(summed)


@array_function
def laplacian(positions: Any, triangles: Any) -> sad.Array:
    """The uniform Laplacian of a mesh: the offset from each vertex to the mean of its neighbours.

    The mean is over the other corners of the triangles at the vertex. Inside a mesh this counts
    each neighbour twice; at a border it counts some once.

    Args:
        positions: Float vectors of shape [vertices].
        triangles: ``int3`` of shape [triangles], indices into `positions`.

    Returns:
        An array like `positions`; 0 at vertices without triangles.

    Raises:
        ShapeError: SR0330 for other elements.
        BoundsError: SR0611, if an index is out of range.

    Differentiable in `positions`.
    """
    positions = as_array(positions)
    i = conform(triangles, Vector(INT, 3), "triangles")
    corners = (i.x, i.y, i.z)
    total = positions[i.x] + positions[i.y] + positions[i.z]
    summed = sad.zeros(positions.shape, positions.dtype)
    count = sad.zeros(positions.shape)
    for corner in corners:
        summed = sad.scatter_add(summed, corner, total - positions[corner])
        count = sad.scatter_add(count, corner, sad.full(corner.shape, 2.0))
    to_mean = summed / sad.max(count, 1.0) - positions
    return sad.where(count > 0.0, to_mean, sad.zeros(positions.shape, positions.dtype))
