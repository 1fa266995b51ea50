"""No op on floats is without a derivative, and no row is without an op."""

from __future__ import annotations

from shaderad.ir import ops
from shaderad.rules import PARTIALS, carries_derivative


def test_every_op_from_floats_to_floats_has_a_row() -> None:
    missing = [
        op.name for op in ops.TABLE.values() if carries_derivative(op) and op not in PARTIALS
    ]
    assert missing == []


def test_every_row_belongs_to_an_op_that_carries_a_derivative() -> None:
    idle = [op.name for op in PARTIALS if not carries_derivative(op)]
    assert idle == []
