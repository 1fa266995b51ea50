"""Backward liveness of local names over structured statements, and dead code elimination.

Bodies have no jumps left (``bodies/structured.py``). A partial assignment counts as a read. Errors
that a dead value would report are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL
from shaderad.ir.walk import Block, expressions

Names = frozenset[str]


def live_before(body: Block, live: Names) -> Names:
    """The names live before `body`, given those live after it."""
    for statement in reversed(body):
        live = _before(statement, live)
    return live


def live_in_loop(
    loop: nodes.For | nodes.While,
    live: Names,
    change: Callable[[Block, Names], Block] | None = None,
) -> Names:
    """The names live where an iteration begins or the loop ends.

    Args:
        loop: The loop.
        live: The names live after it.
        change: Rewrites the body of the loop, given the names live after it.
    """
    live |= frozenset(loop.exits)
    if isinstance(loop, nodes.While):
        live |= _read([loop.condition])
    while True:
        body = loop.body if change is None else change(loop.body, live)
        wider = live | live_before(body, live)
        if isinstance(loop, nodes.For):
            wider -= {loop.variable}
        if wider == live:
            return live
        live = wider


def _before(s: Stmt, live: Names) -> Names:
    if isinstance(s, nodes.If):
        return live_before(s.then, live) | live_before(s.otherwise, live) | _read([s.condition])
    if isinstance(s, nodes.For):
        return live_in_loop(s, live) | _read(s.bounds)
    if isinstance(s, nodes.While):
        return live_in_loop(s, live)
    if isinstance(s, nodes.Return):
        return _read([s])
    if isinstance(s, nodes.Assign):
        return (live | {s.name} if s.path else live - {s.name}) | _read([s])
    return live | _read([s])


def _read(items: Iterable[Expr | Stmt]) -> Names:
    """Names read by the expressions directly in `items`."""
    return frozenset(
        e.name for item in items for e in expressions(item) if isinstance(e, nodes.Var)
    )


# -- dead code --------------------------------------------------------------------------------


def without_dead(body: Block, live: Names) -> Block:
    """`body` without dead assignments, ifs, loops and calls, given the names live after it."""
    return filtered(body, live, _kept)


def filtered(body: Block, live: Names, keep: Callable[[Stmt, Names], Stmt | None]) -> Block:
    """The results of ``keep(statement, names live after it)``, computed from last to first."""
    out: list[Stmt] = []
    for s in reversed(body):
        kept = keep(s, live)
        if kept is not None:
            out.append(kept)
            live = live_before((kept,), live)
    return tuple(reversed(out))


def _kept(s: Stmt, live: Names) -> Stmt | None:
    if isinstance(s, nodes.Assign):
        return s if s.name in live else None
    if isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
        return s if s.call.function.body else None
    if isinstance(s, nodes.If):
        then, otherwise = without_dead(s.then, live), without_dead(s.otherwise, live)
        return with_branches(s, then, otherwise) if then or otherwise else None
    if not isinstance(s, nodes.For | nodes.While):
        return s
    # A loop whose results nobody reads is dropped, even one that would never end.
    if not without_dead(s.body, live):
        return None
    body = without_dead(s.body, live_in_loop(s, live, without_dead))
    return replace(s, body=body) if body else None


def with_branches(s: nodes.If, then: Block, otherwise: Block) -> nodes.If:
    """`s` with other branches; the condition is negated where only `otherwise` has statements."""
    if then or not otherwise:
        return replace(s, then=then, otherwise=otherwise)
    condition = nodes.Apply(type=BOOL, op=ops.NOT, args=(s.condition,), span=s.condition.span)
    return replace(s, condition=condition, then=otherwise, otherwise=())
