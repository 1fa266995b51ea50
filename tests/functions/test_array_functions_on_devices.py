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


GROUPS = {
    names[0]: names for names in (tuple(FUNCTIONS)[start::4] for start in range(4))
}  # fmt: skip
"""Functions that one graph computes, each of an array of its own: a program costs more than a
function in it."""
by_group = pytest.mark.parametrize("names", GROUPS.values(), ids=GROUPS)
by_dtype = pytest.mark.parametrize("dtype", PRECISION, ids=["half", "float", "double"])


def together(names: tuple[str, ...]) -> Callable[..., Any]:
    """The results of all functions, one argument for each."""
    return lambda *xs: tuple(FUNCTIONS[name](x) for name, x in zip(names, xs, strict=True))


def skip_without(dtype: Any, device: sad.Device) -> None:
    wanted = {sad.half: "half", sad.double: "double"}.get(dtype)
    if wanted and wanted not in device.capabilities.features:
        pytest.skip(f"no {wanted}")


def check_against_float64(form: Callable[..., Any], names: tuple[str, ...], dtype: Any) -> None:
    """Holds results and pullbacks of `form`, the functions `names`, against NumPy."""
    x = sad.array(X, dtype=dtype)
    data = x.numpy().astype(float)
    # Numbers of a formula are doubles beside doubles.
    reference = sad.double if dtype == sad.double else float
    results, pullback = sad.vjp(form, *[x] * len(names))
    expected = [run(FUNCTIONS[name], data, dtype=reference) for name in names]
    draw = np.random.default_rng(1).normal
    bars = [sad.array(draw(size=result.shape), dtype=dtype) for result in expected]
    near = {"rtol": PRECISION[dtype], "atol": PRECISION[dtype]}
    for name, result, x_bar, wanted, bar in zip(
        names, results, pullback(tuple(bars)), expected, bars, strict=True
    ):
        assert result.dtype == dtype
        np.testing.assert_allclose(result.numpy(), wanted, **near, err_msg=name)
        slope = gradient(FUNCTIONS[name], data, bar.numpy().astype(float), reference)
        np.testing.assert_allclose(x_bar.numpy(), slope, **near, err_msg=name)


@pytest.mark.gpu
@by_dtype
@by_group
def test_functions_in_a_graph_are_those_of_float64(
    names: tuple[str, ...], dtype: Any, device: sad.Device
) -> None:
    skip_without(dtype, device)
    check_against_float64(sad.graph(together(names)), names, dtype)


@pytest.mark.gpu
@by_group
def test_functions_that_run_at_once_are_those_of_float64(
    names: tuple[str, ...], device: sad.Device
) -> None:
    check_against_float64(together(names), names, float)


@pytest.mark.gpu
@pytest.mark.sample(2)
@by_dtype
@by_group
def test_functions_pass_gradcheck(names: tuple[str, ...], dtype: Any, device: sad.Device) -> None:
    skip_without(dtype, device)
    xs = [sad.array(X, dtype=dtype)] * len(names)
    report = sad.gradcheck(sad.graph(together(names)), *xs)
    assert [row.comparisons >= X.size for row in report.arguments] == [True] * len(names)


@pytest.mark.gpu
@pytest.mark.sample(2)
@by_group
def test_functions_nest(names: tuple[str, ...], device: sad.Device) -> None:
    @sad.graph
    def loss(*xs: sad.Array) -> Any:
        squares = [x * x for x in xs]
        return sum((sad.sum(y**2.0) for y in together(names)(*squares)), 0.0)

    draw = np.random.default_rng(2).normal
    xs, tangents = ([sad.array(value) for _ in names] for value in (X, draw(size=X.shape)))
    _, products = sad.jvp(sad.grad(loss, tuple(range(len(names)))), xs, tangents)
    by_hvp = sad.hvp(loss, xs, tangents)
    for name, product, hessian_row in zip(names, products, by_hvp, strict=True):
        np.testing.assert_allclose(
            product.numpy(), hessian_row.numpy(), rtol=1e-3, atol=1e-3, err_msg=name
        )
