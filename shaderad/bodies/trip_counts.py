"""Trip counts of loops with constant bounds."""

from __future__ import annotations

from shaderad.ir.nodes import Const, For


def trip_count(loop: For) -> int | None:
    """The number of iterations; `None` where a bound is no constant."""
    bounds = (loop.start, loop.stop, loop.step)
    if not all(isinstance(b, Const) for b in bounds):
        return None
    start, stop, step = (int(b.value) for b in bounds if isinstance(b, Const))
    return len(range(start, stop, step)) if step else 0
