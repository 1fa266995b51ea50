"""Settings of array functions, such as axes and strides: lists mean what tuples mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import render

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
PICTURE, WEIGHTS = np.ones((1, 1, 6, 6), np.float32), np.ones((1, 1, 2, 2), np.float32)
Form = Callable[[list[Any]], Any]

CALLS: dict[str, Callable[[Form], Any]] = {
    "reshape": lambda of: sad.reshape(X, of([4, 6])),
    "transpose": lambda of: sad.transpose(sad.array(X), of([2, 0, 1])),
    "broadcast_to": lambda of: sad.broadcast_to(X[0, 0], of([5, 4])),
    "zeros": lambda of: sad.zeros(of([2, 2])),
    "full": lambda of: sad.full(of([2, 2]), 1.0),
    "sum": lambda of: sad.sum(X, axis=of([0, 2])),
    "max": lambda of: sad.max(sad.array(X), axis=of([0, 2])),
    "softmax": lambda of: sad.softmax(X, of([0, 2])),
    "var": lambda of: sad.var(X, axis=of([0, 2])),
    "reduce": lambda of: sad.reduce(sad.add, X, axis=of([0, 2])),
    "tensordot": lambda of: sad.tensordot(X, X, axes=of([of([0, 1]), of([0, 1])])),
    "tensordot of one axis": lambda of: sad.tensordot(X, X, of([1, 1])),
    "conv": lambda of: sad.conv(
        PICTURE, WEIGHTS, of([2, 1]), padding=of([of([0, 1]), of([1, 0])]), dilation=of([1, 2])
    ),
    "uniform": lambda of: sad.random.uniform(sad.random.key(1), of([2, 2])),
    "split": lambda of: sad.random.split(sad.random.key(1), of([2, 2])),
    "rasterize": lambda of: (
        render.rasterize(np.zeros((3, 4), np.float32), np.zeros((1, 3), np.int32), of([4, 4])).face
    ),
    "look_at": lambda of: render.look_at(of([0, 0, 3]), of([0.0, 0.0, 0.0]), up=of([0, 1, 0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_and_tuples_are_alike_at_once_and_in_graphs(name: str) -> None:
    call = CALLS[name]
    expected = np.asarray(call(tuple))
    for found in (call(list), sad.graph(lambda: call(list))(), sad.graph(lambda: call(tuple))()):
        np.testing.assert_array_equal(np.asarray(found), expected)
