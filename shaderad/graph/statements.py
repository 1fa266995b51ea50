"""Expressions that share parts -> statements in which nothing is computed twice.

A shared part becomes a local; it stands in the innermost block in which all its uses lie, so
that it is evaluated exactly when one of them is. Sides of a choice become blocks of an `If`
where they need locals. Invariant: no expression is nested deeper than a reader can follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shaderad.graph.equality import Expressions
from shaderad.ir import nodes
from shaderad.ir.nodes import Assign, Conditional, Expr, If, Stmt, Var
from shaderad.ir.types import Type
from shaderad.ir.walk import map_children
from shaderad.rules.expressions import in_order, operands

DEPTH_LIMIT = 12
"""Operators that may be nested in one expression."""


@dataclass(eq=False)
class _Block:
    """One side of a choice, or the whole body."""

    parent: _Block | None = None
    depth: int = 0
    parts: list[Expr] = field(default_factory=list[Expr])
    """What is evaluated here, operands first."""


@dataclass
class Written:
    """Statements, the values asked for, and the locals they need."""

    body: tuple[Stmt, ...]
    values: tuple[Expr, ...]
    local_types: dict[str, Type]


def write(values: Sequence[Expr], prefix: str = "t") -> Written:
    """Statements after which `values` are short expressions."""
    expressions = Expressions()
    return _Writer([expressions.shared(v) for v in values], prefix).run()


class _Writer:
    def __init__(self, values: Sequence[Expr], prefix: str) -> None:
        self._values = values
        self._prefix = prefix
        self._order = _in_order(values)
        self._root = _Block()
        self._sides: dict[int, tuple[_Block, _Block]] = {}
        self._uses: dict[int, int] = {}
        self._text: dict[int, Expr] = {}
        self._depth: dict[int, int] = {}
        self._local_types: dict[str, Type] = {}

    def run(self) -> Written:
        self._place()
        body = self._write_block(self._root)
        values = tuple(self._text[id(v)] for v in self._values)
        return Written(tuple(body), values, self._local_types)

    # -- where each part stands ------------------------------------------------------------

    def _place(self) -> None:
        """Gives each part the innermost block that holds all its uses."""
        block_of: dict[int, _Block] = {id(v): self._root for v in self._values}
        for value in self._values:
            self._uses[id(value)] = self._uses.get(id(value), 0) + 1
        for part in reversed(self._order):
            block = block_of[id(part)]
            block.parts.append(part)
            blocks = [block] * 3
            if isinstance(part, Conditional):
                sides = (_Block(block, block.depth + 1), _Block(block, block.depth + 1))
                self._sides[id(part)] = sides
                blocks = [block, *sides]
            children = operands(part)
            for k, child in enumerate(children):
                where = blocks[k] if isinstance(part, Conditional) else block
                known = block_of.get(id(child))
                block_of[id(child)] = where if known is None else _common(known, where)
                self._uses[id(child)] = self._uses.get(id(child), 0) + 1

    # -- text ------------------------------------------------------------------------------

    def _write_block(self, block: _Block) -> list[Stmt]:
        body: list[Stmt] = []
        for part in reversed(block.parts):
            if isinstance(part, Conditional):
                self._write_conditional(part, body)
            else:
                self._put(part, map_children(part, lambda child: self._text[id(child)]), body)
        return body

    def _put(self, part: Expr, text: Expr, body: list[Stmt]) -> None:
        children = operands(part)
        depth = 1 + max((self._depth[id(child)] for child in children), default=-1)
        is_shared = self._uses[id(part)] > 1 and bool(children) and not _is_cheap(part)
        if is_shared or depth > DEPTH_LIMIT:
            name = self._local(part.type)
            body.append(Assign(name=name, value=text))
            text, depth = Var(type=part.type, name=name), 0
        self._text[id(part)], self._depth[id(part)] = text, depth

    def _write_conditional(self, part: Conditional, body: list[Stmt]) -> None:
        then, otherwise = (self._write_block(side) for side in self._sides[id(part)])
        condition, if_true, if_false = (self._text[id(p)] for p in operands(part))
        if not then and not otherwise:
            plain = Conditional(
                type=part.type, condition=condition, if_true=if_true, if_false=if_false
            )
            self._put(part, plain, body)
            return
        name = self._local(part.type)
        then.append(Assign(name=name, value=if_true))
        otherwise.append(Assign(name=name, value=if_false))
        body.append(If(condition=condition, then=tuple(then), otherwise=tuple(otherwise)))
        self._text[id(part)], self._depth[id(part)] = Var(type=part.type, name=name), 0

    def _local(self, t: Type) -> str:
        name = f"{self._prefix}{len(self._local_types)}"
        self._local_types[name] = t
        return name


def _is_cheap(part: Expr) -> bool:
    """Whether writing it twice is no more than naming it."""
    return isinstance(part, nodes.Field | nodes.Swizzle) and isinstance(part.value, Var)


def _in_order(values: Sequence[Expr]) -> list[Expr]:
    found: dict[int, Expr] = {}
    for value in values:
        for part in in_order(value):
            found[id(part)] = part
    return list(found.values())


def _common(a: _Block, b: _Block) -> _Block:
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a
