"""Cotangents of expressions: split into parts, pulled back to names, and added up.

Primitives follow `rules/expressions.py`. The cotangent of a part of a name (``p.center.x``,
``a[k]``) is added to that part, so no value is built that is 0 everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.body import Body
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Step
from shaderad.ir.types import Scalar, Vector, is_differentiable, is_float
from shaderad.ir.walk import path_value
from shaderad.rules.expressions import active_parts, pull_through
from shaderad.rules.nodes import Cotangent
from shaderad.rules.pulling.names import VersionedNames


@dataclass(frozen=True)
class Target:
    """A part of a name, whose cotangent is added to."""

    name: str
    path: tuple[Step, ...]


Additions = list[tuple[Target, Expr]]
"""Targets, and the cotangent that is added to each."""


def additions(names: VersionedNames, e: Expr, bar: Expr) -> Additions:
    """The additions for the cotangent `bar` of `e`, which holds no active call or conditional."""
    order = in_order(e)
    unmerged: Additions = []

    def take(node: Expr, node_bar: Expr) -> bool:
        target = target_of(node)
        if target is not None:
            unmerged.append((target, node_bar))
        return target is not None

    pull_through(order, bar, active_parts(order, names.is_active, names.wanted), take)
    # One sum for each whole name, at the position of its first addition.
    sums: dict[object, tuple[Target, Expr]] = {}
    for target, part in unmerged:
        key = len(sums) if target.path else target.name
        sums[key] = (target, c.added(sums[key][1], part) if key in sums else part)
    return list(sums.values())


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


def parts_of(e: Cotangent) -> Expr:
    """`e`, split into scalars if its components are not adjacent, or may have different winners."""
    t, last = e.type, e.path[-1] if e.path else None
    if isinstance(last, nodes.SwizzleStep) and isinstance(t, Vector):
        steps = [nodes.SwizzleStep(components=letter) for letter in last.components]
        return c.construct(t, [
            parts_of(replace(e, path=(*e.path[:-1], step), type=t.element)) for step in steps
        ])  # fmt: skip
    if e.write_number is None or isinstance(t, Scalar):
        return e
    if not is_differentiable(t):
        return c.zero(t)
    parts = [parts_of(replace(e, path=(*e.path, step), type=part)) for step, part in c.steps(t)]
    return c.of_parts(t, parts)


def add_to(body: Body, bar: nodes.Var, path: tuple[Step, ...], value: Expr) -> None:
    """``bar<path> += value``; structs, tuples and local arrays part by part."""
    t = value.type
    if c.is_zero(value) or not is_differentiable(t):
        return
    if is_float(t):
        total = nodes.Apply(type=t, op=ops.ADD, args=(reached(bar, path), value))
        body.add(nodes.Assign(name=bar.name, path=path, value=total, span=body.span))
        return
    for step, part in c.parts(body.bound(value)):
        add_to(body, bar, (*path, step), part)


def add_to_gradient(body: Body, load: nodes.Load, path: tuple[Step, ...], value: Expr) -> None:
    """``gradient[i]<path> += value`` for the element ``i`` that `load` reads."""
    t = value.type
    if c.is_zero(value) or not is_differentiable(t):
        return
    if is_float(t):
        body.add(
            nodes.AccumulateGradient(
                buffer=load.buffer, indices=load.indices, path=path, value=value, span=load.span
            )
        )
        return
    for step, part in c.parts(body.bound(value)):
        add_to_gradient(body, load, (*path, step), part)


def reached(name: nodes.Var, path: tuple[Step, ...]) -> Expr:
    """``name<path>`` as a value."""
    value = path_value(name, path)
    assert value is not None
    return value
