"""Types and constants as Slang text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    UINT,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Tuple,
    Vector,
)  # fmt: skip
from shaderad.lower.write.names import module_names
from shaderad.lower.write.text import SlangTypes, is_plain_number, literal


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_literal_reads_back_as_itself(value: float) -> None:
    assert np.float32(literal(value, FLOAT)) == np.float32(value)


@pytest.mark.parametrize(
    ("value", "t", "text"),
    [
        (True, BOOL, "true"),
        (7, UINT, "7u"),
        (-3, INT, "-3"),
        (-(2**31), INT, "int(0x80000000u)"),
        (0.1, DOUBLE, "0.1lf"),
        (0.5, HALF, "half(0.5)"),
        (1.0, FLOAT, "1.0"),
    ],
)
def test_literals_carry_their_type(value: float, t: Scalar, text: str) -> None:
    assert literal(value, t) == text


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinity_and_nan_are_no_literals(value: float) -> None:
    assert not is_plain_number(value, FLOAT)


POINT = Struct("Point", (("p", Vector(FLOAT, 3)), ("n", INT)))


@pytest.mark.parametrize(
    ("t", "spelled", "zero"),
    [
        (Vector(HALF, 2), "half2", "half2(half(0.0))"),
        (Matrix(FLOAT, 2, 3), "float2x3", "float2x3(0.0)"),
        (LocalArray(INT, 4), "Array<int, 4>", "makeArrayFromElement<int, 4>(0)"),
        (
            LocalArray(LocalArray(FLOAT, 2), 3),
            "Array<Array<float, 2>, 3>",
            "makeArrayFromElement<Array<float, 2>, 3>(makeArrayFromElement<float, 2>(0.0))",
        ),
        (POINT, "Point", "Point(float3(0.0), 0)"),
        (Tuple((FLOAT, INT)), "Tuple_float_int", "Tuple_float_int(0.0, 0)"),
    ],
)
def test_types_and_their_zeros(t: object, spelled: str, zero: str) -> None:
    types = SlangTypes(module_names())
    assert types.spell(t) == spelled
    assert types.zero(t) == zero


def test_structs_of_one_name_and_other_fields_are_told_apart() -> None:
    types = SlangTypes(module_names())
    other = Struct("Point", (("q", FLOAT),))
    assert types.spell(POINT) == "Point"
    assert types.spell(other) == "Point_"
    assert types.spell(POINT) == "Point"


def test_a_struct_may_be_called_like_a_modifier() -> None:
    assert SlangTypes(module_names()).spell(Struct("vertices", POINT.fields)) == "vertices_"
    assert module_names().make("vertices") == "vertices"
