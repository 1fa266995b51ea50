"""`matmul`: of matrices as elements, or of arrays of numbers along their last axes; and with it
all of Python's operators of two operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.elements import as_element, binary, cast_to
from shaderad.functions.layout import moved_axis, with_axis
from shaderad.functions.reductions import sum_of
from shaderad.ir import ops
from shaderad.ir.types import FLOAT, HALF, Scalar
from shaderad.trace.primitives import as_number, known_shape
from shaderad.trace.traced import TracedArray, tracing


def matmul(left: Any, right: Any) -> TracedArray:
    """``left @ right``: for arrays of numbers as NumPy's, else by element.

    Products of halves are added in float, and rounded once.

    Raises:
        ShapeError: SR0344, where the inner sizes differ.
    """
    x, y = as_element(left), as_element(right)
    if not isinstance(x.element, Scalar) or not isinstance(y.element, Scalar):
        return binary(ops.MATMUL.name, x, y)
    if not x.extents or not y.extents:
        raise error("SR0344", user_span(), left=known_shape(x.extents),
                    right=known_shape(y.extents))  # fmt: skip
    inner = y.extents[0] if len(y.extents) == 1 else y.extents[-2]
    if not tracing().are_equal(x.extents[-1], inner):
        raise error("SR0344", user_span(), left=known_shape(x.extents),
                    right=known_shape(y.extents))  # fmt: skip
    if x.element == y.element == HALF:
        return cast_to(matmul(cast_to(x, FLOAT), cast_to(y, FLOAT)), HALF)
    # ..ik, ..kj -> ..ijk, summed over k
    columns = y if len(y.extents) == 1 else moved_axis(y, len(y.extents) - 2, len(y.extents) - 1)
    rows = x
    if len(y.extents) > 1:
        if len(x.extents) > 1:
            columns = with_axis(columns, len(columns.extents) - 2)
        rows = with_axis(x, len(x.extents) - 1)
    return sum_of(binary("mul", rows, columns), axis=-1)


def is_operand(x: Any) -> bool:
    """True if Python's operators on arrays take `x`; else Python asks the other side."""
    if isinstance(x, tuple | list):
        return trees.is_data(cast("Sequence[Any]", x))
    return isinstance(x, Array | np.ndarray | TracedSize) or as_number(x) is not None


def operated(name: str, left: Any, right: Any) -> TracedArray:
    """Python's operator of this name in ``ir/ops.py``."""
    function = matmul if name == ops.MATMUL.name else partial(binary, name)
    return function(_data(left), _data(right))


def _data(x: Any) -> Any:
    return [*cast("tuple[Any, ...]", x)] if isinstance(x, tuple) else x
