"""Graphs of a build: what a loaded plan computes is what its source does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.bundle import graphs
from tests.bundle.conftest import Output

TOLERANCE = 2e-4
"""Of the largest element: float32, and sums are grouped otherwise on devices that run threads in
turn."""
Draw = np.random.Generator
Arguments = Callable[[Draw, int], list[Any]]


def floats(draw: Draw, *shape: int) -> np.ndarray[Any, Any]:
    return draw.normal(size=shape).astype(np.float32)


def particles(draw: Draw, n: int) -> sad.Array:
    data = {"place": floats(draw, n, 2), "mass": np.abs(floats(draw, n)) + 0.5}
    return sad.array(data, dtype=graphs.Particle)


def bins(draw: Draw, n: int) -> np.ndarray[Any, Any]:
    return draw.integers(-1, 4, n).astype(np.int32)


def arguments() -> dict[str, Arguments]:
    return {
        "scan_product": lambda draw, n: [1.0 + 0.1 * floats(draw, n)],
        "calls_a_kernel": lambda draw, n: [floats(draw, n), 0.5],
        "layer": lambda draw, n: [
            floats(draw, n),
            {
                "layer": graphs.Layer(floats(draw, 3, n), floats(draw, 3)),
                "targets": floats(draw, 3),
            },
            0.7,
            2,
        ],
        "sorted_bins": lambda draw, n: [floats(draw, n), bins(draw, n), floats(draw, 3)],
        "moved": lambda draw, n: [
            floats(draw, n),
            (floats(draw, n), np.arange(min(n, 2), dtype=np.int32)),
        ],
        "halved": lambda draw, n: [np.abs(floats(draw, n)) + 1.0],
        "straight": lambda draw, n: [floats(draw, n, 1), floats(draw, 1, 2)],
        "weighed": lambda draw, n: [particles(draw, n), floats(draw, n, 4, 3)],
    }


def cotangents(out: Any) -> Any:
    """Ones for what holds floats."""
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return type(out)(*map(cotangents, out))
    if isinstance(out, tuple | list):
        return type(out)(map(cotangents, out))
    if isinstance(out, dict):
        return {name: cotangents(one) for name, one in out.items()}
    holds_floats = isinstance(out, sad.Array) and out.dtype in (float, sad.float2, sad.float3)
    return np.ones_like(out.numpy()) if holds_floats else None


def flat(tree: Any) -> list[Any]:
    """The arrays and numbers of a tree, structs as columns."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in flat(tree[name])]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in flat(part)]
    found = tree.numpy() if isinstance(tree, sad.Array) else tree
    if isinstance(found, np.ndarray) and found.dtype.names:
        return [found[name] for name in found.dtype.names]
    return [found]


def check_alike(found: Any, expected: Any) -> None:
    for one, other in zip(flat(found), flat(expected), strict=True):
        if other is None:
            assert one is None
        else:
            largest = max(1.0, float(np.max(np.abs(other), initial=0.0)))
            np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * largest)


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", arguments())
def test_a_loaded_graph_and_its_gradients_are_those_of_its_source(
    name: str, graph_output: Output, device: sad.Device
) -> None:
    loaded, source = sad.load(graph_output.folder)[name], getattr(graphs, name)
    for n in (5, 1):
        given = arguments()[name](np.random.default_rng(n), n)
        check_alike(loaded(*given), source(*given))
        out, pullback = sad.vjp(loaded, *given)
        expected, expected_pullback = sad.vjp(source, *given)
        check_alike(out, expected)
        check_alike(pullback(cotangents(out)), expected_pullback(cotangents(expected)))
    device.synchronize()


@pytest.mark.gpu
@pytest.mark.parametrize("n", [0, 20_011])
def test_one_plan_serves_every_size(n: int, graph_output: Output, device: sad.Device) -> None:
    x = np.random.default_rng(n).uniform(0.999, 1.001, n)
    value, gradient = sad.value_and_grad(sad.load(graph_output.folder).scan_product)(x)
    products = np.cumprod(x)
    np.testing.assert_allclose(value.numpy(), np.sum(products * x), rtol=1e-4)
    # d products[i] / d x[j] = products[i] / x[j] for i >= j
    wanted = np.cumsum((products * x)[::-1])[::-1] / x + products
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-4)
    device.synchronize()
