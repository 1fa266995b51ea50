"""`argmin` and `argmax` on devices: long rows, ties, NaN."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import shaderad as sad
from shaderad.execute.runner import evaluate
from shaderad.ir.arrays import ArgExtreme, ArrayType, Graph, Value
from shaderad.ir.types import FLOAT

pytestmark = pytest.mark.gpu

SHAPES = ((3, 1), (2, 300), (1, 100_003))


def found(x: np.ndarray[Any, Any], kind: Literal["min", "max"], device: sad.Device) -> Any:
    keys = Value(ArrayType(FLOAT, x.shape))
    graph = Graph((keys,), ArgExtreme(operands=(keys,), kind=kind).results)
    (positions,) = evaluate(graph, [sad.array(x, device=device)], {}, device)
    return positions.numpy()


@pytest.mark.parametrize("kind", ["min", "max"])
def test_the_first_extreme_number_of_each_row_is_found(
    device: sad.Device, kind: Literal["min", "max"]
) -> None:
    for shape in SHAPES:
        # Whole numbers below 50: most are there several times.
        x = np.random.default_rng(1).integers(0, 50, shape).astype(np.float32)
        if shape[1] > 1:
            x[:, :3] = np.nan
        wanted = (np.nanargmin if kind == "min" else np.nanargmax)(x, axis=-1)
        np.testing.assert_array_equal(found(x, kind, device), wanted, err_msg=str(shape))


def test_rows_without_a_number_give_their_first_position(device: sad.Device) -> None:
    x = np.full((2, 7), np.nan, np.float32)
    np.testing.assert_array_equal(found(x, "min", device), [0, 0])
    np.testing.assert_array_equal(found(x[:, :0], "max", device), [0, 0])


def test_infinity_is_a_number(device: sad.Device) -> None:
    x = np.array([[np.nan, np.inf, np.inf]], np.float32)
    np.testing.assert_array_equal(found(x, "min", device), [1])
    np.testing.assert_array_equal(found(-x, "max", device), [1])
