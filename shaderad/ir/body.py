"""Builder of a body: statements, fresh names and their types, temporaries.

Invariant: in the expressions that `Body.shared` returns, only names and constants occur twice, so
nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from shaderad.ir import nodes, ops
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import Type
from shaderad.ir.walk import blocks, children, map_children, rewrite_statement

_T = TypeVar("_T")


class Body:
    """Builds a list of statements; `taken` are names that it must not introduce."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.statements: list[Stmt] = []
        self.span = nodes.NO_SPAN
        """The Python line of the current statement."""
        self.local_types: dict[str, Type] = {}
        self._taken = set(taken)
        self._dots: dict[str, str] = {}

    def fresh(self, stem: str) -> str:
        """A new name that starts with `stem`."""
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
        """Names of tangents -> names of their primals."""
        return {dot: name for name, dot in self._dots.items()}

    @property
    def temporaries(self) -> frozenset[str]:
        """Locals that hold parts of expressions."""
        return frozenset(self.local_types.keys() - self._dots.values())

    def add(self, statement: Stmt) -> None:
        """Adds a statement; expressions without a span get that of the current line."""
        if not blocks(statement):
            statement = rewrite_statement(statement, self._located)
        self.statements.append(statement)

    def _located(self, e: Expr) -> Expr:
        return replace(e, span=self.span) if e.span == nodes.NO_SPAN else e

    def captured(self, write: Callable[[], _T]) -> tuple[tuple[Stmt, ...], _T]:
        """The statements that `write` adds, as a separate block, and its result."""
        outer, self.statements = self.statements, []
        try:
            result = write()
            return tuple(self.statements), result
        finally:
            self.statements = outer

    def local(self, stem: str, t: Type) -> nodes.Var:
        """A new local of type `t`."""
        name = self.fresh(stem)
        self.local_types[name] = t
        return nodes.Var(type=t, name=name)

    def bound(self, value: Expr, stem: str = "term") -> Expr:
        """A temporary that holds `value`; `value` itself if it is cheap."""
        return value if is_cheap(value) else self.named(stem, value, self.span)

    def named(self, stem: str, value: Expr, span: nodes.Span = nodes.NO_SPAN) -> nodes.Var:
        """A new local that holds `value`."""
        name = self.local(stem, value.type)
        self.assign(name.name, value, span)
        return name

    def assign(
        self,
        name: str,
        value: Expr,
        span: nodes.Span = nodes.NO_SPAN,
        path: tuple[nodes.Step, ...] = (),
    ) -> None:
        """Adds ``name<path> = value``."""
        self.add(nodes.Assign(name=name, path=path, value=value, span=span))

    def shared(self, *values: Expr) -> tuple[Expr, ...]:
        """`values`, with temporaries for the parts that occur more than once."""
        shared = Shared(values)
        return tuple(shared.of(v, self) for v in values)


class Shared:
    """Rewrites expressions so that each common part is computed once."""

    def __init__(self, values: tuple[Expr, ...]) -> None:
        self._kept = values  # Parts are identified by id, so they must stay alive.
        order = {id(node): node for v in values for node in in_order(v)}.values()
        self._use_count: dict[int, int] = {}
        for node in (*values, *(child for parent in order for child in children(parent))):
            self._use_count[id(node)] = self._use_count.get(id(node), 0) + 1
        self.rewritten: dict[int, Expr] = {}

    def bind(self, node: Expr, body: Body) -> None:
        """Rewrites `node`, whose operands are rewritten already; binds it if it is used twice."""
        if id(node) not in self.rewritten:
            new = self.rebuilt(node)
            is_common = self._use_count.get(id(node), 1) > 1
            self.rewritten[id(node)] = body.bound(new) if is_common else new

    def rebuilt(self, node: Expr) -> Expr:
        return map_children(node, lambda child: self.rewritten[id(child)])

    def of(self, e: Expr, body: Body) -> Expr:
        """`e`, rewritten; temporaries go to `body`."""
        for node in in_order(e):
            self.bind(node, body)
        return self.rewritten[id(e)]


def is_cheap(e: Expr) -> bool:
    """True if `e` need not be bound to a name; addresses behind pointers cannot be."""
    while isinstance(e, nodes.Splat | nodes.Field | nodes.Swizzle):
        e = e.value
    if isinstance(e, nodes.Apply) and e.op == ops.NEG:
        return is_cheap(e.args[0])
    names = nodes.Var | nodes.Const | nodes.Zero | nodes.Length
    return isinstance(e, names | nodes.PointerIndex | nodes.KnownNumber)
