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


@sad.struct
class Body:
    id: int
    spring: Spring
    mass: float
    is_fixed: bool


@sad.function
def moved(b: Body) -> Body:
    return Body(b.id + 1, Spring(b.spring.x * b.mass, b.spring.n, b.spring.q * b.mass),
                b.mass * b.mass, b.is_fixed)  # fmt: skip


@sad.function
def falling(b: Body) -> float:
    return energy(b.spring) * b.mass * float(b.id)


@sad.function
def direction(x: float) -> Body:
    return Body(7, Spring(x, 9, float2(1.0, x)), 2.0, True)


@sad.kernel
def slopes(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    b = Body(2, Spring(x[i], 3, float2(2.0, x[i])), x[i], False)
    d = direction(x[i])
    named = sad.fwd_diff(falling)(sad.diff_pair(b, d)).d
    called = sad.fwd_diff(falling)(sad.diff_pair(b, direction(x[i]))).d
    written = sad.diff_pair(b, Body(i, Spring(x[i], i, float2(1.0, x[i])), 2.0, i > 1))
    chosen = sad.diff_pair(b, d if i >= 0 else b)
    y[i] = float3(named, called, sad.fwd_diff(falling)(written).d + sad.fwd_diff(falling)(chosen).d)


@sad.kernel
def flat_slope(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = Spring(x[i], 3, float2(2.0, x[i]))
    d = Spring(x[i], i, float2(x[i], x[i]))
    y[i] = sad.fwd_diff(energy)(sad.diff_pair(s, d)).d


@sad.kernel
def pulled_back(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    p = sad.diff_pair(Body(2, Spring(x[i], 3, float2(2.0, x[i])), x[i], False))
    sad.bwd_diff(moved)(p, direction(x[i]))
    y[i] = float3(p.d.mass, p.d.spring.x, p.d.spring.q.y)


def test_a_struct_with_ints_is_its_own_differential() -> None:
    """The ints and bools are left out, at any depth."""
    # falling = (3 * s * q.x + q.y) * mass * 2 at s = q.y = mass = x, q.x = 2.
    along = 2 * ((3 * X * 2 + 3 * X * 1 + X) * X + (3 * X * 2 + X) * 2)
    found = slopes(X, dim=3).numpy()
    np.testing.assert_allclose(found, np.stack([along, along, 2 * along], 1), rtol=1e-6)
    sad.gradcheck(flat_slope, X, dim=3)
    # s * m, q * m, m * m pulled back from (x, (1, x), 2): by mass, by s, by q.y.
    by_mass = X * X + 2.0 + X * X + 2 * 2 * X
    found = pulled_back(X, dim=3).numpy()
    np.testing.assert_allclose(found, np.stack([by_mass, X * X, X * X], 1), rtol=1e-6)


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
