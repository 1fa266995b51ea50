"""Whether evaluating an expression does anything besides giving its value.

Invariant: only calls have effects, and only through arrays they write, asserts they hold and lines
they print.
"""

from __future__ import annotations

from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Assert,
    Call,
    Expr,
    ForwardDiff,
    Function,
    Print,
    Store,
)
from shaderad.ir.walk import called, expressions, statements


def has_effect(value: Expr) -> bool:
    """Whether evaluating `value` twice, or not at all, could be told from evaluating it once."""
    return any(_does(e.function) for e in expressions(value) if isinstance(e, Call | ForwardDiff))


def _does(function: Function) -> bool:
    kinds = Store | Accumulate | AccumulateGradient | Assert | Print
    if any(isinstance(s, kinds) for s in statements(function.body)):
        return True
    return any(map(_does, called(function.body)))
