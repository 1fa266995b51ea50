"""What functions that are traced cannot call, and what their errors say to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

X = np.float32([1, 2, 3])
AT = np.int32([0, 1, 2])


@sad.struct
class Row:
    values: sad.Pointer[float]


@sad.kernel
def doubled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i]


MAPPED: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda a: doubled(X * a, dim=3), "doubled", "make what a thread computes a `@sad.function`"),
    (lambda a: sad.scatter(X * a, AT, X), "scatter", "on whole arrays, outside the mapped"),
    (lambda a: sad.compact(X, X * a > 2.0)[1], "compact", "on whole arrays, outside"),
    (
        lambda a: sad.segment_reduce(sad.add, 0.0, 3, AT, X * a),
        "segment_reduce",
        "on whole arrays, outside",
    ),
]


@pytest.mark.parametrize(("body", "name", "instead"), MAPPED)
def test_what_needs_whole_arrays_is_refused_in_a_mapped_function(
    body: Callable[[Any], Any], name: str, instead: str, device: sad.Device
) -> None:
    by_x = sad.grad(lambda x: sad.sum(sad.map(body, x)))
    for call in (lambda: sad.map(body, X), lambda: by_x(X)):
        with pytest.raises(sad.LanguageError, match=f"`{name}` inside a function") as raised:
            call()
        assert raised.value.code == "SR0343"
        assert instead in str(raised.value)
