"""How deep blocks lie in each other once the functions around them are one.

Compilers of drivers give blocks a stack of fixed size, and some do not look whether it is full:
lavapipe ends the process beyond 80 (LP_MAX_TGSI_NESTING). What a kernel nests is counted here
with what it calls, and refused in time.
"""

from __future__ import annotations

from shaderad.bodies.heads import structured
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import (
    BackwardDiff,
    Call,
    Conditional,
    Expr,
    For,
    ForwardDiff,
    Function,
    If,
    Logical,
    Stmt,
    While,
)
from shaderad.ir.walk import blocks, children

DEPTH_LIMIT = 64
"""What the library and derivatives add around, and inside, takes the rest of the driver's 80."""

_Depth = tuple[int, Span | None]
"""A number of blocks, and where the innermost of them stands."""
_FLAT: _Depth = (0, None)


def check_depth(body: tuple[Stmt, ...], span: Span | None) -> None:
    """What drivers cannot compile.

    Raises:
        LanguageError: SR0288.
    """
    depth, at = _Depths().of(body)
    if depth > DEPTH_LIMIT:
        raise error("SR0288", at or span, depth=depth, limit=DEPTH_LIMIT)


class _Depths:
    """The depth of bodies; that of each function is found once."""

    def __init__(self) -> None:
        self._by_function: dict[Function, _Depth] = {}

    def of(self, body: tuple[Stmt, ...]) -> _Depth:
        return max((self._statement(s) for s in body), key=_number, default=_FLAT)

    def _statement(self, s: Stmt) -> _Depth:
        found = [self._expression(e) for e in children(s)]
        if isinstance(s, If | For | While):
            found += [_inside(self.of(b), s.span) for b in blocks(s)]
        if isinstance(s, BackwardDiff):
            found.append(self._function(s.function))
        return max(found, key=_number, default=_FLAT)

    def _expression(self, e: Expr) -> _Depth:
        found = [self._expression(child) for child in children(e)]
        if isinstance(e, Conditional | Logical):
            # What is evaluated first lies outside of the branch.
            found[1:] = [_inside(depth, e.span) for depth in found[1:]]
        if isinstance(e, Call | ForwardDiff):
            found.append(self._function(e.function))
        return max(found, key=_number, default=_FLAT)

    def _function(self, f: Function) -> _Depth:
        if f not in self._by_function:
            types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
            self._by_function[f] = self.of(structured(f.body, f.result, types).body)
        return self._by_function[f]


def _inside(depth: _Depth, span: Span) -> _Depth:
    return (depth[0] + 1, depth[1] or (span if span.line else None))


def _number(depth: _Depth) -> int:
    return depth[0]
