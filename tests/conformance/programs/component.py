"""Reading and writing components of vectors and elements of matrices."""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3, float3x3
from tests.conformance.programs.program import over_kernel


@sad.kernel
def write_components(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    y[i].x = x[i] * 2
    y[i].y = x[i] * 3
    y[i].z = x[i] * 4


@sad.kernel
def add_components(i: sad.Index, a: sad.In[float3], b: sad.Out[float3]):
    tmp = float3(0.0)
    tmp[0] += a[i][0]
    tmp[1] += a[i][1]
    tmp[2] += a[i][2]
    b[i] = tmp


@sad.kernel
def reassign_component(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = float3(0.0)
    v.x = x[i]
    s = v.x * v.x
    v.x = x[i] * x[i]
    y[i] = s + 3.0 * v.x


@sad.kernel
def scale_components(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = float3(1.0, 2.0, 3.0)
    v[1] *= x[i]
    v[2] /= x[i]
    y[i] = v[1] * v[1] + v[2]


@sad.kernel
def read_component_by_variable(
    i: sad.Index, v: sad.In[float3], idx: sad.In[int], y: sad.Out[float]
):
    y[i] = v[i][idx[i]] * v[i][0]


@sad.kernel
def write_matrix_elements(i: sad.Index, x: float, y: sad.Out[float3]):
    m = float3x3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    m[1, 2] = x
    m[0][0] = x * x
    m[2, 1] += 2.0 * x
    y[i] = m @ float3(1.0, 2.0, 3.0)


@sad.kernel
def write_swizzled(i: sad.Index, a: float3, b: float2, y: sad.Out[float]):
    v = a
    v.zx = b.xy * a.yy
    w = float3(0.0)
    w.xyz = v.zyx
    y[i] = sad.dot(w, float3(1.0, 2.0, 4.0))


PROGRAMS = {
    "warp-seed002-component-write": over_kernel(write_components, dim=3),
    "warp-seed003-component-iadd": over_kernel(add_components, "b", dim=2),
    "own-component-reassign": over_kernel(reassign_component, dim=2),
    "own-component-imul": over_kernel(scale_components, dim=2),
    "own-component-dynindex-read": over_kernel(read_component_by_variable, dim=2),
    "own-matrix-element-write": over_kernel(write_matrix_elements, dim=1),
    "slang-swizzle-write": over_kernel(write_swizzled, dim=1),
}
