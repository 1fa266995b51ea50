"""Expressions -> what their cotangent adds to the cotangents of names and arrays.

Primitives follow `rules/expressions.py`. A part of a name (``p.center.x``, ``a[k]``) is a place of
its own: its cotangent is added there, and no value is made that is 0 everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Step
from shaderad.rules import composing as c
from shaderad.rules.expressions import in_order, operands, pull_node
from shaderad.rules.local_arrays import added
from shaderad.rules.pulling.activity import moving_parts


@dataclass(frozen=True)
class Target:
    """The place in a name whose cotangent is added to."""

    name: str
    path: tuple[Step, ...]


Additions = list[tuple[Target, Expr]]
"""What is added, and where."""


def additions(
    e: Expr, bar: Expr, varies: Callable[[str], bool], wanted: frozenset[str]
) -> Additions:
    """What the cotangent `bar` of `e` adds, and where; calls and conditionals are gone by now."""
    order = in_order(e)
    moves = moving_parts(order, varies, wanted)
    bars: dict[int, Expr] = {id(e): bar}
    found: Additions = []
    for node in reversed(order):
        node_bar = bars.pop(id(node), None)
        if node_bar is None or c.is_zero(node_bar) or id(node) not in moves:
            continue
        target = target_of(node)
        if target is not None:
            found.append((target, node_bar))
            continue
        args = operands(node)
        for position, part in pull_node(node, node_bar).items():
            arg = args[position]
            if id(arg) in moves:
                known = bars.get(id(arg))
                bars[id(arg)] = part if known is None else added(known, part)
    return _merged(found)


def target_of(e: Expr) -> Target | None:
    """The place that `e` reads; `None` where it computes."""
    path: list[Step] = []
    while True:
        if isinstance(e, nodes.Field):
            path.insert(0, nodes.FieldStep(name=e.name))
        elif isinstance(e, nodes.Swizzle) and len(set(e.components)) == len(e.components):
            path.insert(0, nodes.SwizzleStep(components=e.components))
        elif isinstance(e, nodes.Element):
            path.insert(0, nodes.ElementStep(index=e.index))
        elif isinstance(e, nodes.Var):
            return Target(e.name, tuple(path))
        else:
            return None
        e = e.value


def _merged(found: Iterable[tuple[Target, Expr]]) -> Additions:
    """One sum a whole name; the order is that in which `found` comes to each."""
    sums: dict[object, tuple[Target, Expr]] = {}
    for target, bar in found:
        key = len(sums) if target.path else target.name
        known = sums.get(key)
        sums[key] = (target, bar if known is None else added(known[1], bar))
    return list(sums.values())
