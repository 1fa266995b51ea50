"""Expressions that rules are composed of."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.types import BOOL, FLOAT, INT, UINT, Scalar

_VALUES = {
    FLOAT: np.float32([-np.inf, -1.5, 0, np.inf]),
    INT: np.int32([-(2**31), -6, 0, 2**31 - 1]),
    UINT: np.uint32([0, 6, 2**32 - 1]),
    BOOL: np.bool_([False, True]),
}
_NUMBERS = (ops.ADD, ops.MUL, ops.MIN, ops.MAX)
_CASES = [(op, t) for t in (FLOAT, INT, UINT) for op in _NUMBERS]
_CASES += [(op, t) for t in (INT, UINT, BOOL) for op in (ops.BIT_AND, ops.BIT_OR)]


@pytest.mark.parametrize(("op", "t"), _CASES, ids=lambda case: str(getattr(case, "name", case)))
def test_a_neutral_element_leaves_every_value_as_it_is(op: ops.Op, t: Scalar) -> None:
    x = _VALUES[t]
    element = c.neutral(op, t)
    number = np.asarray(0 if c.is_zero(element) else c.number_of(element)).astype(x.dtype)
    np.testing.assert_array_equal(op.numpy(number, x), x)
