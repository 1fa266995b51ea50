"""Graphs whose nodes read more arrays than a device binds in one dispatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.execute import graph_plans
from shaderad.ir.arrays import Graph
from shaderad.plan.planning import plan

pytestmark = pytest.mark.gpu

COUNT = 12
SHAPE = (COUNT, 5)


@sad.function
def ring(
    a: float, b: float, c: float, d: float, e: float, f: float,
    g: float, h: float, i: float, j: float, k: float, n: int,
) -> float:  # fmt: skip
    return a * b + c * d + e * f + g * h + i * j + float(n) * k * a


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans for the 8 storage buffers that WebGPU guarantees."""

    def narrow(graph: Graph, limit: int, shape: LaunchShape) -> Any:
        found = plan(graph, min(limit, 8), shape)
        assert all(len(step.reads) + len(step.writes) < 8 for step in found.steps)
        return found

    monkeypatch.setattr(graph_plans, "plan", narrow)


def drawn() -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 1.5, SHAPE).astype(np.float32)


def test_a_function_of_twelve_arrays_runs_and_has_gradients(few: None, device: sad.Device) -> None:
    x, whole = drawn()[:-1], np.int32([1, 2, 3, 4, 5])

    @sad.graph
    def loss(*arrays: Any) -> Any:
        return sad.sum(sad.map(ring, *arrays))

    value, found = sad.value_and_grad(loss, argnums=tuple(range(11)))(*x, whole)
    pairs = x[:10].reshape(5, 2, 5)
    assert float(value) == pytest.approx(
        float((pairs.prod(1)).sum() + (whole * x[10] * x[0]).sum())
    )
    wanted = np.concatenate((pairs[:, ::-1].reshape(10, 5), [whole * x[0]]))
    wanted[0] += whole * x[10]
    for by_x, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(by_x.numpy(), expected, rtol=1e-5)


def test_twelve_arrays_become_one(few: None, device: sad.Device) -> None:
    x = drawn()
    for join in (sad.concatenate, sad.stack):
        joined = sad.graph(lambda *arrays, join=join: join(arrays))
        y, pullback = sad.vjp(joined, *x)
        np.testing.assert_array_equal(y.numpy().reshape(SHAPE), x)
        for k, by_x in enumerate(pullback(2.0 * y)):
            np.testing.assert_array_equal(by_x.numpy(), 2 * x[k])
