"""Activations, statistics and their kin on devices, of float, half and double: at once and in
graphs, with `vjp`, `jvp` and `gradcheck`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.functions.test_activations import BY_ELEMENT, gradient, softmax
from tests.tracing import run

X = np.random.default_rng(0).normal(size=(3, 5))
INDEX = np.argsort(X).astype(np.int32)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: ours for name, (ours, _) in BY_ELEMENT.items()},
    "softmax": lambda x: sad.softmax(x),
    "log_softmax": lambda x: sad.log_softmax(x, axis=0),
    "norm": lambda x: sad.norm(x, axis=1),
    "var": lambda x: sad.var(x, axis=0, ddof=1),
    "std": lambda x: sad.std(x, axis=1, keepdims=True),
    "cumprod": lambda x: sad.cumprod(x, axis=1),
    "diff": lambda x: sad.diff(x, 2),
    "tril": lambda x: sad.tril(x),
    "triu": lambda x: sad.triu(x, 1),
    "take_along_axis": lambda x: sad.take_along_axis(x, INDEX),
    "linspace": lambda x: sad.linspace(x[0], x[1], 4),
    "eye": lambda x: sad.cast(sad.eye(3, 5, 1), x.dtype) * x,
    "arange": lambda x: x * sad.cast(sad.arange(x.shape[1]), x.dtype),
}
PRECISION = {sad.half: 4e-3, float: 2e-5, sad.double: 1e-12}
"""Some roundings of results near 1; those of half are computed in float but for products of
neighbours, differences and sums of cotangents.
"""


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", PRECISION, ids=["half", "float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_on_devices_are_those_of_float64(
    name: str, dtype: Any, device: sad.Device
) -> None:
    wanted = {sad.half: "half", sad.double: "double"}.get(dtype)
    if wanted and wanted not in device.capabilities.features:
        pytest.skip(f"no {wanted}")
    function = FUNCTIONS[name]
    x = sad.array(X, dtype=dtype)
    data = x.numpy().astype(float)
    # Numbers of a formula are doubles beside doubles.
    reference = sad.double if dtype == sad.double else float
    expected = run(function, data, dtype=reference)
    y_bar = sad.array(np.random.default_rng(1).normal(size=expected.shape), dtype=dtype)
    x_bar = gradient(function, data, y_bar.numpy().astype(float), reference)
    near = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    for form in (function, sad.graph(function)):
        found, pullback = sad.vjp(form, x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found.numpy(), expected, **near)
        np.testing.assert_allclose(pullback(y_bar)[0].numpy(), x_bar, **near)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_pass_gradcheck_and_nest(name: str, device: sad.Device) -> None:
    function = FUNCTIONS[name]
    sad.gradcheck(function, X)

    def loss(x: sad.Array) -> sad.Array:
        return sad.sum(function(x * x) ** 2.0)

    v = np.random.default_rng(2).normal(size=X.shape)
    _, product = sad.jvp(sad.grad(loss), (sad.array(X),), (sad.array(v),))
    found = sad.hvp(loss, (sad.array(X),), (sad.array(v),))
    np.testing.assert_allclose(product.numpy(), found.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_singular_points_and_masked_rows_on_devices(device: sad.Device) -> None:
    def slope(function: Callable[..., Any], x: Any) -> Any:
        return sad.grad(lambda x: sad.sum(function(x)))(sad.array(x, dtype=float)).numpy()

    for at in (slope, lambda f, x: slope(sad.graph(f), x)):
        np.testing.assert_array_equal(at(lambda x: sad.relu(x), [0.0, -0.0, 2.0]), [0, 0, 1])
        zeros = [[0.0] * 3, [0.1] * 3]
        np.testing.assert_array_equal(at(lambda x: sad.norm(x, axis=1), zeros)[0], [0, 0, 0])
        np.testing.assert_array_equal(at(lambda x: sad.std(x, axis=1), zeros), np.zeros((2, 3)))
        large = [-1e30, -1e4, 1e4, 1e30]
        for name in ("sigmoid", "silu", "gelu", "tanh gelu", "softplus"):
            found = at(BY_ELEMENT[name][0], large)
            wanted = [0, 0, 0, 0] if name == "sigmoid" else [0, 0, 1, 1]
            np.testing.assert_allclose(found, wanted, atol=1e-6)
        rows = np.array([[-np.inf, 0.5, 1.0], [2.0, -np.inf, -np.inf]])
        np.testing.assert_allclose(sad.softmax(rows).numpy(), softmax(rows), rtol=1e-5)
        weights = np.array([3.0, -1.0, 2.0])
        p = softmax(rows)
        expected = p * (weights - (p * weights).sum(-1, keepdims=True))
        found = at(lambda x: sad.softmax(x) * sad.array([3.0, -1.0, 2.0]), rows)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        found = at(lambda x: sad.where(x < 0.0, 0.0, sad.log_softmax(x)), rows)
        assert np.isfinite(found).all()


@pytest.mark.gpu
def test_halves_are_rounded_once(device: sad.Device) -> None:
    if "half" not in device.capabilities.features:
        pytest.skip("no half")
    x = sad.array([300.0, 400.0], dtype=sad.half)
    assert sad.norm(x).item() == 500.0
    assert sad.var(sad.array([1000.0, 1100.0], dtype=sad.half)).item() == 2500.0
    np.testing.assert_array_equal(sad.grad(sad.norm)(x).numpy(), np.float16([0.6, 0.8]))
    total = sad.sum(sad.softmax(sad.zeros(5000, dtype=sad.half)))
    assert abs(total.item() - 1.0) < 1e-2
