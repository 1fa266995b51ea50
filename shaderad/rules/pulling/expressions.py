"""Pulls the cotangent of an expression back to the names and arrays that it reads.

Primitives follow `rules/expressions.py`. The cotangent of a part of a name (``p.center.x``,
``a[k]``) is added to that part, without a value that is 0 everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Step
from shaderad.rules import composing as c
from shaderad.rules.expressions import in_order, operands, pull_node
from shaderad.rules.local_arrays import added
from shaderad.rules.pulling.activity import active_parts


@dataclass(frozen=True)
class Target:
    """A part of a name, whose cotangent is added to."""

    name: str
    path: tuple[Step, ...]


Additions = list[tuple[Target, Expr]]
"""Targets, and the cotangent that is added to each."""


def additions(
    e: Expr, bar: Expr, varies: Callable[[str], bool], wanted: frozenset[str]
) -> Additions:
    """The additions for the cotangent `bar` of `e`, which holds no active call or conditional."""
    order = in_order(e)
    active = active_parts(order, varies, wanted)
    bars: dict[int, Expr] = {id(e): bar}
    unmerged: Additions = []
    for node in reversed(order):
        node_bar = bars.pop(id(node), None)
        if node_bar is None or c.is_zero(node_bar) or id(node) not in active:
            continue
        target = target_of(node)
        if target is not None:
            unmerged.append((target, node_bar))
            continue
        args = operands(node)
        for position, part in pull_node(node, node_bar).items():
            key = id(args[position])
            if key in active:
                bars[key] = added(bars[key], part) if key in bars else part
    return _merged(unmerged)


def target_of(e: Expr) -> Target | None:
    """The part of a name that `e` reads; `None` for any other expression."""
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


def _merged(unmerged: Iterable[tuple[Target, Expr]]) -> Additions:
    """One sum for each whole name, at the position of its first addition."""
    sums: dict[object, tuple[Target, Expr]] = {}
    for target, bar in unmerged:
        key = len(sums) if target.path else target.name
        sums[key] = (target, added(sums[key][1], bar) if key in sums else bar)
    return list(sums.values())
