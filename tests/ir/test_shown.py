"""Values as `print` shows them, whatever they came from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shaderad.ir.shown import PrintForm, is_printable, shown, why_no_format
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LocalArray,
    Matrix,
    Pointer,
    Struct,
    Tuple,
    Type,
    Vector,
)

SAMPLE = Struct("Sample", (("x", FLOAT), ("at", Vector(INT, 2))))


@pytest.mark.parametrize(
    ("value", "t", "spec", "text"),
    [
        (np.float32(0.1), FLOAT, "", "0.1"),
        (np.float32(0.1), FLOAT, ">6", "   0.1"),
        (np.float32(0.1), FLOAT, ".10f", "0.1000000015"),
        (np.float16(0.1), HALF, "", "0.1"),
        (np.float64(0.1), DOUBLE, "", "0.1"),
        (np.float32(np.inf), FLOAT, ".2f", "inf"),
        (np.int32(-255), INT, "x", "-ff"),
        (np.bool_(True), BOOL, "", "True"),
        (np.bool_(True), BOOL, "d", "1"),
        (np.float32([0.1, 2]), Vector(FLOAT, 2), "", "float2(0.1, 2.0)"),
        (np.float32([0.1, 2]), Vector(FLOAT, 2), ".2f", "float2(0.10, 2.00)"),
        (np.eye(2), Matrix(FLOAT, 2, 2), "", "float2x2([1.0, 0.0], [0.0, 1.0])"),
        ([1.5, 2.5], LocalArray(FLOAT, 2), "", "[1.5, 2.5]"),
        ({"x": 1.0, "at": [2, 3]}, SAMPLE, "", "Sample(x=1.0, at=int2(2, 3))"),
        (SimpleNamespace(x=1.0, at=[2, 3]), SAMPLE, "", "Sample(x=1.0, at=int2(2, 3))"),
    ],
)
def test_a_value_has_one_text(value: Any, t: Type, spec: str, text: str) -> None:
    assert shown(value, t, spec) == text


def test_a_local_array_of_structs_may_be_a_struct_of_arrays() -> None:
    columns = {"x": np.float32([0.5, 1.5]), "at": np.int32([[1, 2], [3, 4]])}
    text = "[Sample(x=0.5, at=int2(1, 2)), Sample(x=1.5, at=int2(3, 4))]"
    assert shown(columns, LocalArray(SAMPLE, 2)) == text


def test_a_form_puts_values_between_its_texts() -> None:
    form = PrintForm(("x = ", " of ", "\n"), (FLOAT, DOUBLE), (".1f", ""))
    assert form.text([0.25, 2.0]) == "x = 0.2 of 2.0\n"
    assert form.word_count == 3


@pytest.mark.parametrize("t", [Pointer(FLOAT), Tuple((FLOAT,)), LocalArray(Pointer(INT), 2)])
def test_what_is_no_number_has_no_text(t: Type) -> None:
    assert not is_printable(t)


def test_a_format_is_refused_with_what_python_says_of_it() -> None:
    assert why_no_format(".3f", Vector(FLOAT, 3)) == ""
    assert "Unknown format code 'd'" in why_no_format("d", FLOAT)
    assert "numbers, vectors and matrices" in why_no_format(".3f", SAMPLE)
