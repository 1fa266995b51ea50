"""Structs, local arrays and bits inside kernels, each beside what it must give."""

from __future__ import annotations

import math

import numpy as np

import shaderad as sad
from shaderad import float2
from tests.frontend.batches import gives


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
