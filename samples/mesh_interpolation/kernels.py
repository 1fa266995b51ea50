"""A mesh and a camera -> the triangle at each pixel, the position on it, and its colour.

Nothing here mentions derivatives. `shade` is differentiated by normals and colours, `project` by
positions. Many pixels or views read the same vertex, and each adds its cotangent there.

A picture is square. A pixel without a triangle has the face `NO_FACE`, the largest int, which is
the content of unwritten elements of a `sad.Min` array.
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3

NO_FACE = 2**31 - 1
BACKGROUND = 0.018
NEAR = 1e-3
"""Triangles with a corner nearer than this to the camera's plane are left out entirely."""
CLIP_NEAR, CLIP_FAR = 0.5, 50.0
"""The depths of the near and far planes of clip space."""
SLACK = 1e-5
"""In barycentric coordinates, so that a pixel on a shared edge is in both triangles."""
AS_NEAR = 1.0 + 1e-5
"""The tolerance of the least depth as a factor, as another pass may round it differently."""
REACH = 0.51
"""The margin of a box around a triangle in pixels: to the next pixel centres, and some rounding."""


@sad.struct
class Hit:
    """The point at which the ray of a pixel meets the mesh."""

    face: int
    uv: float2
    """Barycentric coordinates of corners 1 and 2."""


@sad.struct
class Camera:
    """A pinhole camera; `right`, `up` and `forward` have length 1, `focal` is in half pictures."""

    eye: float3
    right: float3
    up: float3
    forward: float3
    focal: float

    def ray(self, y: int, x: int, size: int) -> float3:
        """The vector from the eye through a pixel's centre to depth 1."""
        across = (2.0 * (float2(x, y) + 0.5) / size - 1.0) / self.focal
        return self.forward + self.right * across.x - self.up * across.y

    def depth(self, p: float3) -> float:
        return sad.dot(p - self.eye, self.forward)

    def clip(self, p: float3) -> float4:
        """A point in clip space: y up, depths from 0 at `CLIP_NEAR` to 1 at `CLIP_FAR`."""
        d = p - self.eye
        depth = self.depth(p)
        across = self.focal * float2(sad.dot(d, self.right), sad.dot(d, self.up))
        share = CLIP_FAR / (CLIP_FAR - CLIP_NEAR) * (depth - CLIP_NEAR)
        return float4(across.x, across.y, share, depth)

    def pixel(self, p: float3, size: int) -> float2:
        """The pixel coordinates of a point, from the upper left; centres are at halves."""
        d = p - self.eye
        across = float2(sad.dot(d, self.right), -sad.dot(d, self.up))
        return (1.0 + self.focal * across / sad.dot(d, self.forward)) * (0.5 * size)


@sad.struct
class Triangle:
    """Three points, or any three vectors at the corners of a triangle."""

    v0: float3
    v1: float3
    v2: float3

    def interpolate(self, uv: float2) -> float3:
        return self.v0 * (1.0 - uv.x - uv.y) + self.v1 * uv.x + self.v2 * uv.y

    def intersect(self, origin: float3, ray: float3) -> float3:
        """Barycentric coordinates of corners 1 and 2, and the distance in lengths of `ray`.

        Source: Moeller, Trumbore, "Fast, minimum storage ray-triangle intersection" (1997).
        """
        first, second, to_origin = self.v1 - self.v0, self.v2 - self.v0, origin - self.v0
        across, around = sad.cross(ray, second), sad.cross(to_origin, first)
        volume = sad.dot(first, across)
        found = float3(sad.dot(to_origin, across), sad.dot(ray, around), sad.dot(second, around))
        return found / volume


@sad.struct
class Surface:
    """The positions of the vertices, and the three vertices of each triangle."""

    corners: sad.In[int3]
    positions: sad.In[float3]

    def triangle(self, face: int) -> Triangle:
        c = self.corners[face]
        return Triangle(self.positions[c.x], self.positions[c.y], self.positions[c.z])


@sad.struct
class Mesh:
    """The visible attributes of triangles that share vertices through an index buffer."""

    corners: sad.In[int3]
    normals: sad.In[float3]
    colors: sad.In[float3]

    def normal(self, hit: Hit) -> float3:
        return sad.normalize(self.interpolate(self.normals, hit))

    def color(self, hit: Hit) -> float3:
        return self.interpolate(self.colors, hit)

    def interpolate(self, values: sad.In[float3], hit: Hit) -> float3:
        c = self.corners[hit.face]
        return Triangle(values[c.x], values[c.y], values[c.z]).interpolate(hit.uv)


@sad.function
def lit(normal: float3, to_eye: float3) -> float3:
    """The light that arrives at a surface: a warm key, a sky, and a cool rim."""
    key = sad.max(sad.dot(normal, sad.normalize(float3(0.75, 0.6, -0.35))), 0.0)
    sky = 0.5 + 0.5 * normal.y
    behind = sad.max(0.5 + sad.dot(normal, sad.normalize(float3(-0.85, 0.05, 0.45))), 0.0)
    rim = behind * (1.0 - sad.saturate(sad.dot(normal, to_eye))) ** 3
    warm, blue, cool = float3(1.05, 0.98, 0.86), float3(0.1, 0.13, 0.19), float3(0.25, 0.45, 0.75)
    return warm * key + blue * sky + cool * rim + 0.035


@sad.kernel
def shade(
    y: sad.Index,
    x: sad.Index,
    mesh: Mesh,
    camera: Camera,
    hits: sad.In[Hit, 2],
    color: sad.Out[float3, 2],
):
    """The colour of each pixel."""
    hit = hits[y, x]
    color[y, x] = float3(BACKGROUND)
    if hit.face != NO_FACE:
        to_eye = -sad.normalize(camera.ray(y, x, hits.shape[0]))
        color[y, x] = lit(mesh.normal(hit), to_eye) * mesh.color(hit)


@sad.kernel
def locate(
    y: sad.Index,
    x: sad.Index,
    surface: Surface,
    camera: Camera,
    shown: sad.In[int, 2],
    hits: sad.Out[Hit, 2],
):
    """The point at which each pixel's ray meets its visible triangle."""
    face = shown[y, x]
    hits[y, x].face = face
    if face != NO_FACE:
        ray = camera.ray(y, x, shown.shape[0])
        hits[y, x].uv = surface.triangle(face).intersect(camera.eye, ray).xy


@sad.kernel
def project(
    view: sad.Index,
    vertex: sad.Index,
    views: sad.In[Camera],
    positions: sad.In[float3],
    clip: sad.Out[float4, 2],
):
    """The clip-space position of each vertex for each camera."""
    clip[view, vertex] = views[view].clip(positions[vertex])


@sad.kernel
def depths(face: sad.Index, surface: Surface, camera: Camera, depth: sad.Min[float, 2]):
    """The depth of each pixel's surface along the camera's axis; infinite without a surface."""
    size = depth.shape[0]
    triangle = surface.triangle(face)
    box = box_of(triangle, camera, size)
    for y in range(box.low.y, box.high.y):
        for x in range(box.low.x, box.high.x):
            found = triangle.intersect(camera.eye, camera.ray(y, x, size))
            if is_inside(found.xy):
                depth[y, x] = sad.min(depth[y, x], found.z)


@sad.kernel
def faces(
    face: sad.Index,
    surface: Surface,
    camera: Camera,
    depth: sad.In[float, 2],
    shown: sad.Min[int, 2],
):
    """The visible triangle of each pixel: the first one at its depth."""
    size = depth.shape[0]
    triangle = surface.triangle(face)
    box = box_of(triangle, camera, size)
    for y in range(box.low.y, box.high.y):
        for x in range(box.low.x, box.high.x):
            found = triangle.intersect(camera.eye, camera.ray(y, x, size))
            if is_inside(found.xy) and found.z <= AS_NEAR * depth[y, x]:
                shown[y, x] = sad.min(shown[y, x], face)


@sad.struct
class Box:
    """Pixels from `low` to below `high`; x, then y."""

    low: int2
    high: int2


@sad.function
def box_of(triangle: Triangle, camera: Camera, size: int) -> Box:
    """The pixels whose centres may lie in a triangle; none if the triangle is too near."""
    first, second = camera.depth(triangle.v0), camera.depth(triangle.v1)
    if sad.min(sad.min(first, second), camera.depth(triangle.v2)) < NEAR:
        return Box(int2(0), int2(0))
    a, b = camera.pixel(triangle.v0, size), camera.pixel(triangle.v1, size)
    c = camera.pixel(triangle.v2, size)
    low = sad.clamp(sad.min(sad.min(a, b), c) - REACH, 0.0, size)
    high = sad.clamp(sad.max(sad.max(a, b), c) + REACH, 0.0, size)
    return Box(int2(sad.ceil(low)), int2(sad.floor(high)))


@sad.function
def is_inside(uv: float2) -> bool:
    return uv.x >= -SLACK and uv.y >= -SLACK and uv.x + uv.y <= 1.0 + SLACK


@sad.kernel
def heat(i: sad.Index, gradient: sad.In[float3], longest: float, color: sad.Out[float3]):
    """The length of each vertex's gradient as a colour, from black over red to white."""
    t = sad.sqrt(sad.length(gradient[i]) / sad.max(longest, 1e-30))
    color[i] = sad.saturate(float3(2.6 * t, 2.2 * t - 0.7, 3.0 * t - 2.0)) + 0.02
