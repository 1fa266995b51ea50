"""Vectors, matrices, structs and local arrays inside kernels, each beside what it must give."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import shaderad as sad
from shaderad import float2, float3, float4
from shaderad.frontend.host import UserFunction

EXPECTED: dict[str, Callable[[float, float], float]] = {}


def gives(expected: Callable[[float, float], float]) -> Callable[[UserFunction], UserFunction]:
    """Notes what the function must give for two floats."""

    def note(function: UserFunction) -> UserFunction:
        EXPECTED[function.name] = expected
        return function

    return note


@sad.struct
class Point:
    x: float
    y: float

    def length(self) -> float:
        return math.sqrt(self.x * self.x + self.y * self.y)

    def moved(self, by: Point) -> Point:
        return Point(self.x + by.x, self.y + by.y)

    def scaled(self, factor: float) -> Point:
        own = self
        own.x *= factor
        own.y *= factor
        return own


@sad.struct
class Segment:
    start: Point
    end: Point
    width: float = 0.5
    tags: sad.LocalArray[int, 3] = None

    def vector(self) -> Point:
        return Point(y=self.end.y - self.start.y, x=self.end.x - self.start.x)

    def span(self) -> float:
        return self.vector().length() * self.width


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


# -- structs -----------------------------------------------------------------------------------


@gives(lambda x, y: math.hypot(2 * x, 2 * y))
@sad.function
def methods(x: float, y: float) -> float:
    p = Point(x, y)
    return p.moved(p).length()


@gives(lambda x, y: x + 10 * 3 * x)
@sad.function
def methods_do_not_change_their_owner(x: float, y: float) -> float:
    p = Point(x, y)
    q = p.scaled(3)
    return p.x + 10 * q.x


@gives(lambda x, y: math.hypot(x - 1, y - 2) * 0.5 + x)
@sad.function
def nested_structs(x: float, y: float) -> float:
    s = Segment(Point(1, 2), Point(0, 0), tags=sad.LocalArray[int, 3]())
    s.end = Point(x, 7)
    s.end.y = y
    return s.span() + s.end.x


@gives(lambda x, y: x + 10 * 5 + 100 * 12)
@sad.function
def arrays_in_structs(x: float, y: float) -> float:
    s = Segment(Point(x, y), Point(x, y), 1.0, sad.LocalArray[int, 3]())
    t = s
    for k in range(3):
        s.tags[k] = k + 4
        t.tags[k] += 3 * k
    t.tags[2] += 6
    t.start.x += 1.0
    return s.start.x + 10 * s.tags[1] + 100 * t.tags[2]


@gives(lambda x, y: y + 10 * x)
@sad.function
def structs_in_conditionals(x: float, y: float) -> float:
    p = Point(y, x) if x * x >= 0 else Point(0, 0)
    return p.x + 10 * p.y


@gives(lambda x, y: x + 10 * y)
@sad.function
def field_swap(x: float, y: float) -> float:
    p, q = Point(y, 0), Point(x, 0)
    p, q = q, p
    p.y, q.y = q.x, p.x
    return p.x + 10 * p.y


# -- local arrays ------------------------------------------------------------------------------


@sad.function
def table(x: float) -> sad.LocalArray[float, 4]:
    t = sad.LocalArray[float, 4]()
    for k in range(4):
        t[k] = x * k
    return t


@sad.function
def total(t: sad.LocalArray[float, 4]) -> float:
    s = 0.0
    for k in range(len(t)):
        s += t[k]
    return s


@gives(lambda x, y: 6 * x + 6 * (x + y))
@sad.function
def arrays_pass_and_return(x: float, y: float) -> float:
    return total(table(x)) + total(table(x + y))


@gives(lambda x, y: 3 * x + 100)
@sad.function
def arrays_are_copied(x: float, y: float) -> float:
    a = table(x)
    b = a
    b[3] = 100.0
    return a[3] + b[3]


@gives(lambda x, y: x + 10 * y)
@sad.function
def array_element_swap(x: float, y: float) -> float:
    t = sad.LocalArray[float, 2]()
    t[0], t[1] = y, x
    k = 0
    t[k], t[k + 1] = t[k + 1], t[k]
    return t[0] + 10 * t[1]


@gives(lambda x, y: 21 * x)
@sad.function
def index_is_bound_before_the_next_target(x: float, y: float) -> float:
    t = sad.LocalArray[float, 3]()
    k = 0
    k, t[k] = 1, x
    t[k + 1], k = 20 * x, 2
    return t[0] + t[1] + t[2]


@gives(lambda x, y: sum(r * 10 + c + (x if r == c else 0) for r in range(2) for c in range(3)))
@sad.function
def nested_arrays(x: float, y: float) -> float:
    t = sad.LocalArray[sad.LocalArray[float, 3], 2]()
    for r in range(2):
        for c in range(3):
            t[r][c] = r * 10 + c
            if r == c:
                t[r][c] += x
    s = 0.0
    for r in range(2):
        row = t[r]
        for c in range(3):
            s += row[c]
    return s


@gives(lambda x, y: 2 * x + 3 * y)
@sad.function
def arrays_of_vectors_and_structs(x: float, y: float) -> float:
    v = sad.LocalArray[float2, 2]()
    v[1].y = x
    v[1].y *= 2
    p = sad.LocalArray[Point, 2]()
    k = int(x * 0.0)
    p[k].x = y
    p[k].x += v[0].x
    return v[1].y + 3 * p[0].x + p[1].y


@gives(lambda x, y: x * 3)
@sad.function
def index_is_evaluated_once(x: float, y: float) -> float:
    t = sad.LocalArray[float, 4]()
    k = 1
    t[k + 1] += x
    t[k + 1] *= 3
    return t[2]


@gives(lambda x, y: 0.0)
@sad.function
def arrays_start_at_zero_each_time(x: float, y: float) -> float:
    s = 0.0
    for _ in range(3):
        t = sad.LocalArray[float, 2]()
        s += t[0]
        t[0] = x
    return s


@gives(lambda x, y: x)
@sad.function
def conditional_arrays_are_read_once(x: float, y: float) -> float:
    a = table(x)
    b = table(y) if x != x else a
    b[1] = b[1] + 0
    return b[1]


# -- numbers -----------------------------------------------------------------------------------


@gives(lambda x, y: float(np.float32(x).view(np.int32) & 0xFF))
@sad.function
def bits_of_a_float(x: float, y: float) -> float:
    return float(sad.bitcast(int, x) & 255)


@gives(lambda x, y: x)
@sad.function
def bits_there_and_back(x: float, y: float) -> float:
    return sad.bitcast(float2, sad.bitcast(sad.uint2, float2(y, x))).y


@gives(lambda x, y: float(_pcg(int(abs(x) * 8)) >> 8) * 2.0**-24)
@sad.function
def random_numbers(x: float, y: float) -> float:
    return sad.uniform01(sad.pcg(sad.uint(abs(x) * 8)))


@gives(lambda x, y: float((int(y) - 3) % 2**32 >> 20))
@sad.function
def unsigned_wraps(x: float, y: float) -> float:
    n = sad.uint(int(y)) - 3
    return float(n >> 20)


@gives(lambda x, y: float(4294967295 // 7 % 1000))
@sad.function
def unsigned_division(x: float, y: float) -> float:
    n = sad.uint(4294967295)
    if x == x:
        n = n // 7
    return float(n % 1000)


@gives(lambda x, y: 5 * y)
@sad.function
def detach_is_the_value(x: float, y: float) -> float:
    return sad.detach(y) * sad.detach(5)


@gives(lambda x, y: x if x > y else y)
@sad.function
def select_chooses(x: float, y: float) -> float:
    return sad.select(x > y, x, y)


@gives(lambda x, y: x + (y - x) * 0.25 + (x - math.floor(x)) + min(max(x, 0), 1) + 1 / y)
@sad.function
def intrinsics(x: float, y: float) -> float:
    return sad.lerp(x, y, 0.25) + sad.frac(x) + sad.saturate(x) + sad.rcp(y)


def _pcg(value: int) -> int:
    state = (value * 747796405 + 2891336453) % 2**32
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 % 2**32
    return (word >> 22) ^ word
