"""Decorated functions as Python objects: they are copied and pickled like plain functions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import shaderad as sad


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 2.0 * x[i]


@sad.function
def half_of(x: float) -> float:
    return 0.5 * x


@sad.graph
def total(x: Any) -> Any:
    return sad.sum(x)


@sad.custom_vjp
def same(x: Any) -> Any:
    return x


@pytest.mark.parametrize("decorated", [scaled, half_of, total, same])
def test_decorated_functions_are_copied_and_pickled_like_functions(decorated: Any) -> None:
    assert copy.deepcopy({"f": decorated})["f"] is decorated
    assert copy.copy(decorated) is decorated
    assert pickle.loads(pickle.dumps(decorated)) is decorated
