"""What a loop stores in each iteration, and what it stores before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

N = 20_000


@sad.kernel
def blend(i: sad.Index, x: sad.In[float], w: sad.In[float], share: float, y: sad.Out[float]):
    kept = x[i]
    for k in range(i % 3):
        kept += x[i - k - 1]
    y[i] = (1.0 - share) * kept / (1.0 + float(i % 3)) + share * w[i]


def repeated(x: Any, w: Any) -> Any:
    """A number, and an array that is the same in each iteration."""

    def body(_: Any, x: Any) -> Any:
        return blend(x, sad.sin(w) * 2.0, 0.25, dim=N)

    return sad.fori_loop(6, body, x)


def nested(x: Any, w: Any) -> Any:
    def outer(k: Any, x: Any) -> Any:
        def inner(_: Any, x: Any) -> Any:
            return blend(x, sad.sin(w) * 2.0, 0.25, dim=N)

        return sad.fori_loop(3, inner, x)

    return sad.fori_loop(2, outer, x)


def until(x: Any, w: Any) -> Any:
    def goes_on(carry: Any) -> Any:
        return carry[1] < 6

    def body(carry: Any) -> Any:
        x, k = carry
        return blend(x, sad.sin(w) * 2.0, 0.25, dim=N), k + 1

    return sad.while_loop(goes_on, body, (x, 0), limit=10)[0]


def different(x: Any, w: Any) -> Any:
    """In each iteration another number: nothing moves."""

    def body(k: Any, x: Any) -> Any:
        return blend(x, sad.sin(w) * 2.0, 0.25 + 0.0 * sad.cast(k, float), dim=N)

    return sad.fori_loop(6, body, x)


def expected(x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    i = np.arange(N)
    for _ in range(6):
        kept = x + np.where(i % 3 > 0, np.roll(x, 1), 0) + np.where(i % 3 > 1, np.roll(x, 2), 0)
        x = 0.75 * kept / (1 + i % 3) + 0.5 * np.sin(w)
    return x


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "inside"),
    [
        (repeated, ["kernel"]),
        (nested, ["loop", "kernel"]),
        (until, ["map_select", "kernel", "map_select"]),
        (different, ["map_add", "kernel"]),
    ],
)
def test_what_a_kernel_takes_is_stored_once(
    function: Callable[..., Any], inside: list[str], device: sad.Device
) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, N)).astype(np.float32)
    graph = sad.graph(function)
    np.testing.assert_allclose(graph(x, w).numpy(), expected(x, w), rtol=1e-5, atol=1e-6)
    lines = [line for line in graph.explain(x, w).splitlines() if line.startswith("     ")]
    assert [line.split()[1] for line in lines] == inside
