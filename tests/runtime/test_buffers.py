"""NumPy <-> storage: layouts, conversions, refusals. No device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaderad.diagnostics import ShapeError
from shaderad.ir import types
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    UINT,
    LocalArray,
    Matrix,
    Struct,
    Vector,
)
from shaderad.runtime import buffers

FLOAT3 = Vector(FLOAT, 3)
MIXED = Struct(
    "Mixed",
    (
        ("position", FLOAT3),
        ("is_solid", BOOL),
        ("glow", Vector(HALF, 3)),
        ("weights", LocalArray(FLOAT, 2)),
        ("id", INT),
    ),
)


def round_trip(data: object, t: types.Type) -> np.ndarray:
    storage, shape = buffers.to_storage(data, t, "x")
    raw = np.ascontiguousarray(storage).tobytes()
    return buffers.from_storage(raw, t, shape)


@pytest.mark.parametrize(
    ("t", "data"),
    [
        (FLOAT, np.float32([1.5, -2.0])),
        (HALF, np.float16([1.5, -2.0, 3.0])),
        (DOUBLE, np.float64([1e300, -2.0])),
        (INT, np.int32([-(2**31), 2**31 - 1])),
        (UINT, np.uint32([0, 2**32 - 1])),
        (BOOL, np.array([True, False])),
        (FLOAT3, np.arange(6, dtype=np.float32).reshape(2, 3)),
        (Matrix(FLOAT, 2, 3), np.arange(12, dtype=np.float32).reshape(2, 2, 3)),
        (LocalArray(FLOAT3, 2), np.arange(12, dtype=np.float32).reshape(2, 2, 3)),
        (FLOAT3, np.zeros((0, 3), np.float32)),
        (FLOAT, np.float32(2.0)),
    ],
    ids=str,
)
def test_what_goes_in_comes_out(t: types.Type, data: np.ndarray) -> None:
    found = round_trip(data, t)
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data)


def mixed(count: int) -> np.ndarray:
    data = np.zeros(count, buffers.host_dtype(MIXED))
    data["position"] = np.arange(3 * count).reshape(count, 3)
    data["is_solid"] = np.arange(count) % 2 == 0
    data["glow"] = 0.5
    data["weights"] = 7.0
    data["id"] = np.arange(count)
    return data


def test_structs_take_structured_arrays_dicts_and_lists() -> None:
    data = mixed(3)
    names = data.dtype.names or ()
    by_field = {name: data[name] for name in names}
    rows = [{name: row[name] for name in names} for row in data]
    for given_data in (data, by_field, rows):
        found = round_trip(given_data, MIXED)
        for name in names:
            np.testing.assert_array_equal(found[name], data[name])


def test_struct_storage_follows_the_leaves_of_the_type() -> None:
    dtype = buffers.storage_dtype(MIXED)
    assert dtype.itemsize == types.byte_count(MIXED)
    assert dtype.fields is not None
    for leaf in types.leaves(MIXED):
        name = str(leaf.path[0])
        inner = (leaf.path[1] if len(leaf.path) > 1 else 0) * types.byte_count(leaf.scalar)
        assert dtype.fields[name][1] + inner == leaf.offset


def test_bits_of_nans_survive() -> None:
    bits = np.uint32([0x7FC00001, 0xFFFFFFFF, 0x7F800001, 0x80000000])
    found = round_trip(bits.view(np.float32), FLOAT)
    np.testing.assert_array_equal(found.view(np.uint32), bits)


@given(st.integers(-(2**63), 2**63 - 1))
def test_wide_ints_convert_exactly_where_they_fit(value: int) -> None:
    data = np.array([value], np.int64)
    if -(2**31) <= value < 2**31:
        assert round_trip(data, INT)[0] == value
    else:
        with pytest.raises(ShapeError, match=str(value)):
            round_trip(data, INT)


@given(st.floats(allow_nan=False))
def test_wide_floats_convert_where_they_fit(value: float) -> None:
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if np.isinf(narrow) and not np.isinf(value):
        with pytest.raises(ShapeError) as raised:
            round_trip(np.array([value]), FLOAT)
        assert raised.value.code == "SR0354"
    else:
        assert round_trip(np.array([value]), FLOAT)[0] == narrow


@pytest.mark.parametrize(
    ("data", "t", "code"),
    [
        ([1.5], INT, "SR0353"),
        ([True], FLOAT, "SR0353"),
        ([1], BOOL, "SR0353"),
        ([-1], UINT, "SR0354"),
        ([70000.0], HALF, "SR0354"),
        (np.zeros((4, 2)), FLOAT3, "SR0352"),
        (3.0, FLOAT3, "SR0352"),
        (["a"], FLOAT, "SR0351"),
        ([1, [2]], FLOAT, "SR0351"),
        (np.zeros(2, complex), FLOAT, "SR0351"),
        ({"position": np.zeros((2, 3))}, MIXED, "SR0355"),
        (np.zeros(2), MIXED, "SR0355"),
    ],
)
def test_what_does_not_fit_is_refused(data: object, t: types.Type, code: str) -> None:
    with pytest.raises(ShapeError) as raised:
        round_trip(data, t)
    assert raised.value.code == code


def test_struct_fields_must_agree_on_their_length() -> None:
    pair = Struct("Pair", (("a", FLOAT), ("b", FLOAT)))
    with pytest.raises(ShapeError) as raised:
        round_trip({"a": np.zeros(2), "b": np.zeros(3)}, pair)
    assert raised.value.code == "SR0356"


def test_empty_lists_are_empty_arrays_of_any_type() -> None:
    for t in (FLOAT, FLOAT3, INT, BOOL, Matrix(FLOAT, 2, 2)):
        assert round_trip([], t).shape == (0, *buffers.element_axes(t))
    assert round_trip([], MIXED).shape == (0,)


def test_allocations_are_whole_words() -> None:
    assert buffers.byte_count(HALF, 3) == 8
    assert buffers.byte_count(FLOAT3, 2) == 24
    assert buffers.byte_count(FLOAT, 0) == 0
