"""Scans with the operators that have names, and with any associative function."""

# The names of sizes are strings in annotations.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import float2, float4
from tests.conformance.programs.array_reductions import entries_of, matrix_of
from tests.conformance.programs.program import over_arrays


@sad.struct
class Running:
    total: float
    product: float
    largest: float


@sad.function
def carried(left: Running, right: Running) -> Running:
    largest = sad.max(left.largest, right.largest)
    return Running(left.total + right.total, left.product * right.product, largest)


@sad.function
def composed(first: float2, then: float2) -> float2:
    """Of affine maps ``s -> x + y s``."""
    return float2(then.x + then.y * first.x, first.y * then.y)


def sums(x: Any) -> Any:
    return sad.scan(sad.add, x)


def products(x: Any) -> Any:
    return sad.scan(sad.mul, x)


def products_of_columns(A: Any) -> Any:
    return sad.scan(sad.mul, A, axis=0)


@sad.graph
def matrix_products(X: sad.Array[float4, "n"]) -> sad.Array[float4, "n"]:
    return sad.map(entries_of, sad.scan(sad.matmul, sad.map(matrix_of, X)))


def three_at_once(X: Any) -> Any:
    found = sad.scan(carried, Running(X[:, 0], X[:, 1], X[:, 2]))
    return sad.stack([found.total, found.product, found.largest], axis=1)


@sad.graph
def affine_maps(X: sad.Array[float2, "n"]) -> sad.Array[float2, "n"]:
    return sad.scan(composed, X)


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    muls = sad.scan(sad.mul, x)
    return sad.sum(muls * x)


def before_and_after(x: Any) -> Any:
    return sad.scan(sad.add, x, exclusive=True), sad.scan(sad.add, x * x, reverse=True)


def running_maximum(x: Any) -> Any:
    return sad.scan(sad.max, x)


PROGRAMS = {
    "fut-scan-add/arrays": over_arrays(sums),
    "fut-scan-mul/arrays": over_arrays(products),
    "own-scan-mul-zeros/arrays": over_arrays(products),
    "fut-scan-vec-mul/arrays": over_arrays(products_of_columns),
    "fut-scan3-mat2/arrays": over_arrays(matrix_products, "Y"),
    "fut-scan4-tuple/arrays": over_arrays(three_at_once, "Y"),
    "fut-scan6-affine/arrays": over_arrays(affine_maps, "Y"),
    "fut-scan-dot-2256/arrays": over_arrays(scan_product),
    "own-scan-exclusive-reverse/arrays": over_arrays(before_and_after, "e r"),
    "own-scan-max/arrays": over_arrays(running_maximum),
    "own-scan-large/arrays": over_arrays(sums),
}
