"""The place of a local's declaration: the innermost block that contains all its uses."""

from __future__ import annotations

from shaderad.bodies.liveness import live_before
from shaderad.ir.nodes import Evaluate, For, If, Stmt, While
from shaderad.ir.walk import blocks, children, reads, statements, writes


def mentions(s: Stmt) -> set[str]:
    """The locals that a statement reads or writes, without variables that a `for` declares."""
    variables = {t.variable for t in statements((s,)) if isinstance(t, For)}
    exits = s.exits if isinstance(s, For | While) else ()
    return ((reads((s,)) | writes((s,))) - variables).union(exits)


def is_inside_one_block(s: Stmt, name: str) -> bool:
    """True if all uses of `name` in `s` are inside one of its blocks."""
    if not isinstance(s, If | For | While):
        return False
    if name in reads(Evaluate(call=e) for e in children(s)):
        return False
    if isinstance(s, If):
        return sum(any(name in mentions(t) for t in b) for b in blocks(s)) == 1
    # An iteration that reads the name before it assigns it needs the value of an earlier one.
    return name not in s.exits and name not in live_before(s.body, frozenset())
