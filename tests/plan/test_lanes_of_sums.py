"""Sums with few results on a GPU: lanes of a wave share each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered

Numbers = Any


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


def relative_error(result: Numbers, expected: Numbers) -> float:
    difference = np.abs(result.astype(np.float64) - expected)
    return float(difference.max() / np.abs(expected).max())


def drawn(*shape: int, seed: int = 0) -> Numbers:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def transposed_product(x: Any, y: Any) -> Any:
    return x.T @ y


def scaled(x: Any, y: Any) -> Any:
    return sad.tanh((x.T @ y) * 0.01) + 1.0


def with_column_sums(x: Any, y: Any) -> Any:
    return x.T @ y, sad.sum(y, axis=0)


def in_numpy(function: Callable[..., Any], x: Numbers, y: Numbers) -> list[Numbers]:
    """The results in float64."""
    product = x.T.astype(np.float64) @ y
    if function is scaled:
        return [np.tanh(product * 0.01) + 1.0]
    return [product, y.sum(0, dtype=np.float64)] if function is with_column_sums else [product]


@pytest.mark.gpu
@pytest.mark.parametrize("function", [transposed_product, scaled, with_column_sums])
@pytest.mark.parametrize(
    ("count", "m", "n"),
    [(65536, 32, 32), (65536, 2, 32), (5003, 32, 3), (4097, 1, 7), (2048, 5, 5), (513, 9, 4)],
)
def test_they_agree_with_numpy(
    function: Callable[..., Any], count: int, m: int, n: int, parallel: sad.Device
) -> None:
    x, y = drawn(count, m), drawn(count, n, seed=1)
    given: Any = sad.graph(function)(x, y)
    results: list[sad.Array] = [*given] if isinstance(given, tuple) else [given]
    for result, expected in zip(results, in_numpy(function, x, y), strict=True):
        assert relative_error(result.numpy(), expected) < 1e-5


@pytest.mark.gpu
def test_long_sums_are_added_in_runs(parallel: sad.Device) -> None:
    x, y = drawn(1 << 20, 2) + 1.0, drawn(1 << 20, 3, seed=1) + 1.0
    graph = sad.graph(transposed_product)
    assert "8 threads per part" in graph.explain(x, y)
    assert relative_error(graph(x, y).numpy(), x.T.astype(np.float64) @ y) < 1e-6


@pytest.mark.gpu
def test_ints_are_exact(parallel: sad.Device) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-50, 50, (3000, n)).astype(np.int32) for n in (4, 6))
    assert np.array_equal(sad.graph(transposed_product)(x, y).numpy(), x.T @ y)


@pytest.mark.gpu
def test_discarded_cotangents_stay_out_of_sums(parallel: sad.Device) -> None:
    def loss(w: Any, x: Any) -> Any:
        h = x @ w
        return sad.sum(sad.where(h > 0.0, sad.sqrt(h), 0.0))

    x, w = drawn(3000, 4), drawn(4, 5, seed=1)
    x[7] = 0.0  # Here the derivative of the root is infinite, and discarded.
    h = x.astype(np.float64) @ w
    with np.errstate(all="ignore"):
        slope = np.where(h > 0, 0.5 / np.sqrt(np.where(h > 0, h, 1.0)), 0.0)
    gradient = sad.grad(loss)(sad.array(w), sad.array(x))
    assert relative_error(gradient.numpy(), x.T.astype(np.float64) @ slope) < 1e-4


@pytest.mark.gpu
def test_what_waves_do_not_exchange_has_a_thread_per_part(parallel: sad.Device) -> None:
    x, y = drawn(2048, 3).astype(np.float64), drawn(2048, 4, seed=1).astype(np.float64)
    given = sad.array(x, dtype=sad.double), sad.array(y, dtype=sad.double)
    graph = sad.graph(transposed_product)
    assert "threads per part" not in graph.explain(*given)
    assert relative_error(graph(*given).numpy(), x.T @ y) < 1e-12
