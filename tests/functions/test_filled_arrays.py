"""Arrays of one value, by shape or like another array, are those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double, float2, half

pytestmark = pytest.mark.gpu

X = np.float32([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
DTYPES = {float: np.float32, int: np.int32, bool: np.bool_, double: np.float64, half: np.float16}


@pytest.mark.parametrize("shape", [3, (2, 3), (), 0, (4, 0)], ids=str)
def test_ones_and_full_are_those_of_numpy(shape: Any, device: sad.Device) -> None:
    for dtype, host in DTYPES.items():
        pairs = [
            (sad.ones(shape, dtype), np.ones(shape, host)),
            (sad.zeros(shape, dtype), np.zeros(shape, host)),
            (sad.full(shape, 2.75, dtype), np.full(shape, 2.75, host)),
            (sad.full(shape, 3, dtype=dtype), np.full(shape, 3, host)),
        ]
        for found, wanted in pairs:
            assert found.numpy().dtype == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_a_shape_and_an_element_type_are_taken_from_an_array(device: sad.Device) -> None:
    for dtype, host in DTYPES.items():
        x = sad.array(X.astype(host), dtype=dtype)
        pairs = [
            (sad.ones_like(x), np.ones_like(X, host)),
            (sad.zeros_like(x), np.zeros_like(X, host)),
            (sad.full_like(x, 2.75), np.full_like(X, 2.75, host)),
            (sad.full_like(x, [1.5, 2.5, 3.5]), np.full_like(X, [1.5, 2.5, 3.5], host)),
            (sad.ones_like(x, dtype=int), np.ones_like(X, np.int32)),
            (sad.zeros_like(x, dtype=double), np.zeros_like(X, np.float64)),
            (sad.full_like(x, 2.75, dtype=float), np.full_like(X, 2.75, np.float32)),
        ]
        for found, wanted in pairs:
            assert found.numpy().dtype == wanted.dtype, dtype
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_vectors_have_the_number_in_each_component(device: sad.Device) -> None:
    points = sad.array(X[:, :2], dtype=float2)
    np.testing.assert_array_equal(sad.ones(2, float2).numpy(), np.ones((2, 2)))
    np.testing.assert_array_equal(sad.full(2, 0.5, float2).numpy(), np.full((2, 2), 0.5))
    np.testing.assert_array_equal(sad.ones_like(points).numpy(), np.ones((2, 2)))
    found = sad.full_like(points, float2(1.0, 2.0))
    assert (found.element, found.shape) == (points.element, points.shape)
    np.testing.assert_array_equal(found.numpy(), [[1.0, 2.0], [1.0, 2.0]])


def test_graphs_follow_the_size_of_their_argument(device: sad.Device) -> None:
    f = sad.graph(lambda x: (sad.ones_like(x), sad.zeros_like(x), sad.full_like(x, 2) * x))
    for n in (5, 0, 1):
        x = np.arange(n, dtype=np.float32)
        for found, wanted in zip(f(x), (np.ones(n), np.zeros(n), 2 * x), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_mapped_functions_have_the_shape_of_one_element(device: sad.Device) -> None:
    ones = sad.vmap(lambda x: sad.ones_like(x) + x)(X)
    np.testing.assert_array_equal(ones.numpy(), 1 + X)
    full = sad.vmap(lambda v: sad.full_like(np.zeros(3), v, dtype=float))(X[:, 0])
    np.testing.assert_array_equal(full.numpy(), np.repeat(X[:, :1], 3, 1))


def test_only_the_value_has_a_gradient(device: sad.Device) -> None:
    def total(x: Any, value: Any) -> Any:
        likes = sad.ones_like(x) + sad.zeros_like(x) + sad.full_like(x, value * value)
        return sad.sum(likes * X + sad.full((2, 3), value, float))

    sad.gradcheck(total, X, 1.5)
    by_x, by_value = sad.grad(total, argnums=(0, 1))(X, 1.5)
    np.testing.assert_array_equal(by_x.numpy(), np.zeros_like(X))
    np.testing.assert_allclose(by_value.numpy(), 3.0 * X.sum() + 6, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: sad.ones(-1), "SR0371"),
        (lambda: sad.ones(2, "u9"), "SR0358"),
        (lambda: sad.full_like(X, np.ones((3, 2))), "SR0379"),
        (lambda: sad.zeros_like("text"), "SR0351"),
    ],
)
def test_wrong_arguments_are_named(make: Any, code: str, device: sad.Device) -> None:
    with pytest.raises(sad.Error, match=code):
        make()
