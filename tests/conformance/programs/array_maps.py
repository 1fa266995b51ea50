"""Arithmetic by element, broadcasting, layout."""

# The names of sizes are strings in annotations.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import double, float2, half
from tests.conformance.programs.program import over_arrays

COUNTS = (1, 2, 3)
"""How often `flatmap` repeats each element; sizes of arrays cannot depend on their contents."""


def quotient(a: Any, b: Any) -> Any:
    return a / b


def powers(x: Any, p: Any) -> Any:
    return x**p


def lighthouse(nu: Any, g: Any, w: Any, t: Any) -> Any:
    q = sad.tan(w * t)
    return nu * q / (g - q), g * nu * q / (g - q)


def product(x: Any, y: Any) -> Any:
    return sad.map(lambda one, other: one * other, x, y)


def scaled(c: Any, x: Any) -> Any:
    return sad.map(lambda one: c * one, x)


def pairwise(x: Any) -> Any:
    return x[:, None] + x[None, :]


def windows(x: Any) -> Any:
    shifts = [x[k : k + 4] for k in range(4)]
    first = sum(shifts[j] * x[j] for j in range(4))
    second = sum(shifts[j] * x[1 + j] for j in range(4))
    return first - second


def rows_by_index(A: Any, b: Any, idx: Any) -> Any:
    return sad.sum(A[idx], axis=1) + b


def same_twice(x: Any) -> Any:
    return sad.concatenate([x, x])


def rotated(x: Any) -> Any:
    return sad.roll(x, -1)


def transposed(x: Any) -> Any:
    return sad.transpose(sad.reshape(x, (2, 2)))


def replicated(x: Any) -> Any:
    return sad.broadcast_to(x, (2, 3))


def flatmap(x: Any, c: Any) -> Any:
    """The element of each place is the number of counts that have ended before it."""
    ends = np.cumsum(COUNTS)
    marks = sad.scatter_add(sad.zeros(int(ends[-1]), int), ends[:-1], np.ones(len(ends) - 1, int))
    source = sad.scan(sad.add, marks)
    return (x * c)[source], x * c * 2.0


def _laplacian(u: Any) -> Any:
    up, down = sad.concatenate([u[:1], u[:-1]]), sad.concatenate([u[1:], u[-1:]])
    left = sad.concatenate([u[:, :1], u[:, :-1]], axis=1)
    right = sad.concatenate([u[:, 1:], u[:, -1:]], axis=1)
    return up + down + left + right - 4.0 * u


def diffused(u: Any, a: Any) -> Any:
    for _ in range(2):
        u = u + a * _laplacian(u)
    return u


def power_table(w: Any) -> Any:
    first = sad.reshape(1.0 - 2.0 * sad.sum(w), (1,))
    base = sad.concatenate([first, w])
    factor = np.array([1.0, 2.0, 2.0, 2.0])
    rows = sad.stack([factor * base**k for k in range(3)])
    return sad.scan(sad.add, rows, axis=1)[1, 1:4]


def special_points(x: Any) -> Any:
    length = sad.length(float2(x[3], 0.0 * x[3]))
    return sad.stack([abs(x[0]), sad.sign(x[1]), sad.max(x[2], 0.0), length])


def constant_beside(a: Any, b: Any, c: Any) -> Any:
    return a + b, sad.zeros(())


def converted(x: Any) -> Any:
    return sad.cast(x, float)


@sad.graph
def sum_of_squares(x: sad.Array[half, "n"]) -> sad.Array[float]:
    return sad.sum(sad.cast(x, float) ** 2)


@sad.graph
def cancelled(x: sad.Array[double, "n"]) -> sad.Array[double, "n"]:
    return (1.0 + x) * (1.0 + x) - 1.0 - 2.0 * x


@sad.graph
def narrowed(x: sad.Array[double]) -> sad.Array[float]:
    return converted(x)


PROGRAMS = {
    "fut-fdiv/arrays": over_arrays(quotient),
    "fut-pow0/arrays": over_arrays(powers),
    "fut-lighthouse/arrays": over_arrays(lighthouse, "y1 y2"),
    "fut-map0/arrays": over_arrays(product, "z"),
    "fut-map2/arrays": over_arrays(scaled),
    "fut-map4/arrays": over_arrays(pairwise),
    "fut-map5/arrays": over_arrays(rows_by_index),
    "fut-map6/arrays": over_arrays(windows, "w"),
    "fut-concat/arrays": over_arrays(same_twice),
    "fut-rotate/arrays": over_arrays(rotated),
    "fut-transpose-reshape/arrays": over_arrays(transposed, "Y"),
    "fut-replicate/arrays": over_arrays(replicated, "Y"),
    "fut-flatmap/arrays": over_arrays(flatmap, "a b"),
    "fut-2239-scan-rows/arrays": over_arrays(power_table),
    "own-stencil-clamp/arrays": over_arrays(diffused, "u2"),
    "own-special-points/arrays": over_arrays(special_points),
    "own-const-unused/arrays": over_arrays(constant_beside, "y k"),
    "own-f16-sumsq/arrays": over_arrays(sum_of_squares, needs="half", dtype="f16"),
    "own-f64-cancel/arrays": over_arrays(cancelled, needs="double", dtype="f64"),
    "fut-conv0/arrays": over_arrays(narrowed, needs="double"),
}
