"""Layout and subscripts, traced: as NumPy's, at sizes where slices are empty too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.tracing import check_derivatives, run, trace

X = np.arange(24.0).reshape(2, 3, 4)
V = np.arange(5.0)

SUBSCRIPTS: list[Any] = [
    0,
    -1,
    (1, 2),
    (slice(None), 0),
    (slice(None), slice(1, None), slice(None, -1)),
    (slice(None), slice(None, None, -1)),
    (..., slice(3, 0, -2)),
    (None, 1, ..., None),
    (slice(5, 9),),
    (slice(-2, None), slice(0, 0)),
    ([1, 0, 1],),
    (slice(None), np.array([[2, 0], [1, 1]])),
    ([0, 1], slice(None), [3, 2]),
    (1, slice(None), [3, 2]),
    ([1, 0], [2, 2], 1),
]


@pytest.mark.parametrize("key", SUBSCRIPTS, ids=str)
def test_subscripts_are_numpys(key: Any) -> None:
    np.testing.assert_array_equal(run(lambda x: x[key], X), X[key])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "key", [slice(1, None), slice(None, -1), slice(2, -2), slice(None, 3), slice(-3, None, 2)]
)
def test_slices_are_right_at_every_size(key: slice, count: int) -> None:
    np.testing.assert_array_equal(run(lambda x: x[key], V[:count]), V[:count][key])


def test_sizes_are_positions_too() -> None:
    found = run(lambda x: x[x.shape[0] // 2 :] * x[: x.shape[0] - x.shape[0] // 2], V)
    np.testing.assert_array_equal(found, V[2:] * V[:3])


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: sad.reshape(x, (4, -1)), lambda x: np.reshape(x, (4, -1))),
        (lambda x: sad.reshape(x, (x.shape[0] * 3, 4)), lambda x: np.reshape(x, (6, 4))),
        (lambda x: sad.transpose(x), np.transpose),
        (lambda x: sad.transpose(x, (1, 2, 0)), lambda x: np.transpose(x, (1, 2, 0))),
        (lambda x: sad.concatenate((x, x[:1])), lambda x: np.concatenate((x, x[:1]))),
        (lambda x: sad.concatenate((x, x), -1), lambda x: np.concatenate((x, x), -1)),
        (lambda x: sad.stack((x, 2 * x), 1), lambda x: np.stack((x, 2 * x), 1)),
        (lambda x: sad.stack((x, x), -1), lambda x: np.stack((x, x), -1)),
        (
            lambda x: sad.broadcast_to(x[0, 0], (5, 4)),
            lambda x: np.broadcast_to(x[0, 0], (5, 4)),
        ),
        (lambda x: sad.reverse(x, 1), lambda x: np.flip(x, 1)),
        (lambda x: sad.roll(x, -1, -1), lambda x: np.roll(x, -1, -1)),
        (lambda x: sad.roll(x, 6, 1), lambda x: np.roll(x, 6, 1)),
    ],
)
def test_layouts_are_numpys(ours: Callable[..., Any], numpys: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(run(ours, X), numpys(X))
    check_derivatives(ours, X)


def test_what_is_empty_stays_empty() -> None:
    assert run(lambda x: sad.roll(x, 3, 0), V[:0]).shape == (0,)
    assert run(lambda x: sad.reverse(x), V[:0]).shape == (0,)


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: x[0, 0, 0, 0], "SR0381"),
    (lambda x: x[2], "SR0665"),
    (lambda x: x[-3], "SR0665"),
    (lambda x: x["a"], "SR0380"),
    (lambda x: x[..., ...], "SR0380"),
    (lambda x: x[::0], "SR0380"),
    (lambda x: x[1.5:], "SR0380"),
    (lambda x: x[x > 3.0], "SR0340"),
    (lambda x: sad.reshape(x, (5, 5)), "SR0324"),
    (lambda x: sad.reshape(x, (5, -1)), "SR0324"),
    (lambda x: sad.transpose(x, (0, 1)), "SR0323"),
    (lambda x: sad.concatenate(()), "SR0328"),
    (lambda x: sad.concatenate((x, x[:, :2])), "SR0329"),
    (lambda x: sad.concatenate((x, x > 0.0)), "SR0330"),
    (lambda x: sad.broadcast_to(x, (2, 3, 5)), "SR0379"),
    (lambda x: sad.roll(x, 0.5, 0), "SR0370"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 9])
def test_triangles_are_numpys(k: int) -> None:
    for x in (X, X[0, :, :1], X[:, :0]):
        np.testing.assert_array_equal(run(lambda x: sad.tril(x, k), x), np.tril(x, k))
        np.testing.assert_array_equal(run(lambda x: sad.triu(x, k), x), np.triu(x, k))
    check_derivatives(lambda x: sad.tril(x * x, k) - sad.triu(x, k), X, order=2)


def test_triangles_of_ints_bools_vectors_and_nan() -> None:
    ints = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(run(sad.tril, ints), np.tril(ints))
    np.testing.assert_array_equal(run(lambda x: sad.triu(x > 2), ints), np.triu(ints > 2))
    np.testing.assert_array_equal(
        run(lambda x: sad.triu(x, x.shape[0] - 2), ints), np.triu(ints, 1)
    )
    found = run(sad.tril, X[:, :2, :2], dtype=sad.float2)
    np.testing.assert_array_equal(found, X[:, :2, :2] * np.tril(np.ones((2, 2)))[..., None])
    np.testing.assert_array_equal(run(sad.tril, np.full((2, 2), np.nan))[0], [np.nan, 0.0])


@pytest.mark.parametrize(
    ("function", "code"),
    [(lambda x: sad.tril(x[0, 0]), "SR0323"), (lambda x: sad.triu(x, 0.5), "SR0370")],
)
def test_what_has_no_triangle_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.ShapeError) as raised:
        trace(function, X)
    assert raised.value.code == code
