"""The pose and lens of a camera -> matrices; matrices and positions -> clip space.

Matrices are ``float4x4`` for columns: ``clip = projection @ view @ position``. A camera looks along
its own -z, with x to the right and y up. Clip space has y up, and a depth z / w from 0 at the near
plane to 1 at the far plane.
"""

from __future__ import annotations

from typing import Any, cast

import shaderad as sad
from shaderad.calls.array_function import array_function
from shaderad.ir.types import FLOAT, Matrix, Vector
from shaderad.render.kernels.cameras import (
    orthographic_matrix,
    perspective_matrix,
    transformed,
    view_matrix,
)
from shaderad.trace.elements import as_array, conform

__all__ = ["look_at", "orthographic", "perspective", "transform"]


@array_function
def look_at(eye: Any, target: Any, up: Any = (0.0, 1.0, 0.0)) -> sad.Array:
    """The view matrix of a camera, from world axes to the axes of the camera.

    Its rows are right, up and back: ``back = normalize(eye - target)``,
    ``right = normalize(cross(up, back))``, ``cross(back, right)``.

    Args:
        eye: The position of the camera, one or several ``float3``.
        target: The point that it looks at.
        up: A direction that points up in the picture, not along the line of sight.

    Returns:
        ``float4x4``, in the shape to which the arguments broadcast.

    Raises:
        ShapeError: SR0330 for other elements than ``float3``, SR0379 for shapes that do not
            broadcast.

    Differentiable in all arguments.
    """
    # Constants of the graph, not captured data, so that builds contain them.
    if isinstance(up, tuple):
        up = tuple(map(as_array, cast("tuple[Any, ...]", up)))
    parts = {"eye": eye, "target": target, "up": up}
    return sad.map(view_matrix, *(conform(x, Vector(FLOAT, 3), name) for name, x in parts.items()))


@array_function
def perspective(fov_y: Any, aspect: Any, near: Any, far: Any) -> sad.Array:
    """The matrix of a perspective projection.

    Args:
        fov_y: The angle between the lower and upper edge of the picture, in radians.
        aspect: The width of the picture divided by its height.
        near: The distance of the near plane in front of the camera, above 0; its depth is 0.
        far: The distance of the far plane, whose depth is 1.

    Returns:
        ``float4x4``, in the shape to which the arguments broadcast.

    Raises:
        ShapeError: SR0330 for other elements than floats, SR0379 for shapes that do not broadcast.

    Differentiable in all arguments.
    """
    parts = {"fov_y": fov_y, "aspect": aspect, "near": near, "far": far}
    return sad.map(perspective_matrix, *(conform(x, FLOAT, name) for name, x in parts.items()))


@array_function
def orthographic(height: Any, aspect: Any, near: Any, far: Any) -> sad.Array:
    """The matrix of a parallel projection.

    Args:
        height: The height of the picture in units of the world.
        aspect: The width of the picture divided by its height.
        near: The distance of the near plane in front of the camera; its depth is 0.
        far: The distance of the far plane, whose depth is 1.

    Returns:
        ``float4x4``, in the shape to which the arguments broadcast.

    Raises:
        ShapeError: SR0330 for other elements than floats, SR0379 for shapes that do not broadcast.

    Differentiable in all arguments.
    """
    parts = {"height": height, "aspect": aspect, "near": near, "far": far}
    return sad.map(orthographic_matrix, *(conform(x, FLOAT, name) for name, x in parts.items()))


@array_function
def transform(matrix: Any, positions: Any) -> sad.Array:
    """Positions in clip space: ``matrix @ (x, y, z, 1)``.

    Args:
        matrix: One ``float4x4``, or an array of shape [views].
        positions: ``float3`` of shape [vertices], or [views, vertices].

    Returns:
        ``float4`` of shape [vertices], or [views, vertices] if an argument has views.

    Raises:
        ShapeError: SR0330 for other elements, SR0379 for shapes that do not broadcast.

    Differentiable in both arguments.
    """
    matrix = conform(matrix, Matrix(FLOAT, 4, 4), "matrix")
    positions = conform(positions, Vector(FLOAT, 3), "positions")
    return sad.map(transformed, matrix[..., None] if matrix.shape else matrix, positions)
