"""What the interpreter computes is what Python computes, over the whole language."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.batches import EXPECTED, kernel_over
from tests.frontend.test_semantics import (
    FLOAT_PAIRS,
    FLOATS,
    INT_PAIRS,
    INTEGERS,
    VALUES,
    wrapped,
)
from tests.oracle import oracle

# Numbers of the program are rounded to float32, as a device has them.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def run_all(functions: dict, kind: str, pairs: np.ndarray) -> dict[str, np.ndarray]:
    """What each function gives for each pair of arguments."""
    kernel = kernel_over(functions, kind)
    judge = oracle(kernel, *pairs.T.copy(), dim=(len(functions), len(pairs)))
    return dict(zip(functions, judge.out, strict=True))


@pytest.fixture(scope="module")
def integers() -> dict[str, np.ndarray]:
    return run_all(INTEGERS, "int", INT_PAIRS)


@pytest.fixture(scope="module")
def floats() -> dict[str, np.ndarray]:
    return run_all(FLOATS, "float", FLOAT_PAIRS)


@pytest.fixture(scope="module")
def values() -> dict[str, np.ndarray]:
    return run_all(VALUES, "float", FLOAT_PAIRS)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_functions_agree_with_python(name: str, integers: dict[str, np.ndarray]) -> None:
    wanted = [wrapped(INTEGERS[name].python(int(a), int(b))) for a, b in INT_PAIRS]
    assert integers[name].tolist() == wanted


@pytest.mark.parametrize("name", FLOATS)
def test_float_functions_agree_with_python(name: str, floats: dict[str, np.ndarray]) -> None:
    wanted = [FLOATS[name].python(float(x), float(y)) for x, y in FLOAT_PAIRS]
    np.testing.assert_allclose(floats[name], wanted, **CLOSE)


@pytest.mark.parametrize("name", VALUES)
def test_vectors_structs_and_arrays_give_what_stands_beside_them(
    name: str, values: dict[str, np.ndarray]
) -> None:
    wanted = [EXPECTED[name](float(x), float(y)) for x, y in FLOAT_PAIRS]
    np.testing.assert_allclose(values[name], wanted, rtol=1e-6)
