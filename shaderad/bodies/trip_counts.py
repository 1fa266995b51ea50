"""How often loops run, where their bounds say so."""

from __future__ import annotations

from shaderad.ir.nodes import Const, For


def trip_count(loop: For) -> int | None:
    """How often a loop with constant bounds runs."""
    bounds = (loop.start, loop.stop, loop.step)
    if not all(isinstance(b, Const) for b in bounds):
        return None
    start, stop, step = (int(b.value) for b in bounds if isinstance(b, Const))
    return len(range(start, stop, step)) if step else 0
