"""Products in filters, whose derivatives are 0 where nobody uses a value.

A lookup at NaN or infinite coordinates has weights of NaN. Where a mask discards it, a zero
cotangent meets them: by the operator ``*`` the product is NaN, and by `mad` 0, as
docs/conventions.md says of the library's own functions. The value stays NaN.
"""

from __future__ import annotations

from shaderad.decorators import function
from shaderad.names import INTRINSICS

mad = INTRINSICS["mad"]


@function
def product(a: float, b: float) -> float:
    return mad(a, b, 0.0)
