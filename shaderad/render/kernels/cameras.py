"""The matrices of cameras, and the transform of a position by one."""

from __future__ import annotations

import shaderad as sad
from shaderad import float3, float4, float4x4


@sad.function
def view_matrix(eye: float3, target: float3, up: float3) -> float4x4:
    back = sad.normalize(eye - target)
    right = sad.normalize(sad.cross(up, back))
    above = sad.cross(back, right)
    return float4x4(
        float4(right, -sad.dot(right, eye)),
        float4(above, -sad.dot(above, eye)),
        float4(back, -sad.dot(back, eye)),
        float4(0.0, 0.0, 0.0, 1.0),
    )


@sad.function
def perspective_matrix(fov_y: float, aspect: float, near: float, far: float) -> float4x4:
    focal = 1.0 / sad.tan(0.5 * fov_y)
    return float4x4(
        float4(focal / aspect, 0.0, 0.0, 0.0),
        float4(0.0, focal, 0.0, 0.0),
        float4(0.0, 0.0, far / (near - far), near * far / (near - far)),
        float4(0.0, 0.0, -1.0, 0.0),
    )


@sad.function
def orthographic_matrix(height: float, aspect: float, near: float, far: float) -> float4x4:
    return float4x4(
        float4(2.0 / (height * aspect), 0.0, 0.0, 0.0),
        float4(0.0, 2.0 / height, 0.0, 0.0),
        float4(0.0, 0.0, 1.0 / (near - far), near / (near - far)),
        float4(0.0, 0.0, 0.0, 1.0),
    )


@sad.function
def transformed(matrix: float4x4, position: float3) -> float4:
    return matrix @ float4(position, 1.0)
