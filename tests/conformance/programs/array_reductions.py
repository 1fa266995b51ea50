"""Reductions with the operators that have names, and with any associative function."""

# The names of sizes are strings in annotations.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2x2, float4
from tests.conformance.programs.program import over_arrays


@sad.struct
class Sums:
    a: float
    b: float
    c: float


@sad.function
def added(left: Sums, right: Sums) -> Sums:
    return Sums(left.a + right.a, left.b + right.b, left.c + right.c)


@sad.function
def twice_the_product(x: float, y: float) -> float:
    return 2.0 * x * y


@sad.function
def matrix_of(row: float4) -> float2x2:
    return float2x2(row.x, row.y, row.z, row.w)


@sad.function
def entries_of(m: float2x2) -> float4:
    return float4(m[0].x, m[0].y, m[1].x, m[1].y)


def cost(P: Any, c: Any) -> Any:
    apart = P[:, None, :] - c[None, :, :]
    return sad.sum(sad.min(sad.sum(apart * apart, axis=2), axis=1))


def total(x: Any) -> Any:
    return sad.sum(x)


def scaled_product(c: Any, x: Any) -> Any:
    return c * sad.prod(x)


def times_product(x: Any) -> Any:
    return x * sad.prod(x)


def from_the_mean(x: Any) -> Any:
    m = sad.sum(x)
    return sad.sum(x - m) + m


def largest_magnitude(x: Any) -> Any:
    return sad.max(abs(x))


def smallest_and_largest(x: Any) -> Any:
    magnitude = abs(x)
    return sad.min(magnitude), sad.max(magnitude)


def of_two(a: Any, b: Any, c: Any) -> Any:
    return sad.max(a, b), sad.min(a, b), sad.clamp(c, 0.0, 1.0)


def without_nan(x: Any) -> Any:
    return sad.min(x), sad.max(x)


def column_sums(A: Any) -> Any:
    return sad.sum(A, axis=0)


def products_over_rows(X: Any) -> Any:
    return sad.prod(X, axis=0)


@sad.graph
def matrix_product(X: sad.Array[float4, "n"]) -> sad.Array[float4]:
    product = sad.reduce(sad.matmul, sad.map(matrix_of, X), np.eye(2))
    return sad.map(entries_of, product)


def three_sums(A: Any, B: Any, C: Any) -> Any:
    found = sad.reduce(added, Sums(A, B, C), Sums(0.0, 0.0, 0.0))
    return found.a, found.b, found.c


def folded(x: Any) -> Any:
    return sad.reduce(twice_the_product, x, 0.5)


def of_nothing(x: Any) -> Any:
    return sad.sum(x), sad.prod(x)


def of_one(x: Any) -> Any:
    return sad.sum(x), sad.prod(x), sad.max(x), sad.scan(sad.add, x)


def sum_and_product(x: Any) -> Any:
    return sad.sum(x), sad.prod(x)


PROGRAMS = {
    "fut-kmeans/arrays": over_arrays(cost, "cost"),
    "fut-reduce-sum/arrays": over_arrays(total),
    "fut-reduce-mul-nozero/arrays": over_arrays(scaled_product),
    "fut-reduce-mul-onezero/arrays": over_arrays(scaled_product),
    "fut-reduce-mul-twozeros/arrays": over_arrays(scaled_product),
    "fut-reducemul4/arrays": over_arrays(times_product),
    "fut-reduce2/arrays": over_arrays(from_the_mean),
    "fut-maximum-abs/arrays": over_arrays(largest_magnitude),
    "fut-maximum-tie/arrays": over_arrays(largest_magnitude),
    "fut-minmax-both/arrays": over_arrays(smallest_and_largest, "lo hi"),
    "own-binary-max-tie/arrays": over_arrays(of_two, "y0 y1 y2"),
    "warp-max-nan/arrays": over_arrays(without_nan, "lo hi"),
    "fut-reduce3-vecadd/arrays": over_arrays(column_sums),
    "fut-reducevec0/arrays": over_arrays(products_over_rows),
    "fut-reduce1-mat2/arrays": over_arrays(matrix_product, "Y"),
    "fut-reduce-comm3/arrays": over_arrays(three_sums, "a b c"),
    "own-reduce-2xy/arrays": over_arrays(folded),
    "own-reduce-empty/arrays": over_arrays(of_nothing, "s p"),
    "own-reduce-n1/arrays": over_arrays(of_one, "s p m c"),
    "own-sum-large-f32/arrays": over_arrays(total),
    "own-sum-nan/arrays": over_arrays(sum_and_product, "s q"),
}
