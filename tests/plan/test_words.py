"""`explain` states the words that nests move for each element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered
from tests.plan.test_row_chains import softmax


@pytest.fixture(scope="module")
def parallel() -> Iterator[sad.Device]:
    with entered("wgpu", {"kind": "discrete"}) as opened:
        yield opened


def moved(x: Any) -> Any:
    return sad.sin(x) * 2.0


def turned(x: Any) -> Any:
    return x.T + 1.0


def row_sums(x: Any) -> Any:
    return sad.sum(x, axis=1)


def column_sums(x: Any) -> Any:
    return sad.sum(x, axis=0)


def scanned(x: Any) -> Any:
    return sad.cumsum(x, axis=1)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "shape", "words"),
    [
        (moved, (64, 96), "2 words"),
        (turned, (64, 96), "2 words"),
        (row_sums, (1000, 256), "1 word"),
        (row_sums, (1, 2**20), "1 word"),
        (column_sums, (4096, 256), "1.03 words"),
        (softmax, (64, 256), "2 words"),
        (scanned, (5, 1000), "2 words"),
        (scanned, (1, 2**20), "3 words"),
    ],
)
def test_explain_states_them(
    function: Callable[[Any], Any], shape: tuple[int, int], words: str, parallel: sad.Device
) -> None:
    text = sad.graph(function).explain(np.ones(shape, np.float32))
    assert f", {words} per element: in0 -> " in text


@pytest.mark.gpu
def test_a_table_counts_as_far_as_it_is_read(parallel: sad.Device) -> None:
    def looked_up(table: Any, index: Any) -> Any:
        return table[index]

    text = sad.graph(looked_up).explain(np.ones(1000, np.float32), np.arange(4))
    assert "3 words per element" in text
