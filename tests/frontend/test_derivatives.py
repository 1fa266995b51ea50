"""The user's own derivatives, of methods and of structs that hold arrays, ints and vectors."""

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3

pytestmark = pytest.mark.usefixtures("device")
X = np.float32([1, 2, 3])


@sad.struct
class Mesh:
    vertices: sad.In[float3]
    faces: sad.In[sad.int3]
    scale: float

    def interpolate(self, f: int, uv: float2) -> float3:
        t = self.faces[f]
        return (self.vertices[t.x] * uv.x + self.vertices[t.y] * uv.y) * self.scale


@Mesh.interpolate.backward_derivative
def interpolate_bwd(
    self: sad.DifferentialPair[Mesh], f: int, uv: sad.DifferentialPair[float2], d_out: float3
):
    t = self.p.faces[f]
    g = d_out * self.p.scale
    self.d.vertices[t.x] += g * uv.p.x
    self.d.vertices[t.y].xz += (g * uv.p.y).xz
    self.d.vertices[t.y].y += g.y * uv.p.y
    inner = self.p.vertices[t.x] * uv.p.x + self.p.vertices[t.y] * uv.p.y
    self.d.scale += sad.dot(d_out, inner)
    uv.d += float2(sad.dot(g, self.p.vertices[t.x]), sad.dot(g, self.p.vertices[t.y]))


@sad.kernel
def shade(i: sad.Index, mesh: Mesh, uv: sad.In[float2], y: sad.Out[float3]):
    y[i] = mesh.interpolate(i % 3, uv[i])


@sad.struct
class Spring:
    x: float
    n: int
    q: float2


@sad.function
def energy(p: Spring) -> float:
    return p.x * p.q.x * p.n + p.q.y


@energy.backward_derivative
def energy_bwd(p: sad.DifferentialPair[Spring], d_out: float):
    p.d.x += p.p.q.x * p.p.n * d_out
    p.d.q.x += p.p.x * p.p.n * d_out
    p.d.q.y = d_out


@energy.forward_derivative
def energy_fwd(p: sad.DifferentialPair[Spring]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(energy(p.p), (p.p.x * p.d.q.x + p.d.x * p.p.q.x) * p.p.n + p.d.q.y)


@sad.kernel
def energies(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = energy(Spring(x[i], 3, float2(2.0, x[i])))


@sad.kernel
def energy_gradients(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    p = sad.diff_pair(Spring(x[i], 3, float2(2.0, x[i])))
    sad.bwd_diff(energy)(p, 2.0)
    y[i] = float3(p.d.x, p.d.q.x, p.d.q.y)


def test_a_method_of_a_struct_of_arrays_has_its_own_backward() -> None:
    rng = np.random.default_rng(1)
    faces = rng.integers(0, 5, (3, 3)).astype(np.int32)
    mesh = Mesh(rng.standard_normal((5, 3)).astype(np.float32), faces, 2.0)
    sad.gradcheck(shade, mesh, rng.random((6, 2)).astype(np.float32), dim=6)


def test_derivatives_of_a_struct_agree_in_both_modes() -> None:
    sad.gradcheck(energies, X, dim=3)


def test_the_gradient_of_a_struct_has_its_float_fields() -> None:
    found = energy_gradients(X, dim=3).numpy()
    assert found.tolist() == [[12.0, 6.0 * x, 2.0] for x in X]
