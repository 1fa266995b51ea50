"""The nesting depth of blocks after inlining, and its limit.

Compilers of drivers give blocks a stack of fixed size, and some do not check it: lavapipe ends the
process beyond 80 (LP_MAX_TGSI_NESTING).
"""

from __future__ import annotations

from shaderad.bodies.structured import structured
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import (
    BackwardDiff,
    Call,
    Conditional,
    Expr,
    ForwardDiff,
    Function,
    Logical,
    Stmt,
)
from shaderad.ir.walk import blocks, children

DEPTH_LIMIT = 64
"""The library and derivatives add blocks up to the driver's 80."""

_Depth = tuple[int, Span | None]
"""A number of blocks, and the place of the innermost one."""
_FLAT: _Depth = (0, None)


def check_depth(body: tuple[Stmt, ...], span: Span | None) -> None:
    """Checks that drivers can compile the nesting of `body`.

    Raises:
        LanguageError: SR0288.
    """
    depth, at = _Depths().of(body)
    if depth > DEPTH_LIMIT:
        raise error("SR0288", at or span, depth=depth, limit=DEPTH_LIMIT)


class _Depths:
    """The depths of bodies; each function is measured once."""

    def __init__(self) -> None:
        self._by_function: dict[Function, _Depth] = {}

    def of(self, body: tuple[Stmt, ...]) -> _Depth:
        return max((self._statement(s) for s in body), key=_number, default=_FLAT)

    def _statement(self, s: Stmt) -> _Depth:
        depths = [self._expression(e) for e in children(s)]
        depths += [_inside(self.of(b), s.span) for b in blocks(s)]
        if isinstance(s, BackwardDiff):
            depths.append(self._function(s.function))
        return max(depths, key=_number, default=_FLAT)

    def _expression(self, e: Expr) -> _Depth:
        depths = [self._expression(child) for child in children(e)]
        if isinstance(e, Conditional | Logical):
            # The first operand lies outside of the branch.
            depths[1:] = [_inside(depth, e.span) for depth in depths[1:]]
        if isinstance(e, Call | ForwardDiff):
            depths.append(self._function(e.function))
        return max(depths, key=_number, default=_FLAT)

    def _function(self, f: Function) -> _Depth:
        if f not in self._by_function:
            types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
            self._by_function[f] = self.of(structured(f.body, f.result, types).body)
        return self._by_function[f]


def _inside(depth: _Depth, span: Span) -> _Depth:
    return (depth[0] + 1, depth[1] or (span if span.line else None))


def _number(depth: _Depth) -> int:
    return depth[0]
