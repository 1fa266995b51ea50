"""A mesh as a struct of arrays: its gradient is a struct of gradient arrays.

Two triangles share an edge, so both add to the gradients of the two vertices on it.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float2, float3, int3


@sad.struct
class Mesh:
    vertices: sad.In[float3]
    corners: sad.In[int3]

    def interpolate(self, face: int, uv: float2) -> float3:
        corner = self.corners[face]
        return (
            self.vertices[corner.x] * (1.0 - uv.x - uv.y)
            + self.vertices[corner.y] * uv.x
            + self.vertices[corner.z] * uv.y
        )


@sad.kernel
def sample(i: sad.Index, mesh: Mesh, face: sad.In[int], uv: sad.In[float2], point: sad.Out[float3]):
    point[i] = mesh.interpolate(face[i], uv[i])


VERTICES = np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])
CORNERS = np.int32([[0, 1, 2], [1, 3, 2]])
FACE = np.int32([0, 1, 1])
UV = np.float32([[0.25, 0.25], [0.5, 0.0], [0.25, 0.5]])


def main() -> None:
    points, pullback = sad.vjp(sample, Mesh(VERTICES, CORNERS), FACE, UV, dim=3)
    by_mesh, _, by_uv = pullback(np.ones((3, 3)))
    print("points:     ", *points.numpy())
    print("by vertices:", *by_mesh.vertices.numpy())
    print("by uv:      ", *by_uv.numpy())


if __name__ == "__main__":
    main()
