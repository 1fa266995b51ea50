"""Products in filters, whose derivatives are 0 for unused values.

A lookup at NaN or infinite coordinates has weights of NaN. If a mask discards it, its cotangent is
zero: the product of both is NaN by the operator ``*``, but 0 by `mad`, as docs/conventions.md says
of the library's own functions. The value stays NaN.
"""

from __future__ import annotations

from shaderad.decorators import function
from shaderad.names import INTRINSICS

mad = INTRINSICS["mad"]


@function
def product(a: float, b: float) -> float:
    return mad(a, b, 0.0)
