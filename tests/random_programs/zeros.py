"""A program -> the same one, where `copysign` finds no zero.

Which sign a zero has is the compiler's and the driver's (docs/conventions.md): they take `0.0 + x`
for `x`. So a sign that a zero gives tells nothing; both are asked for.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from tests.random_programs.programs import Program

TINY = 1e-30
"""A `float` that only a zero does not absorb."""


def without_zeros(program: Program) -> tuple[Program, ...]:
    """`program` with the zeros that give a sign taken for positive, and for negative.

    Empty where nothing takes a sign.
    """
    if "copysign" not in program.source:
        return ()
    return tuple(replace(program, source=_moved(program.source, by)) for by in (TINY, -TINY))


def _moved(source: str, by: float) -> str:
    return ast.unparse(_Mover(by).visit(ast.parse(source)))


class _Mover(ast.NodeTransformer):
    """Adds to the second operand of each `copysign`."""

    def __init__(self, by: float) -> None:
        self._by = by

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copysign":
            node.args[1] = ast.BinOp(node.args[1], ast.Add(), ast.Constant(self._by))
        return node
