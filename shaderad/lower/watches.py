"""`checks="nan"`: one statement -> the same with its floats watched for NaN and infinity.

The value that a statement makes is wrapped in `Watched`; the floats that it reads, whose cotangents
it therefore gives back, in `WatchedRead`. Invariant: neither changes a value or a derivative
(shaders/checks.slang). Constants and copies of locals are not watched: an infinity that stands in
the source is there on purpose, and what a local holds was watched where it was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shaderad.bodies.outputs import AlreadyRead
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Apply,
    Assign,
    BackwardDiff,
    Call,
    Conditional,
    Const,
    Construct,
    Detach,
    Element,
    Evaluate,
    Expr,
    Field,
    Load,
    Return,
    Splat,
    Stmt,
    Store,
    Swizzle,
    Var,
    Zero,
)
from shaderad.ir.types import is_differentiable, is_float
from shaderad.ir.walk import children, map_children


@dataclass(frozen=True, kw_only=True)
class Watched(Expr):
    """`value`, reported where it or its tangent is not finite."""

    value: Expr
    name: str
    """What the report calls it: the local, array or parameter that it becomes."""


@dataclass(frozen=True, kw_only=True)
class WatchedRead(Expr):
    """`value`, reported where the cotangent that comes back to it is not finite."""

    value: Expr
    name: str


def watched_statement(s: Stmt, carries_cotangent: Callable[[Var | Load], bool]) -> Stmt:
    """`s` with what it computes and reads watched; statements nested in it are left alone.

    Args:
        s: A statement about to be written.
        carries_cotangent: Whether a derivative is asked for by what a variable or element holds.
    """
    watch = _Watch(carries_cotangent)
    if isinstance(s, Assign):
        return replace(s, value=watch.value(s.value, s.name))
    if isinstance(s, Store | Accumulate | AccumulateGradient):
        return replace(s, value=watch.value(s.value, s.buffer))
    if isinstance(s, Return) and s.value is not None:
        return replace(s, value=watch.value(s.value, "the result"))
    if isinstance(s, Evaluate):
        return replace(s, call=watch.operands(s.call))
    if isinstance(s, BackwardDiff):
        return replace(s, cotangent=watch.value(s.cotangent, "the cotangent"))
    return s


@dataclass(frozen=True)
class _Watch:
    carries_cotangent: Callable[[Var | Load], bool]

    def value(self, e: Expr, name: str) -> Expr:
        """`e` as a value that gets a name."""
        if _is_settled(e):
            return e
        if is_float(e.type):
            return Watched(type=e.type, value=self.operands(e), name=name, span=e.span)
        if isinstance(e, Construct):
            return replace(e, parts=tuple(self.value(p, name) for p in e.parts))
        if isinstance(e, Conditional):
            sides = (self.value(side, name) for side in (e.if_true, e.if_false))
            if_true, if_false = sides
            return replace(e, if_true=if_true, if_false=if_false)
        return self.operands(e)

    def operands(self, e: Expr) -> Expr:
        """`e` with the floats that it reads, and the arguments of calls, watched."""
        root = _root(e)
        if root is not None:
            return self._read(e, root)
        if isinstance(e, Detach) or not (is_differentiable(e.type) or isinstance(e, Call)):
            return e
        if isinstance(e, Call):
            named = zip(e.args, e.function.parameters, strict=True)
            return replace(e, args=tuple(self.value(a, p.name) for a, p in named))
        return map_children(e, self.operands)

    def _read(self, e: Expr, root: Var | Load | AlreadyRead) -> Expr:
        source = root.value if isinstance(root, AlreadyRead) else root
        if not is_float(e.type) or not self.carries_cotangent(source):
            return e
        name = source.name if isinstance(source, Var) else source.buffer
        if isinstance(root, AlreadyRead):
            name = root.buffer
        return WatchedRead(type=e.type, value=e, name=name, span=e.span)


def _root(e: Expr) -> Var | Load | AlreadyRead | None:
    """The variable or element of which `e` is a part; `None` for what is computed."""
    while isinstance(e, Field | Swizzle | Element):
        e = e.value
    return e if isinstance(e, Var | Load | AlreadyRead) else None


def _is_settled(e: Expr) -> bool:
    """Whether `e` is a constant, or a copy of locals and constants."""
    if isinstance(e, Const | Zero | Var):
        return True
    is_negation = isinstance(e, Apply) and e.op is ops.NEG
    if is_negation or isinstance(e, Field | Swizzle | Element | Construct | Splat | Detach):
        return all(_is_settled(child) for child in children(e))
    return False
