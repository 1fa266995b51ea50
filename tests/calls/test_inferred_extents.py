"""Calls without ``dim=``: arrays read or written at an Index itself say the extents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad

X = np.arange(5, dtype=np.float32)
W = np.float32([2.0, 3.0, 4.0])
AT = np.int32([0, 2, 1, 0, 2])


@sad.struct
class Table:
    weights: sad.In[float]
    at: sad.In[int]
    scale: float


@sad.kernel
def gathered(i: sad.Index, x: sad.In[float], table: Table, y: sad.Out[float]):
    y[i] = x[i] * table.weights[table.at[i]] * table.scale


@sad.kernel
def outer(i: sad.Index, j: sad.Index, a: sad.In[float], b: sad.In[float], y: sad.Out[float, 2]):
    y[i, j] = a[i] * b[j] + a[i + 1]


@sad.kernel
def numbered(i: sad.Index, start: int, y: sad.Out[float]):
    y[i] = float(start + i)


@sad.kernel
def shifted(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i + 1]


@sad.kernel
def lone(start: float, y: sad.Out[float]):
    y[0] = start


TABLE = Table(weights=W, at=AT, scale=0.5)
GATHERED = X * W[AT] * 0.5


def test_arrays_read_at_the_index_say_the_extents(device: sad.Device) -> None:
    np.testing.assert_array_equal(gathered(X, TABLE).numpy(), GATHERED)
    assert gathered(X[:0], Table(weights=W, at=AT[:0], scale=0.5)).shape == (0,)
    found = outer(X, W, bounds="ignore").numpy()
    np.testing.assert_array_equal(found, np.outer(X, W) + np.append(X[1:], 0)[:, None])


def test_results_of_a_given_shape_say_them_too(device: sad.Device) -> None:
    assert numbered(3, shapes={"y": 4}).numpy().tolist() == [3, 4, 5, 6]
    assert lone(2.0, shapes={"y": 1}).numpy().tolist() == [2.0]


def test_derivatives_and_traces_ask_for_no_more(device: sad.Device) -> None:
    bar = np.float32([1.0, 0.5, 2.0, -1.0, 3.0])
    out, pullback = sad.vjp(gathered, X, TABLE)
    np.testing.assert_array_equal(out.numpy(), GATHERED)
    np.testing.assert_array_equal(pullback(bar)[0].numpy(), bar * W[AT] * 0.5)
    _, out_dot = sad.jvp(gathered, (X, TABLE), (bar, None))
    np.testing.assert_array_equal(out_dot.numpy(), bar * W[AT] * 0.5)
    sad.gradcheck(gathered, X, TABLE)

    @sad.graph
    def loss(x: Any, weights: Any, at: Any) -> Any:
        return sad.sum(gathered(x, Table(weights=weights, at=at, scale=0.5)))

    assert float(loss(X, W, AT)) == GATHERED.sum()
    np.testing.assert_array_equal(sad.grad(loss)(X, W, AT).numpy(), W[AT] * 0.5)
    with pytest.raises(sad.ShapeError, match="SR0385"):
        loss(X, W, AT[:3])


def test_extents_that_differ_are_listed(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match="SR0385") as raised:
        gathered(X, Table(weights=W, at=AT[:4], scale=0.5))
    assert "arrays at `i` differ in extent" in str(raised.value)
    assert "`x` has 5 on axis 0, `table_at` has 4 on axis 0" in str(raised.value)
    assert gathered(X, Table(weights=W, at=AT[:4], scale=0.5), dim=4).shape == (4,)


@pytest.mark.parametrize("call", [lambda: numbered(3), lambda: shifted(X)])
def test_where_no_array_says_them_they_are_asked_for(call: Any, device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match="SR0372"):
        call()


def test_a_thread_is_debugged_without_them(device: sad.Device) -> None:
    assert gathered.debug(X, TABLE, thread=1) == {"y": {1: GATHERED[1]}}
    with pytest.raises(sad.ShapeError, match="SR0676"):
        gathered.debug(X, TABLE, thread=5)


def test_a_build_knows_them(device: sad.Device, tmp_path: Path) -> None:
    sad.build(f"{__file__}:outer", tmp_path, targets="spirv", validate=False)
    loaded = sad.load(tmp_path).outer
    found = loaded(X, W)
    assert found.shape == (5, 3)
    with pytest.raises(sad.BoundsError, match="SR0660"):
        device.synchronize()
    np.testing.assert_array_equal(found.numpy(), outer(X, W, bounds="ignore").numpy())
