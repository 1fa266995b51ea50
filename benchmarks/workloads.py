"""What the benchmarks differentiate: inputs, and gradients in float64 by formula.

Each workload takes the number of its samples, so that tests can run small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from timing import Floats


@dataclass(frozen=True)
class Workload:
    """A loss whose gradient by one argument is wanted."""

    inputs: dict[str, Floats]
    reference: Floats
    """The gradient in float64."""


def interpolation(count: int = 2_000_000) -> Workload:
    """W1: samples of a mesh with colours at its vertices, in random order.

    ``loss = sum(|interpolated - target|^2)``, by the vertex attributes: 99,102 triangles over a
    grid of 250 x 200 vertices.
    """
    rng = np.random.default_rng(0)
    columns, rows = 250, 200
    x, y = np.meshgrid(np.arange(columns - 1), np.arange(rows - 1))
    low = (y * columns + x).ravel()
    triangles = np.concatenate(
        [
            np.stack([low, low + 1, low + columns], 1),
            np.stack([low + 1, low + columns + 1, low + columns], 1),
        ]
    )
    attributes = rng.standard_normal((columns * rows, 3)).astype(np.float32)
    face = rng.integers(0, len(triangles), count).astype(np.int32)
    uv = rng.random((count, 2)).astype(np.float32)
    uv[uv.sum(1) > 1] = 1 - uv[uv.sum(1) > 1]
    target = rng.standard_normal((count, 3)).astype(np.float32)

    corner = triangles[face]
    weight = np.stack([1 - uv.sum(1, dtype=np.float64), uv[:, 0], uv[:, 1]], 1)
    miss = (attributes.astype(np.float64)[corner] * weight[..., None]).sum(1) - target
    gradient = np.zeros(attributes.shape)
    for k in range(3):
        for c in range(3):
            terms = 2 * miss[:, c] * weight[:, k]
            gradient[:, c] += np.bincount(corner[:, k], terms, len(gradient))
    inputs = {
        "attributes": attributes,
        "triangles": triangles.astype(np.int32),
        "face": face,
        "uv": uv,
        "target": target,
    }
    return Workload(inputs, gradient)


def parabola(count: int = 4_000_000) -> Workload:
    """W2: a parabola through many points.

    ``loss = sum((a x^2 + b x + c - y)^2)``, by the three parameters, which every thread reads.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, count).astype(np.float32)
    noise = 0.1 * rng.standard_normal(count)
    y = (0.3 * x * x - 0.5 * x + 0.2 + noise).astype(np.float32)
    parameters = np.array([1.0, 0.5, -0.25], np.float32)
    x64 = x.astype(np.float64)
    miss = parameters[0] * x64 * x64 + parameters[1] * x64 + parameters[2] - y
    gradient = np.array([(2 * miss * x64 * x64).sum(), (2 * miss * x64).sum(), (2 * miss).sum()])
    return Workload({"parameters": parameters, "x": x, "y": y}, gradient)


def chain(count: int = 4_000_000) -> Workload:
    """W3: sixteen elementwise steps; four times sine, half of it, exponential, tangent.

    ``loss = sum(steps(x))``, by `x`.
    """
    x = np.random.default_rng(0).uniform(-1, 1, count).astype(np.float32)
    value, gradient = x.astype(np.float64), np.ones(count)
    for _ in range(4):
        gradient *= 0.5 * np.cos(value)
        value = np.exp(0.5 * np.sin(value))
        gradient *= value
        value = np.tanh(value)
        gradient *= 1 - value * value
    return Workload({"x": x}, gradient)


def products(count: int = 1_000_000) -> Workload:
    """W4: ``loss = sum(cumprod(x) * x)`` of numbers near 1, by `x`."""
    x = (1 + 1e-4 * np.random.default_rng(0).standard_normal(count)).astype(np.float32)
    x64 = x.astype(np.float64)
    product = np.cumprod(x64)
    behind = np.cumsum((product * x64)[::-1])[::-1]
    return Workload({"x": x}, product + behind / x64)


WORKLOADS: dict[str, Callable[..., Workload]] = {
    "W1": interpolation,
    "W2": parabola,
    "W3": chain,
    "W4": products,
}
