"""Functions called from Python on numbers: the kernel language's meaning, in double precision."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3, int2


class Shape(IntEnum):
    CIRCLE = 1
    SQUARE = 2


@sad.struct
class Ray:
    origin: float3
    direction: float3
    depth: int

    def at(self, t: float) -> float3:
        return self.origin + t * self.direction

    def deeper(self):
        r = self
        r.depth += 1
        r.origin.x = 0.0
        return r


@sad.function
def cube(x: float) -> float:
    return x * x * x


@sad.function
def statistics(v: float3, m: float2x2):
    return sad.dot(v, v), m @ v.xy, v.x > 0.0


@sad.function
def whole(a: int, b: int) -> int:
    return a * b // 2


@sad.function
def area(kind: sad.Const[Shape], size: float) -> float:
    return size * size if kind == Shape.SQUARE else math.pi * size * size


@sad.function
def march(ray: Ray, steps: int) -> tuple[Ray, float]:
    total = 0.0
    for k in sad.range(steps, limit=4):
        ray = ray.deeper()
        total += ray.at(float(k)).z
    return ray, total


@sad.function
def shifted(values: sad.LocalArray[float, 3], k: int) -> sad.LocalArray[float, 3]:
    values[k] += 1.0
    return values


@sad.function
def pick(values: sad.LocalArray[float, 3], k: int) -> float:
    return values[k]


@sad.function
def reciprocal(n: int) -> int:
    assert n != 7, "seven"
    return 100 // n


def test_numbers_keep_their_double_precision() -> None:
    assert cube(0.1) == 0.1 * 0.1 * 0.1
    assert type(cube(np.float32(0.5))) is float
    assert cube(2) == 8.0


def test_ints_wrap_as_in_a_kernel() -> None:
    assert whole(2**16, 2**16) == 0
    assert whole(-3, 1) == -2
    assert type(whole(1, 2)) is int


def test_vectors_and_matrices_are_numpy_arrays_and_tuples_are_tuples() -> None:
    squared, product, is_right = statistics(float3(1, 2, 3), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert squared == 14.0
    assert product.tolist() == [5.0, 11.0]
    assert is_right is True


def test_structs_are_copied_and_come_back_as_their_class() -> None:
    ray = Ray(float3(1, 2, 3), float3(0, 0, 0.5), 4)
    found, total = march(ray, 3)
    assert isinstance(found, Ray)
    assert (found.depth, found.origin.tolist()) == (7, [0.0, 2.0, 3.0])
    assert (ray.depth, ray.origin.tolist()) == (4, [1.0, 2.0, 3.0])
    assert total == 3.0 + 3.5 + 4.0
    assert ray.at(2.0).tolist() == [1.0, 2.0, 4.0]
    assert Ray.at(ray, t=2.0).tolist() == [1.0, 2.0, 4.0]


def test_constants_and_enums_are_compiled_in() -> None:
    assert area(Shape.SQUARE, 3.0) == 9.0
    assert area(Shape.CIRCLE, 1.0) == pytest.approx(math.pi, rel=1e-15)


SCALE = 2.0


@sad.function
def scaled(x: float) -> float:
    return SCALE * x


def test_captured_numbers_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scaled(1.5) == 3.0
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert scaled(1.5) == 6.0


def test_what_a_kernel_would_report_is_raised_with_its_line() -> None:
    with pytest.raises(sad.BoundsError, match="index 3 is out of range") as bounds:
        pick([1.0, 2.0, 3.0], 3)
    assert bounds.value.code == "SR0671"
    assert bounds.value.span.text() == "    return values[k]"
    for call, code in (
        (lambda: march(Ray(float3(0), float3(0), 0), 9), "SR0672"),
        (lambda: reciprocal(7), "SR0673"),
        (lambda: reciprocal(0), "SR0674"),
    ):
        with pytest.raises(sad.Error) as raised:
            call()
        assert raised.value.code == code


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(sad.ShapeError, match="`b`"):
        whole(1, 2.5)
    with pytest.raises(sad.CallError, match="SR0293"):
        cube()


def test_local_arrays_are_refused_where_a_kernel_refuses_them() -> None:
    with pytest.raises(sad.LanguageError, match="copy it first"):
        shifted([1.0, 2.0, 3.0], 1)


def test_functions_of_functions_run_in_the_interpreter_too() -> None:
    assert sum_of_cubes(int2(1, 2)) == 9.0


@sad.function
def sum_of_cubes(v: int2) -> float:
    return cube(float(v.x)) + cube(float(v.y))


@sad.function
def plain(p: float2) -> float2:
    return float2(p.y, p.x) * 2.0


def test_arrays_of_values_run_the_python_body() -> None:
    assert cube(np.array([1.0, 2.0])).tolist() == [1.0, 8.0]
    assert plain(float2(1, 2)).tolist() == [4.0, 2.0]
