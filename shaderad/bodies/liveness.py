"""Backward liveness of local names over structured statements.

Bodies have no jumps left (``bodies/jumps.py``). A partial assignment counts as a read.
"""

from __future__ import annotations

from collections.abc import Iterable

from shaderad.ir.nodes import Assign, Expr, For, If, Return, Stmt, Var, While
from shaderad.ir.walk import expressions


def names_in(items: Iterable[Expr | Stmt]) -> set[str]:
    """Names read by the expressions directly in `items`."""
    return {e.name for item in items for e in expressions(item) if isinstance(e, Var)}


def live_before(body: tuple[Stmt, ...], live: frozenset[str]) -> frozenset[str]:
    """The names live before `body`, given those live after it."""
    for statement in reversed(body):
        live = _before(statement, live)
    return live


def live_in_loop(loop: For | While, live: frozenset[str]) -> frozenset[str]:
    """The names live where an iteration begins or the loop ends."""
    live |= frozenset(loop.exits)
    if isinstance(loop, While):
        live |= names_in([loop.condition])
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
        return (live | {s.name} if s.path else live - {s.name}) | names_in([s])
    return live | names_in([s])
