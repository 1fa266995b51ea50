"""`norm`, `var`, `std`, traced: as NumPy's, and with derivatives of 0 where they are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.functions.test_activations import gradient
from tests.tracing import check_derivatives, run, trace

X = np.random.default_rng(0).normal(size=(2, 3, 5))
AXES = [None, 0, 1, -1, (0, 2), (2, 1)]


def norm(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_are_numpys(axis: Any, keepdims: bool) -> None:
    found = run(lambda x: sad.norm(x, axis=axis, keepdims=keepdims), X)
    np.testing.assert_allclose(found, norm(X, axis, keepdims), rtol=1e-14)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("name", ["var", "std"])
def test_variances_are_numpys(name: str, ddof: int, axis: Any, keepdims: bool) -> None:
    ours, options = getattr(sad, name), {"axis": axis, "ddof": ddof, "keepdims": keepdims}
    expected = getattr(np, name)(X, **options)
    np.testing.assert_allclose(run(lambda x: ours(x, **options), X), expected, rtol=1e-13)


@pytest.mark.parametrize("axis", AXES)
def test_derivatives(axis: Any) -> None:
    check_derivatives(lambda x: sad.norm(x * x + x, axis=axis), X, order=2)
    check_derivatives(lambda x: sad.var(x * x + x, axis=axis, ddof=1), X, order=2)
    check_derivatives(lambda x: sad.std(x * x + x, axis=axis), X, order=2)


def test_norms_of_zeros_and_of_nothing() -> None:
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, -2.0]])
    np.testing.assert_allclose(run(lambda x: sad.norm(x, axis=1), rows), [0, 5, 2], rtol=1e-15)
    found = gradient(lambda x: sad.norm(x, axis=1), rows, np.ones(3))
    np.testing.assert_allclose(found, [[0, 0], [0.6, 0.8], [0, -1]], rtol=1e-14)
    assert run(sad.norm, np.zeros(0)) == 0.0
    assert run(sad.norm, np.float64(-2.0)) == 2.0
    np.testing.assert_array_equal(run(lambda x: sad.norm(x, axis=1), np.zeros((2, 0))), [0, 0])
    second = gradient(lambda x: sad.norm(x, axis=1, keepdims=True) * x, rows, np.ones((3, 2)))
    np.testing.assert_array_equal(second[0], [0, 0])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_squares_of_norms_neither_overflow_nor_vanish(size: float) -> None:
    x = size * np.array([3.0, 4.0])
    np.testing.assert_allclose(run(sad.norm, x), 5.0 * size, rtol=1e-14)
    np.testing.assert_allclose(gradient(sad.norm, x, np.float64(1.0)), [0.6, 0.8], rtol=1e-14)


def test_norms_of_infinities_and_nan() -> None:
    assert run(sad.norm, np.array([1.0, -np.inf])) == np.inf
    assert np.isnan(run(sad.norm, np.array([1.0, np.nan])))


@pytest.mark.parametrize("count", [1, 3, 7, 10])
@pytest.mark.parametrize("name", ["var", "std"])
def test_equal_elements_have_no_variance_and_no_derivative(name: str, count: int) -> None:
    rows = np.full((2, count), [[0.1], [1e8 / 3]])
    ours = getattr(sad, name)
    np.testing.assert_array_equal(run(lambda x: ours(x, axis=1), rows), [0, 0])
    found = gradient(lambda x: ours(x, axis=1), rows, np.ones(2))
    np.testing.assert_array_equal(found, np.zeros_like(rows))


def test_the_variance_of_elements_far_from_zero_is_precise() -> None:
    x = X + 1e9
    np.testing.assert_allclose(run(sad.var, x), (x - 1e9).var(), rtol=1e-12)


def test_ints_bools_and_vectors() -> None:
    ints = np.array([3, -4])
    assert run(sad.norm, ints) == 5.0
    assert run(lambda x: sad.norm(sad.length(x)), [[3, 4], [12, 0]], dtype=sad.float2) == 13.0
    assert run(sad.var, ints) == 12.25
    assert run(lambda x: sad.std(x > 0), ints) == 0.5
    vectors = X[0, :, :2]
    by_axis = (lambda x: sad.norm(x, axis=0), norm(vectors, 0))
    for ours, expected in (by_axis, (sad.std, vectors.std(0))):
        np.testing.assert_allclose(run(ours, vectors, dtype=sad.float2), expected, rtol=1e-14)


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: sad.norm(x, axis=3), "SR0323"),
    (lambda x: sad.norm(x, axis=(0, 0)), "SR0323"),
    (lambda x: sad.var(x, axis=3), "SR0323"),
    (lambda x: sad.std(x[:0]), "SR0327"),
    (lambda x: sad.var(x, axis=2, ddof=5), "SR0312"),
    (lambda x: sad.std(x[0, 0, 0], ddof=1), "SR0312"),
    (lambda x: sad.var(x, ddof=0.5), "SR0370"),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_norms_of_vectors_need_an_axis(shape: tuple[int, ...]) -> None:
    remedies = {sad.float3: "`sad.norm(sad.length(x))`", sad.float2x2: "`sad.length(x @ "}
    for dtype, remedy in remedies.items():
        x = np.ones((*shape, *dtype(1).shape))
        with pytest.raises(sad.ShapeError) as raised:
            trace(sad.norm, x, dtype=dtype)
        assert raised.value.code == "SR0832"
        assert remedy in raised.value.help
    with pytest.raises(sad.ShapeError, match="SR0832"):
        sad.norm(sad.float3(1, 2, 3))


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code
