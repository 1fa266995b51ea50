"""Bodies without what nobody reads: no dead assignments, no empty ifs, loops and calls.

Bodies have no jumps left (``bodies/jumps.py``). What a dead value would have reported is not.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.bodies.liveness import live_before, names_in
from shaderad.ir import ops
from shaderad.ir.nodes import Apply, Assign, Call, Evaluate, For, If, Stmt, While
from shaderad.ir.types import BOOL


def without_dead(body: tuple[Stmt, ...], live: frozenset[str]) -> tuple[Stmt, ...]:
    """`body`, given the names needed after it."""
    out: list[Stmt] = []
    for s in reversed(body):
        kept = _kept(s, live)
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
        return _kept_branch(s, live)
    if isinstance(s, For | While):
        return _kept_loop(s, live)
    return s


def _kept_branch(s: If, live: frozenset[str]) -> If | None:
    then, otherwise = without_dead(s.then, live), without_dead(s.otherwise, live)
    if then or not otherwise:
        return replace(s, then=then, otherwise=otherwise) if then else None
    condition = Apply(type=BOOL, op=ops.NOT, args=(s.condition,), span=s.condition.span)
    return replace(s, condition=condition, then=otherwise, otherwise=())


def _kept_loop(s: For | While, live: frozenset[str]) -> For | While | None:
    """A loop keeps what its exits, its condition and later iterations need.

    One that does nothing that is read later is not there: that it ends is not asked.
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
