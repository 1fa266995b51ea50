"""`arange`, `linspace`, `eye`, traced: as NumPy's, of numbers and of sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.tracing import check_derivatives, run, trace

V = np.arange(5.0)
A = np.array([[1.0, 2.0], [3.0, 4.0]])
ROUNDED = 1e-6
"""Numbers are floats of 32 bits in a graph, also where it runs in float64."""

RANGES = [(5,), (2, 7), (7, 2, -2), (2, 7, -1), (0,), (3, 0), (0, 1, 0.1), (1.5,), (5, 0, -1.5)]


@pytest.mark.parametrize("limits", RANGES)
def test_arange_is_numpys(limits: tuple[Any, ...]) -> None:
    found, expected = run(lambda: sad.arange(*limits)), np.arange(*limits)
    assert found.shape == expected.shape
    assert found.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(found, expected, rtol=ROUNDED)


def test_arange_takes_sizes() -> None:
    np.testing.assert_array_equal(run(lambda x: sad.arange(x.shape[0]), V), np.arange(5))
    np.testing.assert_array_equal(run(lambda x: sad.arange(1, x.shape[0], 2), V), [1, 3])
    np.testing.assert_array_equal(run(lambda x: sad.arange(x.shape[0], 0, -2), V), [5, 3, 1])
    assert run(lambda x: sad.arange(x.shape[0], 2), V).shape == (0,)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("start", "stop", "num"), [(0, 1, 5), (1, 3, 4), (2, 1, 1), (0, 1, 0)])
def test_linspace_is_numpys(start: int, stop: int, num: int, endpoint: bool) -> None:
    found = run(lambda: sad.linspace(start, stop, num, endpoint))
    expected = np.linspace(start, stop, num, endpoint=endpoint)
    assert found.dtype.kind == "f"
    np.testing.assert_allclose(found, expected, rtol=ROUNDED)


def test_linspace_between_arrays_is_exact_at_the_ends_and_has_derivatives() -> None:
    found = run(lambda a, b: sad.linspace(a, b, 4), A, V[:2])
    np.testing.assert_allclose(found, np.linspace(A, V[:2], 4), rtol=1e-14)
    np.testing.assert_array_equal(found[0], A)
    np.testing.assert_array_equal(found[-1], np.broadcast_to(V[:2], (2, 2)))
    found = run(lambda x: sad.linspace(x[0], 1.0, x.shape[0]), V)
    np.testing.assert_allclose(found, np.linspace(0, 1, 5), rtol=1e-14)
    check_derivatives(lambda a, b: sad.linspace(a, b * b, 4), A, V[:2], order=2)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 5, 1), (4, 2, -2), (3, 3, 7), (0,), (2, 0)])
def test_eye_is_numpys(shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(run(lambda: sad.eye(*shape)), np.eye(*shape))


def test_eye_takes_sizes() -> None:
    np.testing.assert_array_equal(run(lambda x: sad.eye(x.shape[0]), V), np.eye(5))
    found = run(lambda x: sad.eye(x.shape[0] - 2, x.shape[0], k=1), V)
    np.testing.assert_array_equal(found, np.eye(3, 5, 1))


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: sad.arange(0, 1, 0), "SR0312"),
    (lambda x: sad.arange(0, 1, 0.0), "SR0312"),
    (lambda x: sad.arange(np.inf), "SR0312"),
    (lambda x: sad.arange("n"), "SR0312"),
    (lambda x: sad.arange(0.5, x.shape[0]), "SR0312"),
    (lambda x: sad.arange(0, 9, x.shape[0]), "SR0320"),
    (lambda x: sad.arange(1e12), "SR0371"),
    (lambda x: sad.linspace(0, 1, -1), "SR0371"),
    (lambda x: sad.linspace(0, 1, 2.5), "SR0370"),
    (lambda x: sad.linspace(x, x[:2], 3), "SR0379"),
    (lambda x: sad.eye(-1), "SR0371"),
    (lambda x: sad.eye(2, k=0.5), "SR0370"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, V)
    assert raised.value.code == code
