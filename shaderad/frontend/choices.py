"""Long chains of branches -> a function that returns the branch number, and a tree over it.

Each ``elif`` nests in the ``else`` before it, and so do the statements after ``if c: return``.
Drivers crash on deep nesting, and the residuals of a derivative grow with its square. A tree over
the number of the branch nests logarithmically.
Invariant: conditions are evaluated in order, up to the first that holds.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from shaderad.frontend.body import BodyReader, Flow, join
from shaderad.frontend.expressions import read_condition
from shaderad.ir import nodes, ops
from shaderad.ir.composing import whole
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import BOOL, INT, Access, Pair, is_differentiable
from shaderad.ir.walk import all_expressions, called, has_effect, made_name, touched_buffers, writes
from shaderad.language.values import PythonNumber

_NESTED_BRANCHES = 16
"""Largest number of branches that are nested; longer chains become trees."""


@dataclass(frozen=True)
class Chain:
    """Branches of which at most one is taken."""

    links: list[ast.If]
    otherwise: list[ast.stmt]
    """The block that runs if no branch is taken."""
    statement_count: int
    """The number of statements of the enclosing block that the chain replaces."""


def chain_at(statements: list[ast.stmt], start: int) -> Chain | None:
    """The long chain of branches that begins at a statement of a block, else `None`.

    An ``if`` after one whose branches all leave the block counts as its ``elif``.
    """
    links: list[ast.If] = []
    end = start
    while end < len(statements) and isinstance(first := statements[end], ast.If):
        links += _links(first)
        end += 1
        if links[-1].orelse or not all(map(_leaves, links)):
            break
    if len(links) <= _NESTED_BRANCHES:
        return None
    return Chain(links, links[-1].orelse, end - start)


def _links(first: ast.If) -> list[ast.If]:
    links = [first]
    while len(links[-1].orelse) == 1 and isinstance(inner := links[-1].orelse[0], ast.If):
        links.append(inner)
    return links


def _leaves(link: ast.If) -> bool:
    return isinstance(link.body[-1], ast.Return | ast.Break | ast.Continue)


def read_chain(body: BodyReader, chain: Chain) -> bool:
    """Reads a chain as a tree; False, emitting nothing, if its conditions are not pure."""
    scope = body.scope
    before = scope.assigned
    branch = nodes.Var(
        type=INT, name=made_name("branch", scope.types), span=body.span(chain.links[0])
    )
    scope.types[branch.name] = INT
    with body.block() as conditions:
        taken = _read_conditions(body, chain, branch)
    scope.assigned = before
    if not _is_pure(body, conditions):
        return False
    count = len(taken) - 1
    start = nodes.Assign(name=branch.name, value=whole(count), span=branch.span)
    chooser = _chooser(body, (start, *conditions, nodes.Return(value=branch, span=branch.span)))
    body.emit(nodes.Assign(name=branch.name, value=_call(chooser), span=branch.span))
    flows: list[Flow] = []

    def read(first: int, end: int) -> None:
        if end - first == 1:
            scope.assigned = before
            body.read(taken[first])
            flows.append(scope.assigned)
            return
        middle = (first + end) // 2
        is_before = nodes.Apply(
            type=BOOL, op=ops.LT, args=(branch, whole(middle)), span=branch.span
        )
        with body.block() as then:
            read(first, middle)
        with body.block() as rest:
            read(middle, end)
        body.emit(
            nodes.If(condition=is_before, then=tuple(then), otherwise=tuple(rest), span=branch.span)
        )

    read(0, len(taken))
    scope.assigned = join(*flows)
    return True


def _read_conditions(body: BodyReader, chain: Chain, branch: nodes.Var) -> list[list[ast.stmt]]:
    """Emits the search for the branch; returns the block of each, the default block last."""
    taken: list[list[ast.stmt]] = []
    tests: list[tuple[list[nodes.Stmt], nodes.Expr]] = []
    otherwise = chain.otherwise
    for link in chain.links:
        with body.block() as hoisted:
            test = read_condition(body, link.test)
        if not isinstance(test, PythonNumber):
            tests.append((hoisted, test))
            taken.append(link.body)
        elif test.value:
            otherwise = link.body
            break
    none = whole(len(taken))
    for number, (hoisted, test) in enumerate(tests):
        span = test.span
        select = nodes.Assign(name=branch.name, value=whole(number), span=span)
        is_open = nodes.Apply(type=BOOL, op=ops.EQ, args=(branch, none), span=span)
        ask = (*hoisted, nodes.If(condition=test, then=(select,), span=span))
        body.emit(nodes.If(condition=is_open, then=ask, span=span))
    return [*taken, otherwise]


def _is_pure(body: BodyReader, conditions: list[nodes.Stmt]) -> bool:
    """True if the conditions have no effects and use only values that a function can take."""
    arrays = body.unit.arrays
    for e in all_expressions(conditions):
        if has_effect(e) or isinstance(e.type, Pair) or holds_pointers(e.type):
            return False
        if isinstance(e, nodes.Load) and arrays[e.buffer].access is not Access.IN:
            return False
    return True


def _chooser(body: BodyReader, statements: tuple[nodes.Stmt, ...]) -> nodes.Chooser:
    own = writes(statements)
    names = {e.name: e.type for e in all_expressions(statements) if isinstance(e, nodes.Var)}
    touched = {*touched_buffers(statements), *(b for f in called(statements) for b in f.buffers)}
    return nodes.Chooser(
        name=f"{body.function.name}_branch",
        parameters=tuple(nodes.Parameter(name=n, type=t) for n, t in names.items() if n not in own),
        result=INT,
        body=statements,
        local_types={n: body.scope.types[n] for n in sorted(own)},
        buffers=tuple(b for b in body.buffers if b in touched),
        span=body.function.def_span,
    )


def _call(chooser: nodes.Chooser) -> nodes.Call:
    """The call of a chooser; its arguments are detached, since conditions have no derivative."""
    values = (nodes.Var(type=p.type, name=p.name) for p in chooser.parameters)
    args = tuple(
        nodes.Detach(type=v.type, value=v) if is_differentiable(v.type) else v for v in values
    )
    return nodes.Call(type=INT, function=chooser, args=args)
