"""The interpreter's arithmetic, rounded otherwise than float64 rounds it.

A float32 device may find 1.5000005 where the exact result is 1.5; behind it may be a bound at 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from shaderad.interpret import expressions
from shaderad.ir import ops

_SPREAD = 2.0**20


@contextmanager
def rounded_otherwise(relative: float) -> Iterator[None]:
    """Moves every float result that float32 cannot hold by about `relative`.

    What float32 holds stays, so ties on coarse grids stay ties. Equal results are moved equally,
    and the opposite `relative` moves all of them the opposite way.
    """
    plain = expressions.apply_op

    def moved(op: ops.Op, args: Sequence[np.ndarray], dtype: np.dtype[Any]) -> np.ndarray:
        found = plain(op, args, dtype)
        if found.dtype.kind != "f":
            return found
        with np.errstate(all="ignore"):
            is_inexact = found.astype(np.float32) != found
            # As good as a random number in [-1, 1], but the same for the same result.
            direction = np.sin(_SPREAD * found)
            return np.where(is_inexact, found * (1.0 + relative * direction), found)

    with mock.patch.object(expressions, "apply_op", moved):
        yield
