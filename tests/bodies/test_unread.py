"""Arrays that kernels write and nobody reads."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.bodies.unread import without_unread
from shaderad.ir import nodes
from shaderad.ir.walk import statements


@sad.kernel
def parts(
    i: sad.Index, x: sad.In[float], low: sad.Out[float], high: sad.Out[float],
    twice: sad.Out[float], total: sad.Add[float],
):  # fmt: skip
    if x[i] > 0.0:
        low[i] = x[i]
        high[i] = 2.0 * x[i]
        twice[i] = 2.0 * low[i]
    total[0] += x[i]


def stored(kernel: nodes.Kernel) -> set[str]:
    return {s.buffer for s in statements(kernel.body) if isinstance(s, nodes.Store)}


def test_arrays_that_a_kernel_reads_or_sums_stay() -> None:
    kernel = parts.specialise({})
    names = frozenset({"low", "high", "twice", "total"})
    left = without_unread(kernel, names)
    assert [b.name for b in left.buffers] == ["x", "low", "total"]
    assert stored(left) == {"low"}
    assert without_unread(kernel, frozenset({"low", "total"})) is kernel
    assert without_unread(kernel, names) is left


@pytest.mark.gpu
def test_a_graph_writes_the_arrays_that_it_reads(device: sad.Device) -> None:
    def highest(x: sad.Array) -> sad.Array:
        return sad.max(parts(x, shapes={"total": (1,)})[1])

    graph, x = sad.graph(highest), sad.array(np.float32([1, -2, 3]))
    text = graph.explain(x)
    (line,) = (one for one in text.splitlines() if "kernel parts" in one)
    assert line.count("float[3]") == 2
    assert float(graph(x)) == 6.0
    value, gradient = sad.graph(sad.value_and_grad(highest))(x)
    assert float(value) == 6.0
    np.testing.assert_array_equal(gradient.numpy(), [0, 0, 2])
