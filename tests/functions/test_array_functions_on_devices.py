"""Activations, statistics and their kin on devices, of float, half and double: at once and in
graphs, with `vjp`, `jvp` and `gradcheck`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.functions.test_activations import BY_ELEMENT, gradient
from tests.tracing import run

X = np.random.default_rng(0).normal(size=(3, 5))
INDEX = np.argsort(X).astype(np.int32)
COLUMNS = np.random.default_rng(5).normal(size=(5, 4))
WINDOW = np.random.default_rng(6).normal(size=(2, 3, 2))

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
    "logsumexp": lambda x: sad.logsumexp(x, axis=1),
    "cumsum": lambda x: sad.cumsum(x, axis=0),
    "matmul": lambda x: x @ sad.cast(sad.array(COLUMNS, dtype=sad.double), x.dtype),
    "einsum": lambda x: sad.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: sad.tensordot(x, x, 2),
    "conv": lambda x: sad.conv(
        x, sad.cast(sad.array(WINDOW, dtype=sad.double), x.dtype), padding=1
    ),
    "vmap": lambda x: sad.vmap(lambda row: sad.softmax(row) * row[0])(x),
}
PRECISION = {sad.half: 4e-3, float: 2e-5, sad.double: 1e-12}
"""Some roundings of results near 1; those of half are computed in float but for products of
neighbours, differences and sums of cotangents.
"""


def skip_without(dtype: Any, device: sad.Device) -> None:
    wanted = {sad.half: "half", sad.double: "double"}.get(dtype)
    if wanted and wanted not in device.capabilities.features:
        pytest.skip(f"no {wanted}")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", PRECISION, ids=["half", "float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_on_devices_are_those_of_float64(
    name: str, dtype: Any, device: sad.Device
) -> None:
    skip_without(dtype, device)
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
@pytest.mark.parametrize("dtype", PRECISION, ids=["half", "float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_pass_gradcheck(name: str, dtype: Any, device: sad.Device) -> None:
    skip_without(dtype, device)
    report = sad.gradcheck(FUNCTIONS[name], sad.array(X, dtype=dtype))
    assert report.arguments[0].comparisons >= X.size


@pytest.mark.gpu
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_nest(name: str, device: sad.Device) -> None:
    function = FUNCTIONS[name]

    def loss(x: sad.Array) -> sad.Array:
        return sad.sum(function(x * x) ** 2.0)

    v = np.random.default_rng(2).normal(size=X.shape)
    _, product = sad.jvp(sad.grad(loss), (sad.array(X),), (sad.array(v),))
    found = sad.hvp(loss, (sad.array(X),), (sad.array(v),))
    np.testing.assert_allclose(product.numpy(), found.numpy(), rtol=1e-3, atol=1e-3)
