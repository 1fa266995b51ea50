"""The same mesh behind pointers, where each triangle has its own corners.

`shade_soup` differs from `shade` of kernels.py only in its reads. Triangles take three times the
memory of shared vertices. The gradient of a triangle is a triangle; to get that of a vertex, add up
the gradients of all corners there.
"""

from __future__ import annotations

from typing import Any

import shaderad as sad
from kernels import BACKGROUND, NO_FACE, Camera, Hit, Triangle, lit
from shaderad import float3


@sad.struct
class Soup:
    """The visible attributes of triangles that share no vertices."""

    normals: sad.Pointer[Triangle]
    colors: sad.Pointer[Triangle]

    def normal(self, hit: Hit) -> float3:
        return sad.normalize(self.normals[hit.face].interpolate(hit.uv))

    def color(self, hit: Hit) -> float3:
        return self.colors[hit.face].interpolate(hit.uv)


def soup_of(corners: sad.Array, normals: sad.Array, colors: sad.Array) -> Soup:
    """The triangles of a mesh, each with copies of its vertices."""

    def apart(values: sad.Array) -> Any:
        v0, v1, v2 = (values[getattr(corners, axis)] for axis in "xyz")
        return sad.pointer(Triangle(v0, v1, v2))

    return Soup(apart(normals), apart(colors))


@sad.kernel
def shade_soup(
    y: sad.Index,
    x: sad.Index,
    soup: Soup,
    camera: Camera,
    hits: sad.In[Hit, 2],
    color: sad.Out[float3, 2],
):
    """The colour of each pixel."""
    hit = hits[y, x]
    color[y, x] = float3(BACKGROUND)
    if hit.face != NO_FACE:
        to_eye = -sad.normalize(camera.ray(y, x, hits.shape[0]))
        color[y, x] = lit(soup.normal(hit), to_eye) * soup.color(hit)
