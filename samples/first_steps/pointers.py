"""A scene of meshes of triangles, connected by pointers, and your own derivative behind them.

`sad.pointer` points to an array, or to structs that hold pointers themselves. Gradients come back
as the same structs of gradient arrays. In a backward derivative, `scene.p` reads the data behind
the pointers, and `scene.d` is the same element in the memory of gradients: `+=` adds to it, `=`
stores.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3


@sad.struct
class Triangle:
    v0: float3
    v1: float3
    v2: float3


@sad.struct
class Mesh:
    triangles: sad.Pointer[Triangle]


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]
    exposure: float


@sad.function
def first_corner(scene: Scene) -> float:
    return scene.meshes[0].triangles[0].v0.x


@first_corner.backward_derivative
def first_corner_bwd(scene: sad.DifferentialPair[Scene], d_out: float):
    scene.d.meshes[0].triangles[0].v0.x += d_out


@sad.kernel
def heights(i: sad.Index, scene: Scene, out: sad.Out[float]):
    mesh = scene.meshes[i]
    total = first_corner(scene)
    for k in range(len(mesh.triangles)):
        t = mesh.triangles[k]
        total += t.v0.y + t.v1.y * t.v2.y
    out[i] = total * scene.exposure


def triangles(*corners: tuple[list[float], list[float], list[float]]) -> sad.Array:
    v0, v1, v2 = (np.float32(column) for column in zip(*corners, strict=True))
    return sad.array({"v0": v0, "v1": v1, "v2": v2}, dtype=Triangle)


def make_scene() -> Scene:
    """Two meshes, of one triangle and of two."""
    one = triangles(([1, 2, 0], [0, 3, 0], [0, 4, 0]))
    two = triangles(([0, 1, 0], [0, 1, 0], [0, 1, 0]), ([0, 5, 0], [0, 2, 0], [0, 2, 0]))
    return Scene(sad.pointer([Mesh(sad.pointer(one)), Mesh(sad.pointer(two))]), exposure=0.5)


def main() -> None:
    out, pullback = sad.vjp(heights, make_scene(), dim=2)
    print("heights:", out.numpy())
    (by_scene,) = pullback(np.float32([1.0, 10.0]))
    for k in range(2):
        print(f"gradient of mesh {k}:")
        print(by_scene.meshes[k].triangles.numpy())
    print("by exposure:", float(by_scene.exposure))


if __name__ == "__main__":
    main()
