"""Dead code elimination: drops dead assignments, and ifs, loops and calls without effect.

Bodies have no jumps left (``bodies/jumps.py``). Errors that a dead value would report are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shaderad.bodies.liveness import live_before, names_in
from shaderad.ir import ops
from shaderad.ir.nodes import Apply, Assign, Call, Evaluate, For, If, Stmt, While
from shaderad.ir.types import BOOL


def without_dead(body: tuple[Stmt, ...], live: frozenset[str]) -> tuple[Stmt, ...]:
    """`body` without dead code, given the names that are live after it."""
    return filtered(body, live, _kept)


def filtered(
    body: tuple[Stmt, ...],
    live: frozenset[str],
    keep: Callable[[Stmt, frozenset[str]], Stmt | None],
) -> tuple[Stmt, ...]:
    """The statements that ``keep(statement, names live after it)`` gives, from the last one on."""
    out: list[Stmt] = []
    for s in reversed(body):
        kept = keep(s, live)
        if kept is not None:
            out.append(kept)
            live = live_before((kept,), live)
    return tuple(reversed(out))


def _kept(s: Stmt, live: frozenset[str]) -> Stmt | None:
    if isinstance(s, Assign):
        return s if s.name in live else None
    if isinstance(s, Evaluate) and isinstance(s.call, Call):
        return s if s.call.function.body else None
    if isinstance(s, If):
        then, otherwise = without_dead(s.then, live), without_dead(s.otherwise, live)
        return with_branches(s, then, otherwise) if then or otherwise else None
    if isinstance(s, For | While):
        return _kept_loop(s, live)
    return s


def with_branches(s: If, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> If:
    """`s` with other branches; the condition is negated where only `otherwise` has statements."""
    if then or not otherwise:
        return replace(s, then=then, otherwise=otherwise)
    condition = Apply(type=BOOL, op=ops.NOT, args=(s.condition,), span=s.condition.span)
    return replace(s, condition=condition, then=otherwise, otherwise=())


def _kept_loop(s: For | While, live: frozenset[str]) -> For | While | None:
    """A loop with the statements that its exits, its condition and later iterations need.

    A loop whose results nobody reads is dropped, even one that would never end.
    """
    if not without_dead(s.body, live):
        return None
    live |= frozenset(s.exits)
    if isinstance(s, While):
        live |= names_in([s.condition])
    while True:
        body = without_dead(s.body, live)
        wider = live | live_before(body, live)
        if isinstance(s, For):
            wider -= {s.variable}
        if wider == live:
            return replace(s, body=body) if body else None
        live = wider
