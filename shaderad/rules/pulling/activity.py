"""Activity analysis: finds the names that depend on a wanted input and influence a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import is_differentiable
from shaderad.ir.walk import all_expressions, statements, writes_to
from shaderad.rules.expressions import in_order, operands


@dataclass(frozen=True)
class Activity:
    """The active names and buffers of one body."""

    names: frozenset[str]
    """Names with cotangents."""
    wanted: frozenset[str]
    """Buffers with gradients."""


def is_active_expr(e: Expr, varies: Callable[[str], bool], wanted: frozenset[str]) -> bool:
    """True if `e` depends differentiably on a name that `varies`, or on a buffer in `wanted`."""
    return id(e) in active_parts(in_order(e), varies, wanted)


def active_parts(
    order: Iterable[Expr], varies: Callable[[str], bool], wanted: frozenset[str]
) -> set[int]:
    """Ids of the active nodes of an expression; `order` holds its nodes, operands first."""
    active: set[int] = set()
    for e in order:
        if not is_differentiable(e.type) or isinstance(e, nodes.Detach | nodes.Bitcast):
            continue
        if isinstance(e, nodes.Var):
            is_part_active = varies(e.name)
        elif isinstance(e, nodes.Load):
            is_part_active = e.buffer in wanted
        else:
            is_part_active = any(id(part) in active for part in operands(e))
            is_part_active |= isinstance(e, nodes.Call) and reads_wanted(e.function, wanted)
        if is_part_active:
            active.add(id(e))
    return active


def reached_from(e: Expr, active: set[int]) -> set[int]:
    """Ids of the active nodes whose derivatives flow into `e` through active nodes."""
    reached: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in active and id(node) not in reached:
            reached.add(id(node))
            stack += operands(node)
    return reached


def reads_wanted(f: Function, wanted: frozenset[str]) -> bool:
    """True if a call of `f` accesses a buffer in `wanted`."""
    return not wanted.isdisjoint(f.buffers)


def activity(
    body: tuple[Stmt, ...],
    given: Iterable[str],
    results: Iterable[str],
    wanted: frozenset[str],
    seeds: frozenset[str],
) -> Activity:
    """The names that vary with an input and influence a result.

    Args:
        body: Statements without jumps.
        given: Parameters whose cotangents are wanted.
        results: Names whose cotangents are given.
        wanted: Arrays whose gradients are wanted.
        seeds: Written arrays that have cotangents.
    """
    assigned = [s for s in statements(body) if isinstance(s, nodes.Assign)]
    varied = _closed(
        given,
        lambda s, names: {s.name} if is_active_expr(s.value, names.__contains__, wanted) else set(),
        assigned,
    )
    useful = _closed(
        {*results, *_results(body, seeds)},
        lambda s, names: _floats_in(s.value) if s.name in names else set(),
        assigned,
    )
    return Activity(frozenset(varied & useful), wanted)


def _closed(
    start: Iterable[str],
    more: Callable[[nodes.Assign, set[str]], set[str]],
    assigned: list[nodes.Assign],
) -> set[str]:
    """The least fixed point of `more` over the assignments that contains `start`."""
    names = set(start)
    while True:
        count = len(names)
        for s in assigned:
            names |= more(s, names)
        if len(names) == count:
            return names


def _results(body: tuple[Stmt, ...], seeds: frozenset[str]) -> set[str]:
    """Names that influence the return value, or a value written to a buffer in `seeds`."""
    values: list[Expr] = []
    for s in statements(body):
        if isinstance(s, nodes.Store | nodes.Accumulate) and s.buffer in seeds:
            values.append(s.value)
        if isinstance(s, nodes.Accumulate) and s.buffer in seeds and s.tangent is not None:
            values.append(s.tangent)
        if isinstance(s, nodes.Return) and s.value is not None:
            values.append(s.value)
    calls = (e for e in all_expressions(body) if isinstance(e, nodes.Call))
    values += [e for e in calls if writes_to(e.function, seeds)]
    return {name for value in values for name in _floats_in(value)}


def _floats_in(e: Expr) -> set[str]:
    """Names through which a derivative may flow into `e`."""
    names: set[str] = set()
    seen: set[int] = set()
    stack = [e]
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, nodes.Detach | nodes.Bitcast):
            continue
        seen.add(id(part))
        if isinstance(part, nodes.Var) and is_differentiable(part.type):
            names.add(part.name)
        stack += operands(part)
    return names
