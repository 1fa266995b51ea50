"""Batches of array graphs, held against one element after the other by the NumPy evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from shaderad.interpret.arrays import evaluate
from shaderad.ir import sizes as ir_sizes
from shaderad.ir.arrays import Graph
from shaderad.ir.types import is_differentiable
from shaderad.rules.arrays import jvp, vjp
from shaderad.rules.batching import batched

EXTENTS = (0, 1, 3)
ROUNDING = 1e-12
"""Both sides are the same float64 operations; sums over the batch are in another order."""


def check_batches(
    graph: Graph,
    inputs: Sequence[Any],
    sizes: Mapping[str, int] | None = None,
    *,
    with_jvp: bool = True,
) -> None:
    """Fails where a batch of `graph`, its jvp or its vjp differs from its elements.

    Each choice of mapped inputs is tried. An element of a mapped input is the input plus, if it
    holds floats, noise; otherwise it is rolled along its last axis.
    """
    rng = np.random.default_rng(len(inputs))
    active = [is_differentiable(v.element) for v in graph.inputs]
    for flags in product([False, True], repeat=len(inputs)):
        if any(flags):
            _check(graph, inputs, flags, rng, sizes)
    if not any(active) or not any(is_differentiable(v.element) for v in graph.outputs):
        return
    own = [k % 2 == 0 for k in range(len(inputs))]
    for flags in (own, [not one for one in own], [True] * len(own)):
        if any(flags):
            check_pullback(graph, inputs, flags, sizes)
    for derive in (jvp, vjp) if with_jvp else (vjp,):
        derivative = derive(graph, active)
        bars = [_noise(v.shape, rng, sizes) for v in derivative.inputs[len(inputs) :]]
        for flags in ([*own, *[True] * len(bars)], [*own, *[False] * len(bars)],
                      [*[False] * len(own), *[True] * len(bars)]):  # fmt: skip
            if any(flags):
                _check(derivative, [*inputs, *bars], flags, rng, sizes)


def _noise(shape: Sequence[Any], rng: np.random.Generator, sizes: Any) -> Any:
    return rng.normal(size=[ir_sizes.evaluate(n, sizes or {}) for n in shape])


def _check(
    graph: Graph,
    inputs: Sequence[Any],
    flags: Sequence[bool],
    rng: np.random.Generator,
    sizes: Mapping[str, int] | None,
) -> None:
    for extent in EXTENTS:
        pairs = [*zip(inputs, flags, strict=True)]
        rows = [[_moved(x, k, rng) if one else x for x, one in pairs] for k in range(extent)]
        given = [
            stacked([row[k] for row in rows], like=x) if one else x
            for k, (x, one) in enumerate(pairs)
        ]
        whole, are_mapped = batched(graph, flags, extent)
        found, reports = evaluate(whole, given, sizes)
        apart = [evaluate(graph, row, sizes) for row in rows]
        shapes, _ = evaluate(graph, inputs, sizes)
        for k, (y, is_mapped) in enumerate(zip(found, are_mapped, strict=True)):
            expected = stacked([one[k] for one, _ in apart], like=shapes[k])
            if not is_mapped:
                expected = shapes[k]
            near(y, expected)
        if extent:  # What is shared reports for an empty batch, too.
            assert bool(reports) == any(said for _, said in apart), reports


def check_pullback(
    graph: Graph,
    inputs: Sequence[Any],
    flags: Sequence[bool],
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Fails where the vjp of a batch differs from those of its elements.

    The gradient of what all elements share is the sum of theirs.
    """
    rng = np.random.default_rng(5)
    active = [is_differentiable(v.element) for v in graph.inputs]
    floats = [k for k, v in enumerate(graph.outputs) if is_differentiable(v.element)]
    count, pulled = len(graph.outputs), vjp(graph, active)
    for extent in EXTENTS:
        pairs = [*zip(inputs, flags, strict=True)]
        rows = [[_moved(x, k, rng) if f else x for x, f in pairs] for k in range(extent)]
        bars = [_noise((extent, *graph.outputs[k].shape), rng, sizes) for k in floats]
        apart = [
            evaluate(pulled, [*row, *(bar[k] for bar in bars)], sizes)[0][count:]
            for k, row in enumerate(rows)
        ]
        whole, are_mapped = batched(graph, flags, extent)
        columns = [
            stacked([row[k] for row in rows], like=x) if f else x for k, (x, f) in enumerate(pairs)
        ]
        given = [bar if are_mapped[k] else bar.sum(0) for k, bar in zip(floats, bars, strict=True)]
        found, _ = evaluate(vjp(whole, active), [*columns, *given], sizes)
        gradients = [(x, f) for (x, f), a in zip(pairs, active, strict=True) if a]
        for k, (x, is_mapped) in enumerate(gradients):
            expected = stacked([one[k] for one in apart], like=x)
            near(found[count + k], expected if is_mapped else expected.sum(0))


def _moved(x: Any, k: int, rng: np.random.Generator) -> Any:
    data = np.asarray(x)
    if data.dtype.kind == "f":
        return data + 0.3 * rng.normal(size=data.shape)
    return np.roll(data, k, -1) if data.ndim else data + (k if data.dtype.kind == "i" else 0)


def stacked(rows: Sequence[Any], like: Any) -> Any:
    """`rows` along a new first axis; none of them have the form of `like`."""
    if isinstance(like, dict):
        return {name: stacked([row[name] for row in rows], part) for name, part in like.items()}
    whole = np.asarray(like)
    return np.stack(rows) if rows else np.zeros((0, *whole.shape), whole.dtype)


def near(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        for name, part in expected.items():
            near(found[name], part)
        return
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)
