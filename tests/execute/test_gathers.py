"""Reads by index array on devices: behind layout nodes, inside of loops, out of range."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

A = np.array([1.5, -2.0, 0.5, 3.0, 0.25, -1.0], np.float32)
I = np.array([1, 0, 1], np.int32)  # noqa: E741 - an index
TOLERANCE = 1e-5
"""float32, sums of a few numbers near 1."""
CAPTURED = np.linspace(-1.0, 1.0, 6).astype(np.float32)


@sad.kernel
def picked(i: sad.Index, x: sad.In[float, 2], index: sad.In[int], y: sad.Out[float]):
    y[i] = x[index[i], 1]


def stepwise(step: Callable[[Any, Any], Any], carry: Any) -> Any:
    return sad.fori_loop(2, step, carry)


Function = Callable[[Any, Any], Any]
"""Of `A` and `I`."""

LINEAR: dict[str, tuple[Function, Function]] = {
    "reshaped input": (
        lambda a, i: sad.reshape(a, (3, 2))[i],
        lambda a, i: a.reshape(3, 2)[i],
    ),
    "reshaped twice": (
        lambda a, i: sad.reshape(sad.reshape(a, (3, 2)), (2, 3))[i],
        lambda a, i: a.reshape(2, 3)[i],
    ),
    "reshaped computed": (
        lambda a, i: sad.reshape(a * 2.0 + a, (2, 3))[:, i],
        lambda a, i: (3 * a).reshape(2, 3)[:, i],
    ),
    "transposed": (
        lambda a, i: sad.transpose(sad.reshape(a, (3, 2)))[i, i],
        lambda a, i: a.reshape(3, 2).T[i, i],
    ),
    "broadcast": (
        lambda a, i: sad.broadcast_to(a, (2, 6))[i],
        lambda a, i: np.broadcast_to(a, (2, 6))[i],
    ),
    "sliced": (lambda a, i: a[1::2][i], lambda a, i: a[1::2][i]),
    "new axes": (lambda a, i: a[:, None][i], lambda a, i: a[:, None][i]),
    "five axes": (
        lambda a, i: sad.reshape(a, (3, 1, 1, 1, 2))[i],
        lambda a, i: a.reshape(3, 1, 1, 1, 2)[i],
    ),
    "both as it is and reshaped": (
        lambda a, i: sad.reshape(a, (3, 2))[i, i] + a[:3] + a[i],
        lambda a, i: a.reshape(3, 2)[i, i] + a[:3] + a[i],
    ),
    "carry": (
        lambda a, i: stepwise(lambda k, t: sad.reshape(t, (6,))[k] + t, a),
        lambda a, i: (a[0] + a) + (a[0] + a)[1],
    ),
    "reshaped carry": (
        lambda a, i: stepwise(lambda k, t: t + sad.sum(sad.reshape(t, (2, 3))[k]), a),
        lambda a, i: (s := a + a[:3].sum()) + s[3:].sum(),
    ),
    "constant of a loop": (
        lambda a, i: stepwise(lambda k, t: t + sad.reshape(a, (2, 3))[k], a[:3]),
        lambda a, i: 2 * a[:3] + a[3:],
    ),
    "layout inside of a loop": (
        lambda a, i: stepwise(lambda k, t: t + sad.transpose(sad.reshape(a, (3, 2)))[k], a[:3]),
        lambda a, i: a[:3] + a.reshape(3, 2).sum(1),
    ),
    "rows of a loop": (
        lambda a, i: sad.loop(
            lambda t, x: (t + sad.reshape(x, (2, 1))[i], x[i]), a[3:, None], sad.reshape(a, (3, 2))
        )[0],
        lambda a, i: a[3:, None] + a.reshape(3, 2).sum(0)[i][:, None],
    ),
    "scattered into": (
        lambda a, i: sad.scatter(sad.reshape(a, (3, 2)), i[:2], sad.reshape(a[2:], (2, 2))),
        lambda a, i: np.stack([a[4:], a[2:4], a[4:]]),
    ),
    "added to": (
        lambda a, i: sad.scatter_add(sad.reshape(a, (2, 3)), i, sad.reshape(a, (3, 2))[:, :1]),
        lambda a, i: a.reshape(2, 3) + np.stack([a[2:3], a[:1] + a[4:5]]),
    ),
    "counted": (
        lambda a, i: sad.segment_reduce(
            sad.add, 0.0, 2, sad.reshape(i, (3, 1)), sad.reshape(a, (3, 1, 2))
        ),
        lambda a, i: np.stack([a[2:4], a[:2] + a[4:]]),
    ),
    "sorted": (
        lambda a, i: sad.sort(sad.reshape(a, (2, 3)), 1)[i],
        lambda a, i: np.take_along_axis(a.reshape(2, 3), np.argsort(A.reshape(2, 3)), 1)[i],
    ),
    "read by a kernel": (
        lambda a, i: picked(sad.reshape(a, (3, 2)), i, dim=3),
        lambda a, i: a.reshape(3, 2)[i, 1],
    ),
    "captured": (
        lambda a, i: sad.reshape(CAPTURED, (3, 2))[i] * a[:2],
        lambda a, i: CAPTURED.reshape(3, 2)[i] * a[:2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_layout_nodes_are_indexed_and_differentiated(device: sad.Device, name: str) -> None:
    function, in_numpy = LINEAR[name]

    @sad.graph
    def graph(a: sad.Array[float, "n"], i: sad.Array[int, "k"]) -> Any:
        return function(a, i)

    with device:
        y, pullback = sad.vjp(graph, A, I)
        expected = in_numpy(A, I)
        np.testing.assert_allclose(y.numpy(), expected, rtol=TOLERANCE)
        bar = np.random.default_rng(0).uniform(-1, 1, expected.shape).astype(np.float32)
        gradient = [(bar * in_numpy(one, I)).sum() for one in np.eye(len(A))]
        np.testing.assert_allclose(pullback(bar)[0].numpy(), gradient, rtol=TOLERANCE, atol=1e-6)
        direction = A[::-1].copy()
        _, y_dot = sad.jvp(lambda a: graph(a, I), (A,), (direction,))
        np.testing.assert_allclose(y_dot.numpy(), in_numpy(direction, I), rtol=TOLERANCE)


OUT_OF_RANGE: dict[str, Function] = {
    "reshaped": lambda a, i: sad.reshape(a, (3, 2))[:, i],
    "five axes": lambda a, i: sad.reshape(a, (1, 3, 1, 2, 1))[:, :, :, i],
    "five index arrays": lambda a, i: sad.reshape(a, (1, 1, 1, 3, 2))[i * 0, i * 0, i * 0, i, i],
    "constant of a loop": lambda a, i: sad.fori_loop(3, lambda k, t: t + a[2 * k + 2], a[0]),
    "constant of a limited loop": lambda a, i: sad.while_loop(
        lambda t: t < 9.0, lambda t: t + 1.0 + a[sad.cast(t, int)], a[2], limit=20
    ),
    "rows of a loop": lambda a, i: sad.loop(
        lambda t, x: (t + x[i], x[i]), a[3:], sad.reshape(a, (3, 2))
    )[0],
    "carry of one element": lambda a, i: sad.fori_loop(
        2, lambda k, t: t + sad.reshape(t, (1,))[k], a[0]
    ),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_positions_out_of_range_are_reported_with_the_line(device: sad.Device, name: str) -> None:
    @sad.graph
    def graph(a: sad.Array[float, "n"], i: sad.Array[int, "k"]) -> Any:
        return OUT_OF_RANGE[name](a, i)

    with device, pytest.raises(sad.BoundsError) as caught:
        graph(A, np.array([1, 0, 2], np.int32)).numpy()
    assert caught.value.code == "SR0660"
    assert __file__ in str(caught.value)


@sad.graph
def shifted(x: sad.Array[float, "m", "n"], i: sad.Array[int]) -> sad.Array[float, "m", "n"]:
    return sad.sin(x + x[i, i] * x[0, i])


def test_an_array_is_read_at_the_own_index_and_at_another(device: sad.Device) -> None:
    """One kernel names its axes for the one and would number its elements for the other."""
    x, one = A.reshape(2, 3), np.int32(1)
    with device:
        y, pullback = sad.vjp(shifted, x, one)
        inner = x + x[1, 1] * x[0, 1]
        assert np.allclose(y.numpy(), np.sin(inner), atol=TOLERANCE)
        expected = np.cos(inner)
        expected[1, 1] += np.cos(inner).sum() * x[0, 1]
        expected[0, 1] += np.cos(inner).sum() * x[1, 1]
        assert np.allclose(pullback(np.ones((2, 3), np.float32))[0].numpy(), expected, atol=1e-4)
        _, tangent = sad.jvp(shifted, (x, one), (np.ones((2, 3), np.float32), None))
        slope = np.cos(inner) * (1 + x[1, 1] + x[0, 1])
        assert np.allclose(tangent.numpy(), slope, atol=TOLERANCE)
