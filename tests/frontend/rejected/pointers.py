"""Pointers where they cannot lie, written through, mixed, or differentiated forward."""

import shaderad as sad
from shaderad import float4


@sad.struct
class Triangle:
    v0: float4


@sad.struct
class Mesh:
    triangles: sad.Pointer[Triangle]
    scale: float


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]
    others: sad.Pointer[Mesh]


def what_a_pointer_leads_to_is_written():
    @sad.kernel
    def k(i: sad.Index, scene: Scene):
        scene.meshes[0].triangles[i].v0.x = 1.0  # error: SR0208 | scene.meshes[0].triangles[i].v0.x | write to an `sad.Out` array
    return k


def what_a_pointer_leads_to_is_added_to():
    @sad.kernel
    def k(i: sad.Index, values: sad.Pointer[float]):
        values[i] += 1.0  # error: SR0208 | values[i] | it is read only
    return k


def two_indices_of_a_pointer():
    @sad.kernel
    def k(i: sad.Index, values: sad.Pointer[float], out: sad.Out[float]):
        out[i] = values[i, 0]  # error: SR0307 | values[i, 0] | 2
    return k


def negative_index_of_a_pointer():
    @sad.kernel
    def k(i: sad.Index, values: sad.Pointer[float], out: sad.Out[float]):
        out[i] = values[-1]  # error: SR0308 | -1 | positions count from 0
    return k


def attribute_of_a_pointer():
    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        out[i] = scene.meshes.scale  # error: SR0310 | scene.meshes.scale | read as `pointer[k]`
    return k


def name_that_would_point_into_two_arrays():
    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        mesh = scene.meshes[0]
        if i > 3:
            mesh = scene.others[0]  # error: SR0317 | mesh | its pointers lead elsewhere
        out[i] = mesh.scale
    return k


def conditional_of_two_arrays():
    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        mesh = scene.meshes[0] if i > 3 else scene.others[0]  # error: SR0304 | scene.meshes[0] if i > 3 else scene.others[0] | give both sides one type
        out[i] = mesh.scale
    return k


def array_of_structs_with_pointers_that_is_written():
    @sad.kernel
    def k(
        i: sad.Index,
        out: sad.Out[Mesh],  # error: SR0301 | out: sad.Out[Mesh] | pointers lie in structs
    ):
        out[i].scale = 1.0
    return k


def array_of_structs_with_pointers_and_two_axes():
    @sad.kernel
    def k(
        i: sad.Index,
        meshes: sad.In[Mesh, 2],  # error: SR0301 | meshes: sad.In[Mesh, 2] | have one axis
    ):
        pass

    return k


def local_array_of_pointers():
    @sad.kernel
    def k(
        i: sad.Index,
        scenes: sad.LocalArray[Mesh, 3],  # error: SR0301 | scenes: sad.LocalArray[Mesh, 3] | pointers lie in structs
    ):
        pass
    return k


def pointer_to_pointers():
    @sad.kernel
    def k(
        i: sad.Index,
        p: sad.Pointer[sad.Pointer[float]],  # error: SR0301 | p: sad.Pointer[sad.Pointer[float]] | pointers lie in structs
    ):
        pass
    return k


def pair_of_pointers_without_floats_behind_them():
    @sad.function
    def first(p: sad.Pointer[int]) -> int:
        return p[0]

    @first.backward_derivative
    def first_bwd(
        p: sad.DifferentialPair[sad.Pointer[int]],  # error: SR0301 | p: sad.DifferentialPair[sad.Pointer[int]] | holds no float
    ):
        pass

    @sad.kernel
    def k(i: sad.Index, p: sad.Pointer[int], out: sad.Out[int]):
        out[i] = first(p)
    return k


def forward_derivative_of_what_reads_behind_pointers():
    @sad.function
    def first(p: sad.Pointer[float]) -> float:
        return p[0]

    @first.forward_derivative
    def first_fwd(p: sad.DifferentialPair[sad.Pointer[float]]) -> sad.DifferentialPair[float]:  # error: SR0249 | def first_fwd(p: sad.DifferentialPair[sad.Pointer[float]]) -> sad.DifferentialPair[float]: | pass the elements as arguments
        return sad.diff_pair(p.p[0])

    @sad.kernel
    def k(i: sad.Index, p: sad.Pointer[float], out: sad.Out[float]):
        out[i] = first(p)
    return k


def gradient_behind_a_pointer_is_read():
    @sad.function
    def first(mesh: Mesh) -> float:
        return mesh.triangles[0].v0.x

    @first.backward_derivative
    def first_bwd(mesh: sad.DifferentialPair[Mesh], d_out: float):
        mesh.d.scale += mesh.d.triangles[0].v0.x  # error: SR0208 | mesh.d.triangles[0] | it only takes `+=`, `-=` and `=`

    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        out[i] = first(scene.meshes[0])
    return k


def float_beside_a_pointer_in_gradient_memory_is_read():
    @sad.function
    def first(scene: Scene) -> float:
        return scene.meshes[0].scale

    @first.backward_derivative
    def first_bwd(scene: sad.DifferentialPair[Scene], d_out: float):
        scene.d.meshes[0].scale += d_out
        scene.d.meshes[1].scale = scene.d.meshes[0].scale  # error: SR0208 | scene.d.meshes[0].scale | gradient behind a pointer

    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        out[i] = first(scene)
    return k


def differential_of_pointers_as_a_value():
    @sad.function
    def first(scene: Scene) -> float:
        return scene.meshes[0].scale

    @first.backward_derivative
    def first_bwd(scene: sad.DifferentialPair[Scene], d_out: float):
        found = scene.d  # error: SR0238 | scene.d | the gradient side of `Scene`
        found.meshes[0].scale += d_out

    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        out[i] = first(scene)
    return k


def pair_made_of_pointers():
    @sad.kernel
    def k(i: sad.Index, scene: Scene, out: sad.Out[float]):
        pair = sad.diff_pair(scene.meshes[0])  # error: SR0312 | sad.diff_pair(scene.meshes[0]) | no pointers
        out[i] = pair.p.scale
    return k
