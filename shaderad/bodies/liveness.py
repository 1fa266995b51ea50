"""Which local names are read later: classic backward liveness over structured statements.

Bodies have no jumps left (``bodies/jumps.py``). A partial assignment counts as a read.
"""

from __future__ import annotations

from collections.abc import Iterable

from shaderad.ir.nodes import Assign, BackwardDiff, Expr, For, If, Return, Stmt, Var, While
from shaderad.ir.walk import expressions


def names_in(items: Iterable[Expr | Stmt]) -> set[str]:
    """Names read by the expressions directly in `items`."""
    return {e.name for item in items for e in expressions(item) if isinstance(e, Var)}


def live_before(body: tuple[Stmt, ...], live: frozenset[str]) -> frozenset[str]:
    """Names that must have a value before `body`, given those needed after it."""
    for statement in reversed(body):
        live = _before(statement, live)
    return live


def live_in_loop(loop: For | While, live: frozenset[str]) -> frozenset[str]:
    """Names that must have a value whenever the loop's condition is about to be asked."""
    asked = frozenset(loop.exits)
    if isinstance(loop, While):
        asked |= names_in([loop.condition])
    live |= asked
    while True:
        wider = live | live_before(loop.body, live)
        if isinstance(loop, For):
            wider -= {loop.variable}
        if wider == live:
            return live
        live = wider


def _before(s: Stmt, live: frozenset[str]) -> frozenset[str]:
    if isinstance(s, If):
        branches = live_before(s.then, live) | live_before(s.otherwise, live)
        return branches | names_in([s.condition])
    if isinstance(s, For):
        return live_in_loop(s, live) | names_in([s.start, s.stop, s.step])
    if isinstance(s, While):
        return live_in_loop(s, live)
    if isinstance(s, Return):
        return frozenset(names_in([s]))
    if isinstance(s, Assign):
        if s.path:
            return live | names_in([s]) | {s.name}
        return (live - {s.name}) | names_in([s])
    if isinstance(s, BackwardDiff):
        return live | names_in([s])
    return live | names_in([s])
