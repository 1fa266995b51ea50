"""Steps that sizes or values make copies or fills, and calls whose indices they prove."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.runner import evaluate
from shaderad.ir import building as b
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph
from shaderad.plan.call_kernels import CallKernel
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan
from shaderad.plan.steps import CopyValues, RunKernel, Step
from tests.array_check import array

pytestmark = pytest.mark.gpu


def zeros(x: Any) -> Any:
    inside = sad.fori_loop(2, lambda _, p: sad.roll(p, 1) + sad.zeros(p.shape), x)
    return sad.zeros((x.shape[0], 3)), sad.full((2,), -0.0), inside


@pytest.mark.parametrize("n", [5, 0, 40_000])
def test_zeros_are_fills_but_for_negative_ones(device: sad.Device, n: int) -> None:
    graph, x = sad.graph(zeros), sad.array(np.arange(n, dtype=np.float32))
    text = graph.explain(x)
    assert text.count(". zeros") == 1
    assert "over [2]" in text
    for _ in range(2):  # the second run uses buffers of the first one
        filled, negative, moved = graph(x)
        np.testing.assert_array_equal(filled.numpy(), np.zeros((n, 3)))
        assert np.signbit(negative.numpy()).all()
        np.testing.assert_array_equal(moved.numpy(), np.roll(np.arange(n), 2))
        del filled, negative, moved


@pytest.mark.parametrize(("n", "m", "kind"), [(5, 5, CopyValues), (5, 3, RunKernel)])
def test_a_slice_of_the_whole_array_is_a_copy(
    device: sad.Device, n: int, m: int, kind: type[Step]
) -> None:
    size, count = sizes.symbol("n"), sizes.symbol("m")
    x = array((size,))
    graph = Graph((x,), (b.piece(x, 0, sizes.subtract(size, count), count),))
    (step,) = PlanChoices({"n": n, "m": m}).chosen(plan(graph)).steps
    assert isinstance(step, kind)
    data = np.arange(n, dtype=np.float32)
    (last,) = evaluate(graph, [sad.array(data, device=device)], {"n": n, "m": m}, device)
    np.testing.assert_array_equal(last.numpy(), data[n - m :])


@sad.kernel
def next_if_positive(i: sad.Index, x: sad.In[float], out: sad.Out[float]):
    if x[i] > 0.0:
        out[i] = x[i + 1]


def test_indices_that_sizes_prove_are_not_checked(device: sad.Device) -> None:
    graph = sad.graph(lambda x, count: next_if_positive(x, dim=count.shape[0]))
    x = sad.array(np.float32([1, 2, 3, 4, 5]))
    found: dict[int, int] = {}
    for n in (4, 5):
        count = sad.zeros(n)
        bound = graph.bound((x, count), {})
        known = bound.form.size_by_name
        (step,) = PlanChoices(known).chosen(plan(bound.variant.graph)).steps
        assert isinstance(step, CallKernel)
        found[n] = len(step.natural)
        (open_step,) = PlanChoices({}).chosen(plan(bound.variant.graph)).steps
        assert isinstance(open_step, CallKernel)
        assert not open_step.natural
    assert found[4] > found[5]
    np.testing.assert_array_equal(graph(x, sad.zeros(4)).numpy(), [2, 3, 4, 5])
    with pytest.raises(sad.BoundsError, match="SR0660"):
        graph(x, sad.zeros(5)).numpy()
