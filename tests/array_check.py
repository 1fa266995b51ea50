"""Derivatives of array graphs, judged by the NumPy evaluator alone.

`check` holds the jvp of a graph against central differences of its primal, and its vjp against
its jvp by the dot-product identity ``<y_bar, y_dot> == <x_bar, x_dot>``; then, as derivatives are
graphs, the same of the vjp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.interpret.arrays import evaluate
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.types import FLOAT, Type, is_differentiable
from shaderad.rules.arrays import jvp, vjp

STEP = 1e-6
DIFFERENCES = 1e-5
"""Central differences in float64 with steps of 1e-6 are good to about 1e-9 of values near 1."""
IDENTITY = 1e-9
"""Both sides are sums of some dozens of products in float64."""


def array(shape: tuple[Any, ...], element: Type = FLOAT) -> Value:
    """An input of a graph."""
    return Value(ArrayType(element, shape))


def check(
    graph: Graph,
    inputs: Sequence[Any],
    sizes: Mapping[str, int] | None = None,
    *,
    order: int = 2,
    seed: int = 0,
) -> None:
    """Fails where a derivative of `graph` at `inputs` is wrong, up to `order`."""
    rng = np.random.default_rng(seed)
    active = [is_differentiable(v.element) for v in graph.inputs]
    forward, backward = jvp(graph, active), vjp(graph, active)
    dots = [like(x, rng) for x, one in zip(inputs, active, strict=True) if one]
    found, _ = evaluate(forward, [*inputs, *dots], sizes)
    count = len(graph.outputs)
    floats = [k for k, v in enumerate(graph.outputs) if is_differentiable(v.element)]
    dots_out = found[count:]
    expected = differences(graph, inputs, active, dots, sizes)
    for dot, k in zip(dots_out, floats, strict=True):
        near(dot, expected[k])
    bars = [like(found[k], rng) for k in floats]
    pulled, _ = evaluate(backward, [*inputs, *bars], sizes)
    for one, other in zip(pulled[:count], found[:count], strict=True):
        near(one, other)
    left = sum(inner(a, b) for a, b in zip(bars, dots_out, strict=True))
    right = sum(inner(a, b) for a, b in zip(pulled[count:], dots, strict=True))
    assert np.isclose(left, right, rtol=IDENTITY, atol=IDENTITY), f"{left} != {right}"
    if order > 1:
        check(backward, [*inputs, *bars], sizes, order=order - 1, seed=seed + 1)


def gradients(graph: Graph, inputs: Sequence[Any], bars: Sequence[Any], **sizes: int) -> list[Any]:
    """Of all inputs that hold floats."""
    active = [is_differentiable(v.element) for v in graph.inputs]
    found, _ = evaluate(vjp(graph, active), [*inputs, *bars], sizes)
    return found[len(graph.outputs) :]


def differences(
    graph: Graph,
    inputs: Sequence[Any],
    active: Sequence[bool],
    dots: Sequence[Any],
    sizes: Mapping[str, int] | None,
) -> list[Any]:
    """Central differences of every output along `dots`."""
    results: list[list[Any]] = []
    for sign in (1, -1):
        moving = iter(dots)
        given = [
            moved(x, next(moving), sign * STEP) if one else x
            for x, one in zip(inputs, active, strict=True)
        ]
        results.append(evaluate(graph, given, sizes)[0])
    return [difference(a, b) for a, b in zip(*results, strict=True)]


def moved(x: Any, dot_of_x: Any, step: float) -> Any:
    if isinstance(x, dict):
        return {n: moved(part, dot_of_x[n], step) for n, part in x.items()}
    data = np.asarray(x)
    return data + step * dot_of_x if data.dtype.kind == "f" else data


def difference(a: Any, b: Any) -> Any:
    if isinstance(a, dict):
        return {n: difference(part, b[n]) for n, part in a.items()}
    if a.dtype.kind != "f":
        return np.zeros_like(a)
    with np.errstate(invalid="ignore"):
        found = (a - b) / (2 * STEP)
    return np.where(a == b, 0, found)  # also where both are infinite


def like(x: Any, rng: np.random.Generator) -> Any:
    """Random numbers for the floats in `x`, zeros for the rest."""
    if isinstance(x, dict):
        return {n: like(part, rng) for n, part in x.items()}
    data = np.asarray(x)
    return rng.normal(size=data.shape) if data.dtype.kind == "f" else np.zeros_like(data)


def near(found: Any, expected: Any) -> None:
    if isinstance(found, dict):
        for n, part in found.items():
            near(part, expected[n])
        return
    np.testing.assert_allclose(found, expected, rtol=DIFFERENCES, atol=DIFFERENCES)


def inner(a: Any, b: Any) -> float:
    if isinstance(a, dict):
        return sum(inner(part, b[n]) for n, part in a.items())
    return float(np.sum(np.asarray(a, float) * np.asarray(b, float)))
