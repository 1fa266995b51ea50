"""Tables that lack a row."""

from __future__ import annotations

import pytest

from shaderad.ir import ops
from shaderad.ir.tables import check_rows


def test_a_table_without_a_row_is_refused_with_what_is_missing() -> None:
    check_rows({ops.SIN: 1, ops.COS: 2}, [ops.COS])
    with pytest.raises(LookupError, match=r"no row for ops\.cos, ops\.tan$"):
        check_rows({ops.SIN: 1}, [ops.SIN, ops.COS, ops.TAN, ops.ATAN], but=[ops.ATAN])
