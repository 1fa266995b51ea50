"""Effects of expressions.

Invariant: only calls have effects: writes to arrays, asserts and printed lines.
"""

from __future__ import annotations

from shaderad.ir.nodes import Assert, Call, Expr, ForwardDiff
from shaderad.ir.walk import expressions, reachable, statements, writes_memory


def has_effect(value: Expr) -> bool:
    """True if evaluating `value` twice, or not at all, differs from evaluating it once."""
    calls = [e.function for e in expressions(value) if isinstance(e, Call | ForwardDiff)]
    return any(
        writes_memory(f)
        or any(isinstance(s, Assert) for g in (f, *reachable(f.body)) for s in statements(g.body))
        for f in calls
    )
