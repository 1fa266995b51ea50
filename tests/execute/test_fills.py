"""What runs fill, and when."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.commands import Fill
from shaderad.execute.prepared import EARLY_BYTES, Prepared
from shaderad.execute.runner import GraphRunner


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], y: sad.Add[float]):
    y[i] += x[i]
    y[(i + 1) % len(x)] += 2.0 * x[i]


def prepared_of(graph: Any, x: sad.Array) -> Prepared:
    bound = graph.bound((x,), {})
    runner = x.device.kept(GraphRunner)
    graph, sizes = bound.variant.graph, bound.form.size_by_name
    return runner.prepared(graph, bound.operands, sizes).commands


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 4, 1 << 14])
def test_small_sums_are_zeroed_at_the_start_of_each_run(device: sad.Device, count: int) -> None:
    @sad.graph
    def spread_often(x: sad.Array[float, "n"]) -> sad.Array[float]:
        for _ in range(3):
            x = spread(x, dim=x.shape[0])
        return x

    x = np.random.default_rng(0).integers(-4, 5, count).astype(np.float32)
    expected = x
    for _ in range(3):
        expected = expected + 2.0 * np.roll(expected, 1)
    given = sad.array(x, device=device)
    for _ in range(3):
        np.testing.assert_array_equal(spread_often(given), expected)
    prepared = prepared_of(spread_often, given)
    at = [k for k, one in enumerate(prepared.commands) if isinstance(one, Fill)]
    early_count = min(3, EARLY_BYTES // given.numpy().nbytes)
    assert at[:early_count] == [*range(early_count)]
    assert len(at) == 3
    assert all(k > early_count for k in at[early_count:])


@pytest.mark.gpu
def test_sums_in_a_while_loop_start_at_zero_in_each_iteration(device: sad.Device) -> None:
    @sad.graph
    def spread_until(x: sad.Array[float, "n"]) -> sad.Array[float]:
        _, found = sad.while_loop(
            lambda carry: carry[0] < 3,
            lambda carry: (carry[0] + 1, spread(carry[1], dim=carry[1].shape[0])),
            (0, x),
            limit=8,
        )
        return found

    x = np.float32([1.0, 2.0, 3.0, 5.0])
    expected = x
    for _ in range(3):
        expected = expected + 2.0 * np.roll(expected, 1)
    for _ in range(2):
        np.testing.assert_array_equal(spread_until(sad.array(x, device=device)), expected)
