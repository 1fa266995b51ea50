"""Sizes of traced arrays in arithmetic with numbers: what Python gives for the number itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.tracing import run, trace

X = np.array([1.0, 2.0, 3.0])

SIZES: dict[str, Callable[[Any], Any]] = {
    "n + 1.0": lambda n: n + 1.0,
    "1.5 - n": lambda n: 1.5 - n,
    "n * 0.5": lambda n: n * 0.5,
    "n / 2": lambda n: n / 2,
    "1 / n": lambda n: 1 / n,
    "n / n": lambda n: (n + 1) / n,
    "n ** 2": lambda n: n**2,
    "n ** 0": lambda n: n**0,
    "n ** 0.5": lambda n: n**0.5,
    "n ** -1": lambda n: n**-1,
    "2.0 ** n": lambda n: 2.0**n,
    "n // 2.0": lambda n: n // 2.0,
    "n % 2": lambda n: n % 2,
    "5 % n": lambda n: 5 % n,
    "5.5 % n": lambda n: 5.5 % n,
    "-n * 1.0": lambda n: -n * 1.0,
    "NumPy's float": lambda n: np.float64(2.0) * n,
    "NumPy's int": lambda n: np.int64(2) * n,
}


def test_sizes_compute_with_floats() -> None:
    for name, function in SIZES.items():
        found = run(lambda x, f=function: f(x.shape[0]) + 0.0 * sad.sum(x), X)
        np.testing.assert_allclose(found, function(3), rtol=1e-15, err_msg=name)
    vector = run(lambda x: sad.float3(x.shape[0], 1.0, 2.0) * x[0], X)
    np.testing.assert_array_equal(vector, [3.0, 1.0, 2.0])
    assert run(lambda x: sad.sqrt(x.shape[0]) * x[0], X) == np.sqrt(3.0)
    assert trace(lambda x: sad.zeros(x.shape[0] ** 2), X)[0].graph.outputs[0].shape[0] != 9


def test_sizes_compare_with_floats_where_every_call_agrees() -> None:
    held = run(
        lambda x: [
            x.shape[0] == 2.5,
            x.shape[0] != 2.5,
            x.shape[0] < float("inf"),
            x.shape[0] > float("nan"),
            x.shape[0] - x.shape[0] < 0.5,
            x.shape[0] - x.shape[0] >= 0.5,
            x.shape[0] - x.shape[0] == 0.0,
        ],
        X,
    )
    assert held == [False, True, True, False, True, False, True]
    for compare in (lambda n: n < 2.5, lambda n: n == 3.0, lambda n: n >= 0.5):
        with pytest.raises(sad.LanguageError) as caught:
            trace(lambda x, f=compare: f(x.shape[0]), X)
        assert caught.value.code == "SR0320"
