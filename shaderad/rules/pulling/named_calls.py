"""Names the results of costly calls in loops, so that `Replay` can save them.

``d = min(d, box(p))`` in a loop becomes ``value = box(p); d = min(d, value)``.
"""

from __future__ import annotations

from collections.abc import Iterable

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.costs import is_costly
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.walk import Block, blocks, children, map_blocks, map_children, writes_memory
from shaderad.rules.pulling.names import VersionedNames, is_active_expr


def with_named_calls(body: Block, names: VersionedNames) -> Block:
    """`body`, whose loops assign the results of costly active calls to new locals in `names`."""
    out: list[Stmt] = []
    for s in body:
        inside = map_blocks(s, lambda block: with_named_calls(block, names))
        if isinstance(inside, nodes.For | nodes.While):
            statements = (part for t in inside.body for part in _with_names(t, names))
            inside = map_blocks(inside, lambda _, new=tuple(statements): new)
        out.append(inside)
    return tuple(out)


def _with_names(s: Stmt, names: VersionedNames) -> Iterable[Stmt]:
    if blocks(s):
        return (s,)
    own = s.value if isinstance(s, nodes.Assign) and not s.path else None
    values = [e for child in children(s) for e in in_order(child)]
    tested = _tested(values)
    new: dict[int, Expr] = {}
    out: list[Stmt] = []
    for e in values:
        if id(e) in new:
            continue
        value = map_children(e, lambda child: new[id(child)])
        if e is not own and id(e) not in tested and _is_taken_out(e, names):
            result = names.local("value", e.type)
            out.append(nodes.Assign(name=result.name, value=value, span=s.span))
            value = result
        new[id(e)] = value
    return (*out, map_children(s, lambda child: new[id(child)]))


def _tested(values: Iterable[Expr]) -> set[int]:
    """Ids of the expressions that are evaluated under a condition."""
    sides = (
        side
        for e in values
        if isinstance(e, nodes.Conditional | nodes.Logical)
        for side in children(e)[1:]
    )
    return {id(part) for side in sides for part in in_order(side)}


def _is_taken_out(e: Expr, names: VersionedNames) -> bool:
    return (
        isinstance(e, nodes.Call)
        and not c.holds_array(e.type)
        and is_costly(e.function)
        and not writes_memory(e.function)
        and is_active_expr(e, names.active.__contains__, names.wanted)
    )
