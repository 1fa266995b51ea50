"""Gather, scatter and histograms: repeated indices, and indices out of range."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from tests.conformance.programs.array_reductions import twice_the_product
from tests.conformance.programs.program import over_arrays

INFINITY = float("inf")


@sad.struct
class Dual:
    a: float
    b: float


@sad.function
def dual_product(x: Dual, y: Dual) -> Dual:
    return Dual(x.b * y.a + y.b * x.a, x.b * y.b)


@sad.function
def saturating_sum(x: float, y: float) -> float:
    if 15.0 - x < y:
        return 15.0
    return x + y


def weighted_sums(idx: Any, v: Any, c: Any) -> Any:
    return sad.segment_reduce(sad.add, 0.0, 8, idx, v) * c


def largest(idx: Any, v: Any) -> Any:
    return sad.max(-1000.0, sad.segment_reduce(sad.max, -INFINITY, 5, idx, v))


def weighted_products(idx: Any, v: Any, c: Any) -> Any:
    return sad.segment_reduce(sad.mul, 1.0, 8, idx, v) * c


def weighted_folds(idx: Any, v: Any, c: Any) -> Any:
    return sad.segment_reduce(twice_the_product, 0.5, 8, idx, v) * c


def products_into(dst: Any, idx: Any, v: Any) -> Any:
    return dst * sad.segment_reduce(sad.mul, 1.0, 8, idx, v)


def largest_into(dst: Any, idx: Any, v: Any, c: Any) -> Any:
    return c * sad.max(dst, sad.segment_reduce(sad.max, -INFINITY, 3, idx, v))


def squares_and_sums(dst: Any, idx: Any, v: Any) -> Any:
    return dst * dst + sad.scatter_add(dst, idx, v)


def scaled_products_into(dst: Any, idx: Any, v: Any, c: Any) -> Any:
    return dst * sad.segment_reduce(sad.mul, 1.0, 4, idx, c * v)


def dual_products(idx: Any, a: Any, b: Any) -> Any:
    found = sad.segment_reduce(dual_product, Dual(0.0, 1.0), 4, idx, Dual(a, b))
    return sad.stack([found.a, found.b], axis=1)


def saturating_sums(dst: Any, idx: Any, v: Any) -> Any:
    found = sad.segment_reduce(saturating_sum, 0.0, 5, idx, v)
    return sad.map(saturating_sum, dst, found)


def smallest_of_rows(idx: Any, V: Any) -> Any:
    return sad.min(1000.0, sad.segment_reduce(sad.min, INFINITY, 6, idx, V))


def squares_by_bin(idx: Any, v: Any) -> Any:
    return sad.segment_reduce(sad.add, 0.0, 3, idx, v * v)


def written(dst: Any, idx: Any, v: Any) -> Any:
    return sad.scatter(dst, idx, v)


def written_twice(x: Any) -> Any:
    places = np.array([0, 1, 2, 3, 0, 0, 0, 0])
    values = sad.concatenate([x, sad.broadcast_to(x[0], (4,))])
    return sad.sum(sad.scatter(x, places, values)[1:])


def rows_written_twice(x: Any) -> Any:
    places = np.array([0, 1, 2, 0, 1, 2])
    return sad.scatter(sad.zeros((3, 1)), places, sad.concatenate([x, x]))


def picked(x: Any, idx: Any) -> Any:
    return sad.gather(x, idx)


def picked_from_rows(X: Any, idx: Any) -> Any:
    return X[:, idx]


def picked_within(x: Any, idx: Any) -> Any:
    return x[sad.clamp(idx, 0, 2)]


def sparse_product(a: Any, x: Any, col: Any, ptr: Any) -> Any:
    """The row of an entry is the number of rows that have ended at it or before."""
    ends = sad.segment_reduce(sad.add, 0, 6, ptr[1:], np.ones(4, np.int32))
    row = sad.scan(sad.add, ends)
    return sad.segment_reduce(sad.add, 0.0, 4, row, a * x[col])


def first_replaced(x: Any) -> Any:
    return sad.scatter(x, np.array([0]), np.array([0.0]))


def second_doubled(x: Any) -> Any:
    return sad.scatter(x, np.array([1]), (2.0 * x)[1:2])


def second_summed(x: Any) -> Any:
    return 2.0 * sad.scatter(x, np.array([1]), sad.sum(x, keepdims=True))


def selected_rows(X: Any) -> Any:
    rows, _ = sad.compact(sad.sum(X, axis=1), X[:, 0] < 5.0)
    return sad.sum(rows)


def ascending(x: Any) -> Any:
    return sad.sort(x)


PROGRAMS = {
    "fut-hist-add/arrays": over_arrays(weighted_sums),
    "fut-hist-max/arrays": over_arrays(largest),
    "fut-hist-mul/arrays": over_arrays(weighted_products),
    "fut-hist-generic/arrays": over_arrays(weighted_folds),
    "fut-rbi-mul-dst/arrays": over_arrays(products_into),
    "fut-rbi-max-dst/arrays": over_arrays(largest_into),
    "fut-rbi-add-reuse/arrays": over_arrays(squares_and_sums),
    "fut-rbi2/arrays": over_arrays(scaled_products_into),
    "fut-rbi4-tuple/arrays": over_arrays(dual_products, "Y"),
    "fut-rbi5-saturating/arrays": over_arrays(saturating_sums),
    "fut-rbi-vecmin/arrays": over_arrays(smallest_of_rows, "H"),
    "own-hist-one-bin/arrays": over_arrays(squares_by_bin, "h"),
    "fut-scatter-vals/arrays": over_arrays(written),
    "fut-scatter-dst/arrays": over_arrays(written),
    "fut-scatter5-dup/arrays": over_arrays(written_twice, "z"),
    "fut-scatter4-rows/arrays": over_arrays(rows_written_twice),
    "fut-gather0-dup/arrays": over_arrays(picked),
    "fut-gather1-nested/arrays": over_arrays(picked_from_rows),
    "own-gather-clamp/arrays": over_arrays(picked_within),
    "own-spmv-csr/arrays": over_arrays(sparse_product),
    "fut-consume0/arrays": over_arrays(first_replaced),
    "fut-consume4/arrays": over_arrays(second_doubled),
    "fut-consume5/arrays": over_arrays(second_summed, "z"),
    "fut-partition-sum/arrays": over_arrays(selected_rows),
    "fut-sort-grad/arrays": over_arrays(ascending),
}
