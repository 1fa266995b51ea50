"""Vectors and matrices inside kernels, each beside what it must give."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float2, float3, float4
from tests.frontend.batches import gives

# -- vectors -----------------------------------------------------------------------------------


@gives(lambda x, y: x + 10 * y + 100 * (x + y))
@sad.function
def components(x: float, y: float) -> float:
    v = float3(x, y, x + y)
    return v.x + 10.0 * v.y + 100.0 * v.b


@gives(lambda x, y: 3 * y + 5 * x + 7 * y + 9 * 2)
@sad.function
def swizzles(x: float, y: float) -> float:
    v = float4(x, y, 1.0, 2.0)
    w = v.yxyw * float4(3, 5, 7, 9)
    return w.x + w.y + w.z + w.w


@gives(lambda x, y: 3 * x + 5 * y + 7)
@sad.function
def swizzle_writes(x: float, y: float) -> float:
    v = float3(1.0)
    v.zx = float2(x, y)
    return v.z * 3.0 + v.x * 5.0 + v.y * 7.0


@gives(lambda x, y: (x + 2) * 2 + 10 * (y * 3))
@sad.function
def augmented_components(x: float, y: float) -> float:
    v = float2(x, y)
    v.x += 2
    v.x *= 2
    v[1] *= 3
    return v.x + 10.0 * v.y


@gives(lambda x, y: y + 10 * x)
@sad.function
def component_swap(x: float, y: float) -> float:
    v = float2(x, y)
    v.x, v.y = v.y, v.x
    return v.x + 10.0 * v.y


@gives(lambda x, y: y + 10 * x)
@sad.function
def swizzle_swap(x: float, y: float) -> float:
    v = float2(x, y)
    v.xy = v.yx
    return v.x + 10.0 * v.y


@gives(lambda x, y: sum((k + 1) * c for k, c in enumerate([x, y, x * y + 1])))
@sad.function
def components_by_variable(x: float, y: float) -> float:
    v = float3(x, y, 0.0)
    for k in range(3):
        if k == 2:
            v[k] = x * y
            v[k] += 1
    s = 0.0
    for k in range(len(v)):
        s += (k + 1) * v[k]
    return s


@gives(lambda x, y: x + 2 * y + 3 * y + 4 * x)
@sad.function
def vectors_from_parts(x: float, y: float) -> float:
    v = float4(float2(x, y), float2(y, x))
    w = float4(v.x, v.yz, v.w)
    return sad.dot(w, float4(1, 2, 3, 4))


@gives(lambda x, y: 3 + 2 * int(x) - 0.5)
@sad.function
def vectors_convert(x: float, y: float) -> float:
    n = sad.int2(x, 3.0) * sad.int2(2, 1)
    v = float2(n) - 0.25
    return v.x + v.y


@gives(lambda x, y: (1 if x > y else 0) + (2 if 0.5 > y else 0) + (4 if x > y or 0.5 > y else 0))
@sad.function
def vector_comparison(x: float, y: float) -> float:
    above = float2(x, 0.5) > y
    chosen = sad.select(above, float2(1, 2), float2(0, 0))
    return chosen.x + chosen.y + (4.0 if sad.any(above) else 0.0)


@gives(lambda x, y: 2 * x - (y - 1) / 2 + (4 - x) - 2 * y)
@sad.function
def scalars_repeat_over_vectors(x: float, y: float) -> float:
    v = float2(x, y)
    v = v * 2 - (v - 1.0) / 2 + (4 - v)
    v.y = 0.0
    w = float2(x, y)
    return v.x + (x - 1.0) / 2.0 - (y - 1.0) / 2.0 - 2 * w.y


@gives(lambda x, y: x + 10 * y)
@sad.function
def vectors_unpack(x: float, y: float) -> float:
    a, b = float2(x, y)
    return a + 10.0 * b


@gives(lambda x, y: np.hypot(x, y) + x * y - (x * 3 - y * 2) + min(x, 1) + max(y, 1))
@sad.function
def vector_functions(x: float, y: float) -> float:
    v = float2(x, y)
    s = sad.length(v) + sad.dot(v, float2(y, 0))
    s -= sad.cross(float3(v, 0), float3(2, 3, 0)).z
    return s + sad.min(v, float2(1)).x + sad.max(v, 1).y


@gives(lambda x, y: x)
@sad.function
def vectors_are_copied(x: float, y: float) -> float:
    a = float2(x, y)
    b = a
    b.x = 77.0
    return a.x


# -- matrices ----------------------------------------------------------------------------------


@gives(lambda x, y: (x * y + 2 * 3) + 10 * (3 * y + 4 * 3))
@sad.function
def matrix_times_vector(x: float, y: float) -> float:
    m = sad.float2x2(x, 2, 3, 4)
    r = m @ float2(y, 3)
    return r.x + 10 * r.y


@gives(lambda x, y: (y * x + 3 * 3) + 10 * (y * 2 + 3 * 4))
@sad.function
def vector_times_matrix(x: float, y: float) -> float:
    m = sad.float2x2(float2(x, 2), float2(3, 4))
    r = float2(y, 3) @ m
    return r.x + 10 * r.y


@gives(lambda x, y: float((np.array([[x, y], [1, 2]]) @ np.array([[2, 1], [y, x]]))[1, 0]))
@sad.function
def matrix_product(x: float, y: float) -> float:
    return (sad.float2x2(x, y, 1, 2) @ sad.float2x2(2, 1, y, x))[1, 0]


@gives(lambda x, y: x * 2 + 100 * (y * 5))
@sad.function
def matrix_product_by_element(x: float, y: float) -> float:
    m = sad.float2x2(x, y, 1, 2) * sad.float2x2(2, 5, 7, 7)
    return m[0][0] + 100 * m[0, 1]


@gives(lambda x, y: 3 * x + 5 * y + 7 * 9 + 11 * (1 + y))
@sad.function
def matrix_element_writes(x: float, y: float) -> float:
    m = sad.float2x2.identity()
    m[0, 0] = x
    m[0][1] = y
    m[1].x = 9.0
    m[1, 1] += y
    return 3.0 * m[0].x + 5.0 * m[0, 1] + 7.0 * m[1][0] + 11.0 * m[1, 1]


@gives(lambda x, y: y + 2 * x + 3 * 3 + 4 * 4)
@sad.function
def matrix_row_writes(x: float, y: float) -> float:
    m = sad.float2x2(1, 2, 3, 4)
    m[0] = float2(y, x)
    return m[0, 0] + 2 * m[0, 1] + 3 * m[1, 0] + 4 * m[1, 1]


@gives(lambda x, y: sum(k * v for k, v in enumerate([x, 0, 2, y, 0, 4])))
@sad.function
def matrix_elements_by_variable(x: float, y: float) -> float:
    m = sad.float3x2(x, 1, 2, y, 1, 4)
    for r in range(3):
        for c in range(2):
            if m[r][c] == 1:
                m[r][c] = 0.0
    s = 0.0
    for r in range(len(m)):
        for c in range(2):
            s += (2 * r + c) * m[r, c]
    return s


@gives(lambda x, y: 3 + x + 10 * (x * 4 - 2 * 3))
@sad.function
def transpose_and_determinant(x: float, y: float) -> float:
    m = sad.float2x2(x, 2, 3, 4)
    t = sad.transpose(m)
    return t[0, 1] + t[0][0] + 10 * sad.determinant(m)
