"""Methods of arrays are NumPy's, differentiable, and give way to fields of structs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float3x3

pytestmark = pytest.mark.gpu

X = np.float32([[3.0, -1.0, 2.0], [6.0, 5.0, -4.0]])
ALIKE: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "sum": lambda x: x.sum(),
    "sum over an axis": lambda x: x.sum(0),
    "sum over both": lambda x: x.sum((0, 1), keepdims=True),
    "mean": lambda x: x.mean(-1),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(axis=1, keepdims=True),
    "reshape": lambda x: x.reshape(3, 2),
    "reshape to a tuple": lambda x: x.reshape((3, -1)),
    "ravel": lambda x: x.ravel(),
    "chain": lambda x: (x.T * 2.0).reshape(-1).max(),
}


@pytest.mark.parametrize("name", ALIKE)
def test_methods_are_those_of_numpy(name: str, device: sad.Device) -> None:
    method = ALIKE[name]
    x, traced = sad.array(X), sad.graph(method)
    for found in (method(x), traced(x)):
        np.testing.assert_allclose(found.numpy(), method(X), rtol=1e-6)
    rows = sad.vmap(method)(sad.array(np.stack([X, 2.0 * X, -X])))
    np.testing.assert_allclose(rows.numpy(), [method(k * X) for k in (1, 2, -1)], rtol=1e-6)
    sad.gradcheck(lambda x: sad.sum(method(x) ** 2), x)


def test_functions_of_numpy_give_arrays_of_numpy(device: sad.Device) -> None:
    """They call methods of what they are given."""
    x = sad.array(X)
    for numpys in (np.sum, np.mean, np.max, np.min, np.ravel, np.transpose):
        found = numpys(x)
        assert isinstance(found, np.ndarray | np.generic)
        np.testing.assert_allclose(found, numpys(X), rtol=1e-6)
    np.testing.assert_array_equal(np.sum(x, axis=0, keepdims=True), np.sum(X, 0, keepdims=True))
    np.testing.assert_array_equal(np.reshape(x, (3, 2)), X.reshape(3, 2))
    with pytest.raises(sad.DerivativeError, match="SR0450"):
        sad.grad(lambda x: np.sum(x))(x)


def test_astype_converts(device: sad.Device) -> None:
    x = sad.array(X)
    assert x.astype(int).dtype is int
    np.testing.assert_array_equal((0.5 * x).astype(int).numpy(), (0.5 * X).astype(np.int32))
    halves = sad.grad(lambda x: sad.sum(x.astype(sad.half).astype(float) * x))(x)
    np.testing.assert_allclose(halves.numpy(), 2.0 * X)


def test_elements_keep_their_axes(device: sad.Device) -> None:
    points = sad.array(np.arange(12.0).reshape(2, 3, 2), dtype=float2)
    np.testing.assert_array_equal(points.T.numpy(), points.numpy().swapaxes(0, 1))
    assert points.sum(0).shape == (3,)
    assert points.ravel().dtype is float2
    matrices = sad.array(np.arange(18.0).reshape(1, 2, 3, 3), dtype=float3x3)
    np.testing.assert_array_equal(matrices.T.numpy(), matrices.numpy().swapaxes(0, 1))


@sad.struct
class Box:
    """A field for each method."""

    min: float3
    max: float3
    sum: float
    mean: float
    T: int
    reshape: float
    ravel: float
    astype: float


def test_a_field_of_the_same_name_comes_first(device: sad.Device) -> None:
    scalars = {name: np.full(2, 0.5) for name in ("sum", "mean", "reshape", "ravel", "astype")}
    fields = {"min": np.zeros((2, 3)), "max": np.ones((2, 3)), "T": np.array([7, 8]), **scalars}
    boxes = sad.array(fields, dtype=Box)
    for name, value in fields.items():
        np.testing.assert_array_equal(getattr(boxes, name).numpy(), value)
    np.testing.assert_array_equal((boxes.max - boxes.min).sum(0).numpy(), [2.0, 2.0, 2.0])

    @sad.graph
    def extent(boxes: Any) -> Any:
        return boxes.max - boxes.min

    np.testing.assert_array_equal(extent(boxes).numpy(), np.ones((2, 3)))
    gradient = sad.grad(lambda boxes: sad.sum(boxes.max.x * boxes.mean))(boxes)
    np.testing.assert_array_equal(gradient.max.numpy(), [[0.5, 0.0, 0.0]] * 2)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: x.sum(2), "SR0323"),
        (lambda x: x.sum(dim=0), "SR0292"),
        (lambda x: x.max(0, 1), "SR0291"),
        (lambda x: x.reshape(4), "SR0324"),
        (lambda x: x.astype("text"), "SR0358"),
        (lambda x: sad.array(np.eye(3), dtype=float3x3).T, "SR0835"),
        (lambda x: sad.array(np.ones((2, 3, 3)), dtype=float3x3).T, "SR0835"),
    ],
)
def test_what_does_not_fit_is_refused(
    call: Callable[[Any], Any], code: str, device: sad.Device
) -> None:
    with pytest.raises(sad.Error, match=code):
        call(sad.array(X))
