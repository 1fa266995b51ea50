"""Which names carry derivatives: those that a wanted input changes and that a result depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import is_differentiable
from shaderad.ir.walk import all_expressions, reachable, statements
from shaderad.rules.expressions import in_order, operands


@dataclass(frozen=True)
class Activity:
    """Of one body."""

    names: frozenset[str]
    """The names whose cotangents are kept."""
    wanted: frozenset[str]
    """The buffers whose gradients are."""

    def of(self, e: Expr) -> bool:
        """Whether a derivative flows through `e`."""
        return flows(e, lambda name: name in self.names, self.wanted)


def flows(e: Expr, varies: Callable[[str], bool], wanted: frozenset[str]) -> bool:
    """Whether `e` moves with one of the names that vary, or with an array of `wanted`."""
    return id(e) in moving_parts(in_order(e), varies, wanted)


def moving_parts(
    order: Iterable[Expr], varies: Callable[[str], bool], wanted: frozenset[str]
) -> set[int]:
    """The ids of the parts, in order, that move with the names that vary and with `wanted`."""
    found: set[int] = set()
    for e in order:
        if not is_differentiable(e.type) or isinstance(e, nodes.Detach | nodes.Bitcast):
            continue
        if isinstance(e, nodes.Var):
            moves = varies(e.name)
        elif isinstance(e, nodes.Load):
            moves = e.buffer in wanted
        else:
            moves = any(id(part) in found for part in operands(e))
            moves |= isinstance(e, nodes.Call) and reads_wanted(e.function, wanted)
        if moves:
            found.add(id(e))
    return found


def reached_from(e: Expr, moves: set[int]) -> set[int]:
    """The ids of the parts whose derivatives flow into that of `e`: conditions are none."""
    found: set[int] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if id(node) in moves and id(node) not in found:
            found.add(id(node))
            stack += operands(node)
    return found


def reads_wanted(f: Function, wanted: frozenset[str]) -> bool:
    """Whether a call of `f` reads an array whose gradient is wanted."""
    return not wanted.isdisjoint(f.buffers)


def writes_cotangents(f: Function, seeds: frozenset[str]) -> bool:
    """Whether a call of `f` writes floats to arrays that have cotangents."""
    return any(
        isinstance(s, nodes.Store | nodes.Accumulate) and s.buffer in seeds
        for g in (f, *reachable(f.body))
        for s in statements(g.body)
    )


def activity(
    body: tuple[Stmt, ...],
    given: Iterable[str],
    results: Iterable[str],
    wanted: frozenset[str],
    seeds: frozenset[str],
) -> Activity:
    """What carries derivatives in `body`.

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
        lambda s, known: {s.name} if flows(s.value, known.__contains__, wanted) else set(),
        assigned,
    )
    useful = _closed(
        {*results, *_results(body, seeds)},
        lambda s, known: _floats_in(s.value) if s.name in known else set(),
        assigned,
    )
    return Activity(frozenset(varied & useful), wanted)


def _closed(
    start: Iterable[str],
    more: Callable[[nodes.Assign, set[str]], set[str]],
    assigned: list[nodes.Assign],
) -> set[str]:
    """`start`, with what the assignments add to it until none adds any more."""
    found = set(start)
    while True:
        count = len(found)
        for s in assigned:
            found |= more(s, found)
        if len(found) == count:
            return found


def _results(body: tuple[Stmt, ...], seeds: frozenset[str]) -> set[str]:
    """The names that flow into what the body returns, or writes where there are cotangents."""
    values: list[Expr] = []
    for s in statements(body):
        if isinstance(s, nodes.Store | nodes.Accumulate) and s.buffer in seeds:
            values.append(s.value)
        if isinstance(s, nodes.Accumulate) and s.buffer in seeds and s.tangent is not None:
            values.append(s.tangent)
        if isinstance(s, nodes.Return) and s.value is not None:
            values.append(s.value)
    calls = (e for e in all_expressions(body) if isinstance(e, nodes.Call))
    values += [e for e in calls if writes_cotangents(e.function, seeds)]
    return {name for value in values for name in _floats_in(value)}


def _floats_in(e: Expr) -> set[str]:
    """Names through which a derivative may flow into `e`."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [e]
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, nodes.Detach | nodes.Bitcast):
            continue
        seen.add(id(part))
        if isinstance(part, nodes.Var) and is_differentiable(part.type):
            found.add(part.name)
        stack += operands(part)
    return found
