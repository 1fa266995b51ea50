"""Collects the names that a function binds, before its body is read.

Invariant: names are function-scoped as in Python; a name bound anywhere in the body is local
everywhere in it.
"""

from __future__ import annotations

import ast


class BoundNames(ast.NodeVisitor):
    """The names of one function body.

    Attributes:
        bound: Every name that the body assigns or loops over.
        loop_only: Loop variables that are neither assigned otherwise nor read outside their
            loops: they become variables of IR loops.
        mentioned: Every name that occurs; generated names avoid them.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.bound: set[str] = set()
        self.mentioned: set[str] = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        self._targets: set[str] = set()
        self._others: set[str] = set()
        self._active: list[str] = []
        self._reads: list[tuple[str, tuple[str, ...]]] = []
        for statement in function.body:
            self.visit(statement)
        outside = {name for name, active in self._reads if name not in active}
        self.loop_only = self._targets - self._others - outside

    def visit_Name(self, node: ast.Name) -> None:
        self.mentioned.add(node.id)
        if isinstance(node.ctx, ast.Load):
            self._reads.append((node.id, tuple(self._active)))
        else:
            self.bound.add(node.id)
            self._others.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._reads.append((node.target.id, tuple(self._active)))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Iterates over ``elif``s, which nest: long chains would exceed the recursion limit."""
        while True:
            self.visit(node.test)
            for statement in node.body:
                self.visit(statement)
            following = node.orelse[0] if len(node.orelse) == 1 else None
            if not isinstance(following, ast.If):
                break
            node = following
        for statement in node.orelse:
            self.visit(statement)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        if not isinstance(node.target, ast.Name):
            self.visit(node.target)
            return
        name = node.target.id
        self.bound.add(name)
        self.mentioned.add(name)
        self._targets.add(name)
        if name in self._active:
            self._others.add(name)
        self._active.append(name)
        for statement in node.body:
            self.visit(statement)
        self._active.pop()
        for statement in node.orelse:
            self.visit(statement)
