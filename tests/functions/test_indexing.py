"""Index arrays, sorting, histograms and scans, traced: against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2
from tests.tracing import check_derivatives, run, trace

X = np.array([1.5, -2.0, 0.5, 3.0, 0.25])
I = np.array([3, 0, 9, -1, 3])  # noqa: E741 - an index
ROWS = np.arange(10.0).reshape(5, 2)


@sad.function
def twice_product(a: float, b: float) -> float:
    return 2.0 * a * b


@sad.function
def quotient(a: float, b: float) -> float:
    return a / b


def test_gather_reads_zero_out_of_range() -> None:
    found = run(lambda x, i: sad.gather(x, i, bounds="ignore"), ROWS, I)
    np.testing.assert_array_equal(found, [ROWS[3], ROWS[0], [0, 0], [0, 0], ROWS[3]])


def test_scatter_keeps_the_last_writer_and_ignores_what_is_out_of_range() -> None:
    found = run(lambda x, i: sad.scatter(x, i, x * 10.0), X, I)
    np.testing.assert_array_equal(found, [-20.0, -2.0, 0.5, 2.5, 0.25])
    check_derivatives(lambda x, i: sad.scatter(x, i, x * x), X, I)


def test_scatter_add_sums_repeated_indices() -> None:
    expected = np.zeros((4, 2))
    np.add.at(expected, [3, 0, 3], ROWS[[0, 1, 4]])
    base = np.zeros((4, 2))
    found = run(lambda b, r, i: sad.scatter_add(b, i, r), base, ROWS, I)
    np.testing.assert_array_equal(found, expected)


def test_compact_moves_what_is_masked_to_the_front() -> None:
    kept, count = run(lambda r: sad.compact(r, r[:, 0] > 3.0), ROWS)
    np.testing.assert_array_equal(kept, [*ROWS[2:], [0, 0], [0, 0]])
    assert count == 3
    check_derivatives(lambda r: sad.compact(r, r[:, 0] > 3.0)[0], ROWS)


def test_sorting_is_stable_and_puts_nan_last() -> None:
    x = np.array([[2.0, np.nan, 1.0], [0.0, -0.0, -1.0]])
    np.testing.assert_array_equal(run(lambda x: sad.argsort(x, -1), x), [[2, 0, 1], [2, 0, 1]])
    np.testing.assert_array_equal(run(lambda x: sad.sort(x, axis=0), ROWS[::-1]), ROWS)
    check_derivatives(lambda x: sad.sort(x, -1) * X, X)


@pytest.mark.parametrize(
    ("op", "init", "expected"),
    [
        (sad.add, 0.0, [-2.0, 0.0, 0.0, 1.75]),
        (sad.mul, 1.0, [-2.0, 1.0, 1.0, 0.375]),
        (sad.max, -1000.0, [-2.0, -1000.0, -1000.0, 1.5]),
        (twice_product, 0.5, [-2.0, 0.5, 0.5, 0.75]),
        (sad.add, 10.0, [8.0, 10.0, 10.0, 11.75]),
        (sad.mul, 3.0, [-6.0, 3.0, 3.0, 1.125]),
        (sad.max, 1.0, [1.0, 1.0, 1.0, 1.5]),
        (sad.min, 1.0, [-2.0, 1.0, 1.0, 0.25]),
        (twice_product, 1.0, [-4.0, 1.0, 1.0, 1.5]),
    ],
)
def test_histograms_fold_each_bin_in_order(op: Any, init: float, expected: list[float]) -> None:
    def counted(x: Any, i: Any) -> Any:
        return sad.segment_reduce(op, init, 4, i, x)

    np.testing.assert_allclose(run(counted, X, I), expected)
    check_derivatives(counted, X, I)


@pytest.mark.parametrize("op", [sad.add, sad.mul, sad.max, sad.min, twice_product])
def test_histograms_start_each_bin_from_its_init(op: Any) -> None:
    init = np.array([0.75, -0.5, 2.0, 1.25])

    def counted(x: Any, i: Any, init: Any) -> Any:
        return sad.segment_reduce(op, init, 4, i, x)

    expected = init.copy()
    fold = {sad.add: np.add, sad.mul: np.multiply, sad.max: np.maximum, sad.min: np.minimum}
    for j, k in enumerate(I):
        if 0 <= k < 4:
            expected[k] = fold.get(op, lambda a, b: 2 * a * b)(expected[k], X[j])
    np.testing.assert_allclose(run(counted, X, I, init), expected)
    check_derivatives(counted, X, I, init, order=2)


def test_histograms_of_empty_bins_evaluate_no_operator() -> None:
    def counted(x: Any, i: Any, init: Any) -> Any:
        return sad.segment_reduce(quotient, init, 4, i, x)

    np.testing.assert_array_equal(run(counted, X[:0], I[:0], np.ones(4)), np.ones(4))
    check_derivatives(counted, X, I, np.ones(4))


def test_histograms_take_rows() -> None:
    found = run(lambda r, i: sad.segment_reduce(sad.min, 99.0, 4, i, r), ROWS, I)
    np.testing.assert_array_equal(found, [ROWS[1], [99, 99], [99, 99], ROWS[0]])
    empty = run(lambda r, i: sad.segment_reduce(sad.mul, 1.0, 2, i, r), X[:0], I[:0])
    np.testing.assert_array_equal(empty, [1, 1])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("init", [None, 2.0])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_scans_start_from_their_init(
    count: int, init: float | None, exclusive: bool, reverse: bool
) -> None:
    x = X[:count][::-1] if reverse else X[:count]
    totals = np.cumprod([1.0 if init is None else init, *x])
    expected = totals[:-1] if exclusive else totals[1:]
    found = run(
        lambda x: sad.scan(sad.mul, x, init, axis=0, exclusive=exclusive, reverse=reverse),
        X[:count],
    )
    np.testing.assert_allclose(found, expected[::-1] if reverse else expected)


def test_scans_go_along_any_axis() -> None:
    np.testing.assert_array_equal(
        run(lambda r: sad.scan(sad.max, r, axis=0, reverse=True), ROWS),
        np.maximum.accumulate(ROWS[::-1])[::-1],
    )
    m = np.random.default_rng(0).normal(size=(3, 2, 2))
    found = run(lambda m: sad.scan(sad.matmul, m), m, dtype=float2x2)
    np.testing.assert_allclose(found, [m[0], m[0] @ m[1], m[0] @ m[1] @ m[2]])


PRODUCTS = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (5, 3, 2)), ((5, 2, 3), (3, 2))]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matrix_products_are_numpys(left: Any, right: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    np.testing.assert_allclose(run(lambda a, b: a @ b, a, b), a @ b)
    np.testing.assert_allclose(run(sad.matmul, a, b), a @ b)


# -- mapped functions -------------------------------------------------------------------------


def test_functions_of_the_kernel_language_are_mapped() -> None:
    found = run(lambda x: sad.map(twice_product, x, 3.0), X)
    np.testing.assert_allclose(found, 6 * X)


def test_python_functions_see_one_element_and_all_of_what_they_capture() -> None:
    def cost(points: Any, centres: Any) -> Any:
        rows = sad.map(
            lambda i: sad.min(
                sad.map(lambda k: sad.sum((points[i] - centres[k]) ** 2), np.arange(2))
            ),
            np.arange(5),
        )
        return sad.sum(rows)

    centres = np.array([[0.5, 1.0], [6.0, 7.0]])
    distances = ((ROWS[:, None] - centres[None]) ** 2).sum(-1)
    np.testing.assert_allclose(run(cost, ROWS, centres), distances.min(1).sum())
    check_derivatives(cost, ROWS, centres)


def test_mapped_functions_reduce_scan_and_sort_for_themselves() -> None:
    found = run(lambda x: sad.map(lambda a: sad.sort(a * x), x), X)
    np.testing.assert_allclose(found, np.sort(X[:, None] * X))
    found = run(lambda x: sad.map(lambda a: sad.scan(sad.add, x, a), x), X)
    np.testing.assert_allclose(found, X[:, None] + np.cumsum(X))
    found = run(lambda x, i: sad.map(lambda a: (a * x)[i], x), X, np.array([1, 4]))
    np.testing.assert_allclose(found, (X[:, None] * X)[:, [1, 4]])


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: sad.gather(x, x), "SR0340"),
    (lambda x: sad.gather(x, [0], bounds="clip"), "SR0374"),
    (lambda x: sad.scatter_add(x, [0, 1], x), "SR0341"),
    (lambda x: sad.scatter_add(x[0], [0], x), "SR0341"),
    (lambda x: sad.compact(x, x), "SR0342"),
    (lambda x: sad.compact(x, x[:2] > 0.0), "SR0342"),
    (lambda x: sad.matmul(x, x[:3]), "SR0344"),
    (lambda x: sad.matmul(x[0], x), "SR0344"),
    (lambda x: sad.sort(x > 0.0), "SR0326"),
    (lambda x: sad.segment_reduce(sad.add, 0.0, 2, x, x), "SR0340"),
    (lambda x: sad.segment_reduce(sad.add, 0.0, 2, [0, 1], x), "SR0341"),
    (lambda x: sad.segment_reduce(sad.add, 0.0, -2, [0, 1], x), "SR0371"),
    (lambda x: sad.scan(twice_product, x, exclusive=True), "SR0327"),
    (lambda x: sad.map(lambda a: None, x), "SR0332"),
    (lambda x: sad.map(twice_product, x), "SR0231"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_along_axis_is_numpys(axis: int) -> None:
    order = np.argsort(CUBE, axis)
    found = run(lambda x, i: sad.take_along_axis(x, i, axis), CUBE, order)
    np.testing.assert_array_equal(found, np.sort(CUBE, axis))
    some = np.take(order, [1, 0, 0], axis)
    expected = np.take_along_axis(CUBE, some, axis)
    found = run(lambda x, i: sad.take_along_axis(x, i, axis=axis), CUBE, some)
    np.testing.assert_array_equal(found, expected)
    check_derivatives(lambda x, i: sad.take_along_axis(x * x, i, axis), CUBE, some, order=2)


def test_take_along_axis_broadcasts_other_axes_and_reads_zero_out_of_range() -> None:
    index = np.array([[[2, 0]]])
    found = run(sad.take_along_axis, CUBE, index)
    np.testing.assert_array_equal(found, CUBE[..., [2, 0]])
    found = run(lambda x, i: sad.take_along_axis(x[:1, :1], i), CUBE, np.argsort(CUBE))
    np.testing.assert_array_equal(found, CUBE[0, 0][np.argsort(CUBE)])
    np.testing.assert_array_equal(run(sad.take_along_axis, X, np.array([9, -1, 1])), [0, 0, -2])
    assert run(sad.take_along_axis, CUBE, index[..., :0]).shape == (2, 3, 0)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: sad.take_along_axis(x, [[0], [1]]), "SR0389"),
        (lambda x: sad.take_along_axis(x, [[[0]]], axis=3), "SR0323"),
        (lambda x: sad.take_along_axis(x, x), "SR0340"),
        (lambda x: sad.take_along_axis(x, [[[0]] * 2] * 2), "SR0379"),
        (lambda x: sad.take_along_axis(x[0, 0, 0], 0), "SR0323"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.ShapeError) as raised:
        trace(function, CUBE)
    assert raised.value.code == code
