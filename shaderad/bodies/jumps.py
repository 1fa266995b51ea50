"""Bodies with early return, break and continue -> bodies without.

What follows a jump moves into the branch that does not jump; where a branch jumps on some of its
paths only, a flag guards what follows. Afterwards `Return` stands only as the last statement of a
function with a result, and loops end early through the flags in their `exits` alone. Slang then
differentiates nothing but ifs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from shaderad.bodies.liveness import live_before, live_in_loop
from shaderad.ir import ops
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import (
    Apply,
    Assign,
    Break,
    Const,
    Continue,
    Expr,
    For,
    If,
    Logical,
    Return,
    Stmt,
    Var,
    While,
    Zero,
)
from shaderad.ir.types import BOOL, Type, Void
from shaderad.ir.walk import blocks, expressions, reads, statements, writes


@dataclass(frozen=True, kw_only=True)
class Structured:
    """A body without jumps, and what was added to it."""

    body: tuple[Stmt, ...]
    local_types: dict[str, Type]


@dataclass
class _Scope:
    """The loop or function whose body is being rewritten."""

    returned: str
    """Flag of the function; set by every return that something may have to skip over."""
    result: str
    """The local that holds what the function will return."""
    broke: str = ""
    skipped: str = ""
    """Flag of the loop: a `continue` on one path of a branch that has others."""


@dataclass
class _Rewriter:
    local_types: dict[str, Type]
    flags: set[str] = field(default_factory=set[str])

    def flag(self, stem: str) -> str:
        name = made_name(stem, self.local_types)
        self.local_types[name] = BOOL
        self.flags.add(name)
        return name

    def block(self, body: tuple[Stmt, ...], scope: _Scope) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(statement, Return):
                return (*out, *self._return(statement, scope))
            if isinstance(statement, Break):
                return (*out, _set(scope.broke, statement))
            if isinstance(statement, Continue):
                return (*out, _set(scope.skipped, statement))
            if isinstance(statement, If) and _jumps(statement):
                return (*out, *self._branch(statement, rest, scope))
            out.extend(self._plain(statement, scope))
            if isinstance(statement, For | While) and _returns(statement):
                return (*out, *self._guarded((scope.returned,), rest, scope))
        return tuple(out)

    def _return(self, statement: Return, scope: _Scope) -> tuple[Stmt, ...]:
        flag = _set(scope.returned, statement)
        if statement.value is None:
            return (flag,)
        value = Assign(name=scope.result, value=statement.value, span=statement.span)
        return (value, flag)

    def _branch(self, s: If, rest: tuple[Stmt, ...], scope: _Scope) -> tuple[Stmt, ...]:
        if _always_jumps(s.then):
            then, otherwise, after = s.then, (*s.otherwise, *rest), ()
        elif _always_jumps(s.otherwise):
            then, otherwise, after = (*s.then, *rest), s.otherwise, ()
        else:
            then, otherwise, after = s.then, s.otherwise, rest
        branch = replace(s, then=self.block(then, scope), otherwise=self.block(otherwise, scope))
        flags = tuple(f for f in (_flags(s, scope)) if f)
        return (branch, *self._guarded(flags, after, scope))

    def _guarded(
        self, flags: tuple[str, ...], rest: tuple[Stmt, ...], scope: _Scope
    ) -> tuple[Stmt, ...]:
        if not rest:
            return ()
        return (If(condition=none_of(flags), then=self.block(rest, scope)),)

    def _plain(self, statement: Stmt, scope: _Scope) -> tuple[Stmt, ...]:
        if isinstance(statement, If):
            then = self.block(statement.then, scope)
            return (
                replace(statement, then=then, otherwise=self.block(statement.otherwise, scope)),
            )
        if isinstance(statement, For | While):
            return self._loop(statement, scope)
        return (statement,)

    def _loop(self, loop: For | While, outer: _Scope) -> tuple[Stmt, ...]:
        own = tuple(_own_jumps(loop.body))
        scope = _Scope(outer.returned, outer.result)
        before: list[Stmt] = []
        if any(isinstance(j, Break) for j in own):
            scope.broke = self.flag("broke")
            before.append(_clear(scope.broke))
        if any(isinstance(j, Continue) for j in own):
            scope.skipped = self.flag("skipped")
        body = self.block(loop.body, scope)
        if scope.skipped in reads(body):
            body = (_clear(scope.skipped), *body)
        # What stands behind a jump is gone, and flags that were set there end no loop.
        flags = {scope.broke, outer.returned} & writes(body)
        exits = tuple(f for f in (scope.broke, outer.returned) if f in flags)
        return (*before, replace(loop, body=body, exits=exits))


def without_jumps(body: tuple[Stmt, ...], result: Type, local_types: dict[str, Type]) -> Structured:
    """Rewrites the body of a function that returns `result` (`Void` for kernels)."""
    returns = [s for s in statements(body) if isinstance(s, Return)]
    types = dict(local_types)
    rewriter = _Rewriter(types)
    if not returns or (len(returns) == 1 and body[-1] is returns[0]):
        split = len(body) - len(returns)
        new = (*rewriter.block(body[:split], _Scope("", "")), *body[split:])
    else:
        scope = _Scope(rewriter.flag("returned"), made_name("result", types))
        new = (_clear(scope.returned), *rewriter.block(body, scope))
        if not isinstance(result, Void):
            types[scope.result] = result
            start = Assign(name=scope.result, value=Zero(type=result))
            new = (start, *new, Return(value=Var(type=result, name=scope.result)))
    new = _drop(new, rewriter.flags, frozenset())
    exits = {f for s in statements(new) if isinstance(s, For | While) for f in s.exits}
    dead = rewriter.flags - reads(new) - exits
    return Structured(body=new, local_types={n: t for n, t in types.items() if n not in dead})


def _drop(body: tuple[Stmt, ...], flags: set[str], live: frozenset[str]) -> tuple[Stmt, ...]:
    """Without assignments to flags that nothing reads later, and ifs that then do nothing."""
    out: list[Stmt] = []
    for s in reversed(body):
        kept = _kept(s, flags, live)
        if kept is not None:
            out.append(kept)
            live = live_before((kept,), live)
    return tuple(reversed(out))


def _kept(s: Stmt, flags: set[str], live: frozenset[str]) -> Stmt | None:
    if isinstance(s, Assign) and s.name in flags and s.name not in live:
        return None
    if isinstance(s, For | While):
        return replace(s, body=_drop(s.body, flags, live_in_loop(s, live)))
    if not isinstance(s, If):
        return s
    then, otherwise = _drop(s.then, flags, live), _drop(s.otherwise, flags, live)
    if not then and not otherwise and _is_silent(s.condition):
        return None
    if then or not otherwise:
        return replace(s, then=then, otherwise=otherwise)
    condition = Apply(type=BOOL, op=ops.NOT, args=(s.condition,), span=s.condition.span)
    return replace(s, condition=condition, then=otherwise, otherwise=())


def _is_silent(condition: Expr) -> bool:
    """Whether nobody notices that `condition` is not asked: nothing is added to, or reported."""
    return all(
        isinstance(e, Const | Var | Logical)
        or (isinstance(e, Apply) and e.op not in (ops.FLOOR_DIV, ops.MOD))
        for e in expressions(condition)
    )


def none_of(flags: tuple[str, ...]) -> Expr:
    """``not a and not b``."""
    negated = [Apply(type=BOOL, op=ops.NOT, args=(Var(type=BOOL, name=f),)) for f in flags]
    whole: Expr = negated[0]
    for part in negated[1:]:
        whole = Logical(type=BOOL, is_and=True, left=whole, right=part)
    return whole


def _set(flag: str, at: Stmt) -> Assign:
    return Assign(name=flag, value=Const(type=BOOL, value=True), span=at.span)


def _clear(flag: str) -> Assign:
    return Assign(name=flag, value=Const(type=BOOL, value=False))


def _own_jumps(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Breaks and continues of this loop, not of loops inside; returns at any depth."""
    for s in body:
        if isinstance(s, Break | Continue | Return):
            yield s
        elif isinstance(s, For | While):
            yield from (j for j in _own_jumps(s.body) if isinstance(j, Return))
        else:
            for block in blocks(s):
                yield from _own_jumps(block)


def _jumps(s: Stmt) -> bool:
    return any(True for block in blocks(s) for _ in _own_jumps(block))


def _returns(loop: For | While) -> bool:
    return any(isinstance(j, Return) for j in _own_jumps(loop.body))


def _flags(s: If, scope: _Scope) -> Iterator[str]:
    kinds = {type(j) for block in blocks(s) for j in _own_jumps(block)}
    if Break in kinds:
        yield scope.broke
    if Continue in kinds:
        yield scope.skipped
    if Return in kinds:
        yield scope.returned


def _always_jumps(body: tuple[Stmt, ...]) -> bool:
    for s in body:
        if isinstance(s, Break | Continue | Return):
            return True
        if isinstance(s, If) and _always_jumps(s.then) and _always_jumps(s.otherwise):
            return True
    return False
