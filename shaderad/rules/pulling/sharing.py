"""Expressions that stand in both sweeps: what one computes under a name, the other finds."""

from __future__ import annotations

from shaderad.ir.nodes import Expr
from shaderad.ir.walk import map_children
from shaderad.rules.body import Body
from shaderad.rules.expressions import in_order, operands


class Shared:
    """Expressions of both sweeps, each part of them computed once."""

    def __init__(self, values: tuple[Expr, ...]) -> None:
        order = list({id(node): node for v in values for node in in_order(v)}.values())
        self._count: dict[int, int] = {}
        for node in (*values, *(child for parent in order for child in operands(parent))):
            self._count[id(node)] = self._count.get(id(node), 0) + 1
        self._kept = values
        self.made: dict[int, Expr] = {}

    def bind(self, node: Expr, body: Body) -> Expr:
        if id(node) not in self.made:
            new = self.rebuilt(node)
            self.made[id(node)] = body.bound(new) if self._count[id(node)] > 1 else new
        return self.made[id(node)]

    def rebuilt(self, node: Expr) -> Expr:
        return map_children(node, lambda child: self.made[id(child)])

    def of(self, e: Expr, body: Body) -> Expr:
        for node in in_order(e):
            if id(node) not in self._count:
                self._count[id(node)] = 1
            self.bind(node, body)
        return self.made[id(e)]
