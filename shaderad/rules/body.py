"""One body of statements while it is written: fresh names, their types, temporaries.

Invariant: after `Body.shared` nothing but names and constants stands in two places of the
expressions it gives, so none of them is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import Type
from shaderad.ir.walk import blocks, map_children, rewrite_statement
from shaderad.rules.expressions import in_order, operands

_T = TypeVar("_T")


class Body:
    """Statements, and the names that they use."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.statements: list[Stmt] = []
        self.span = nodes.NO_SPAN
        """The line that is being written."""
        self.local_types: dict[str, Type] = {}
        self._taken = set(taken)
        self._dots: dict[str, str] = {}

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def dot(self, name: str) -> str:
        """The name of the tangent of `name`."""
        if name not in self._dots:
            self._dots[name] = self.fresh(f"{name}_dot")
        return self._dots[name]

    @property
    def shown(self) -> dict[str, str]:
        """The names of tangents: whose they are."""
        return {dot: name for name, dot in self._dots.items()}

    @property
    def temporaries(self) -> frozenset[str]:
        """The names that stand for parts of expressions."""
        return frozenset(self.local_types.keys() - self._dots.values())

    def add(self, statement: Stmt) -> None:
        """Adds a statement; what the rules made in it comes from the line that is being written."""
        if not blocks(statement):
            statement = rewrite_statement(statement, self._located)
        self.statements.append(statement)

    def _located(self, e: Expr) -> Expr:
        return replace(e, span=self.span) if e.span == nodes.NO_SPAN else e

    def captured(self, write: Callable[[], _T]) -> tuple[tuple[Stmt, ...], _T]:
        """What `write` adds, as a block of its own."""
        outer, self.statements = self.statements, []
        try:
            found = write()
            return tuple(self.statements), found
        finally:
            self.statements = outer

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new local name."""
        name = self.fresh(stem)
        self.local_types[name] = t
        return nodes.Var(type=t, name=name)

    def bound(self, value: Expr, stem: str = "term") -> Expr:
        """`value` under a name of its own, unless it is as short itself."""
        if is_cheap(value):
            return value
        name = self.local(stem, value.type)
        self.add(nodes.Assign(name=name.name, value=value, span=self.span))
        return name

    def shared(self, *values: Expr) -> tuple[Expr, ...]:
        """`values`, with names for what stands in several places of them."""
        order = list({id(node): node for v in values for node in in_order(v)}.values())
        counts: dict[int, int] = {}
        for node in (*values, *(child for parent in order for child in operands(parent))):
            counts[id(node)] = counts.get(id(node), 0) + 1
        made: dict[int, Expr] = {}
        for node in order:
            new = map_children(node, lambda child: made[id(child)])
            made[id(node)] = self.bound(new) if counts[id(node)] > 1 else new
        return tuple(made[id(v)] for v in values)


def is_cheap(e: Expr) -> bool:
    """Whether `e` may as well be written twice; places behind pointers have no other way."""
    while isinstance(e, nodes.Splat | nodes.Field | nodes.Swizzle):
        e = e.value
    if isinstance(e, nodes.Apply) and e.op == ops.NEG:
        return is_cheap(e.args[0])
    names = nodes.Var | nodes.Const | nodes.Zero | nodes.Length
    return isinstance(e, names | nodes.PointerIndex | nodes.KnownNumber)
