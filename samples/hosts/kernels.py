"""The kernel that the hosts run: compares a mesh with a colour at each vertex with samples of it.

It contains no derivatives. That of `Mesh.triangle` adds a sample's cotangent to the three vertices
that it read, although many threads may read the same vertex.
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, int3


@sad.struct
class Triangle:
    """The colours of a triangle's corners."""

    v0: float3
    v1: float3
    v2: float3

    def interpolate(self, uv: float2) -> float3:
        return self.v0 * (1.0 - uv.x - uv.y) + self.v1 * uv.x + self.v2 * uv.y


@sad.struct
class Mesh:
    """Triangles that share their vertices through an index buffer."""

    corners: sad.In[int3]
    colors: sad.In[float3]

    def triangle(self, face: int) -> Triangle:
        corner = self.corners[face]
        return Triangle(self.colors[corner.x], self.colors[corner.y], self.colors[corner.z])

    def interpolate(self, face: int, uv: float2) -> float3:
        return self.triangle(face).interpolate(uv)


@sad.struct
class Sample:
    """A point on the mesh, and the light there."""

    face: int
    uv: float2
    light: float3

    def shaded(self, mesh: Mesh) -> float3:
        return self.light * mesh.interpolate(self.face, self.uv)


@sad.kernel
def squared_error(
    i: sad.Index,
    mesh: Mesh,
    samples: sad.In[Sample],
    target: sad.In[float3],
    total: sad.Add[float],
):
    """The sum over all samples of the squared distance to the target's colour."""
    miss = samples[i].shaded(mesh) - target[i]
    total[0] += sad.dot(miss, miss)
