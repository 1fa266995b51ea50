"""Where a local is declared: in the innermost block that holds all its uses."""

from __future__ import annotations

from shaderad.bodies.liveness import live_before
from shaderad.ir.nodes import Evaluate, For, If, Stmt, While
from shaderad.ir.walk import reads, statements, writes


def mentions(s: Stmt) -> set[str]:
    """The locals that a statement reads or writes."""
    found = (reads((s,)) | writes((s,))) - _loop_variables(s)
    if isinstance(s, For | While):
        found |= set(s.exits)
    return found


def _loop_variables(s: Stmt) -> set[str]:
    """Variables of loops that stay loops: their `for` declares them."""
    return {t.variable for t in statements((s,)) if isinstance(t, For)}


def is_inside_one_block(s: Stmt, name: str) -> bool:
    """Whether all uses of `name` in `s` are inside one of its blocks."""
    if isinstance(s, If):
        if name in reads((Evaluate(call=s.condition),)):
            return False
        inside = [any(name in mentions(t) for t in b) for b in (s.then, s.otherwise)]
        return sum(inside) == 1
    if isinstance(s, For):
        head = (Evaluate(call=e) for e in (s.start, s.stop, s.step))
        return name not in s.exits and name not in reads(head) and _starts_fresh(s.body, name)
    if isinstance(s, While):
        head = (Evaluate(call=s.condition),)
        return name not in s.exits and name not in reads(head) and _starts_fresh(s.body, name)
    return False


def _starts_fresh(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether an iteration assigns `name` before it reads it, so that none carries over."""
    return name not in live_before(body, frozenset())
