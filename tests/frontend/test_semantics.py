"""What kernels compute is what Python computes, on every runtime."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from tests.frontend import float_cases, integer_cases, struct_cases, vector_cases
from tests.frontend.batches import EXPECTED, functions_of, run_all

INTEGERS = functions_of(integer_cases, ["a", "b"])
FLOATS = functions_of(float_cases, ["x", "y"])
VALUES = functions_of(vector_cases, ["x", "y"]) | functions_of(struct_cases, ["x", "y"])
INT_PAIRS = np.array([(7, 2), (-7, 2), (7, -2), (-7, -3), (1, 4), (2, 2), (9, 5), (3, 1)], np.int32)
FLOAT_PAIRS = np.array([(1.5, 2.0), (-1.25, 0.5), (0.3, 1.7), (-2.7, 1.3), (2.0, 2.5)], np.float32)
# float32, a few dozen operations, exponentials of up to 3.
RTOL, ATOL = 2e-5, 2e-5


@pytest.fixture(scope="module")
def integer_results(device: sad.Device) -> dict[str, np.ndarray]:
    return run_all(INTEGERS, "int", *INT_PAIRS.T.copy())


@pytest.fixture(scope="module")
def float_results(device: sad.Device) -> dict[str, np.ndarray]:
    return run_all(FLOATS, "float", *FLOAT_PAIRS.T.copy())


@pytest.fixture(scope="module")
def value_results(device: sad.Device) -> dict[str, np.ndarray]:
    return run_all(VALUES, "float", *FLOAT_PAIRS.T.copy())


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_functions_agree_with_python(
    name: str, integer_results: dict[str, np.ndarray]
) -> None:
    wanted = [wrapped(INTEGERS[name].python(int(a), int(b))) for a, b in INT_PAIRS]
    assert integer_results[name].tolist() == wanted


@pytest.mark.parametrize("name", FLOATS)
def test_float_functions_agree_with_python(name: str, float_results: dict[str, np.ndarray]) -> None:
    wanted = [FLOATS[name].python(float(x), float(y)) for x, y in FLOAT_PAIRS]
    np.testing.assert_allclose(float_results[name], wanted, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("name", VALUES)
def test_vectors_structs_and_arrays_give_what_stands_beside_them(
    name: str, value_results: dict[str, np.ndarray]
) -> None:
    wanted = [EXPECTED[name](float(x), float(y)) for x, y in FLOAT_PAIRS]
    np.testing.assert_allclose(value_results[name], wanted, rtol=RTOL, atol=ATOL)


def wrapped(value: object) -> int:
    assert type(value) is int
    return (value + 2**31) % 2**32 - 2**31
