"""Bodies with early return, break and continue -> bodies without.

Statements after a jump move into the branch that does not jump; where a branch jumps on some of its
paths only, a flag guards them. Afterwards `Return` stands only as the last statement of a function
with a result, and loops end early through the flags in their `exits` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from shaderad.bodies.dead_code import filtered, with_branches
from shaderad.bodies.liveness import live_in_loop
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
from shaderad.ir.walk import blocks, expressions, map_blocks, reads, statements, writes


@dataclass(frozen=True, kw_only=True)
class Structured:
    """A body without jumps, and the types of its locals, flags included."""

    body: tuple[Stmt, ...]
    local_types: dict[str, Type]


@dataclass
class _Targets:
    """The locals that jumps set: those of the function and of its innermost loop."""

    returned: str
    """Flag of the function: a `return` was executed."""
    result: str
    """The result of the function."""
    broke: str = ""
    """Flag of the loop: a `break` was executed."""
    skipped: str = ""
    """Flag of the iteration: a `continue` was executed."""


@dataclass
class _Rewriter:
    local_types: dict[str, Type]
    flags: set[str] = field(default_factory=set[str])

    def flag(self, stem: str) -> str:
        name = made_name(stem, self.local_types)
        self.local_types[name] = BOOL
        self.flags.add(name)
        return name

    def block(self, body: tuple[Stmt, ...], targets: _Targets) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(statement, Return):
                return (*out, *self._return(statement, targets))
            if isinstance(statement, Break):
                return (*out, _set(targets.broke, statement))
            if isinstance(statement, Continue):
                return (*out, _set(targets.skipped, statement))
            if isinstance(statement, If) and _jumps(statement):
                return (*out, *self._branch(statement, rest, targets))
            out.extend(self._plain(statement, targets))
            if isinstance(statement, For | While) and _returns(statement):
                return (*out, *self._guarded((targets.returned,), rest, targets))
        return tuple(out)

    def _return(self, statement: Return, targets: _Targets) -> tuple[Stmt, ...]:
        flag = _set(targets.returned, statement)
        if statement.value is None:
            return (flag,)
        value = Assign(name=targets.result, value=statement.value, span=statement.span)
        return (value, flag)

    def _branch(self, s: If, rest: tuple[Stmt, ...], targets: _Targets) -> tuple[Stmt, ...]:
        if _always_jumps(s.then):
            then, otherwise, after = s.then, (*s.otherwise, *rest), ()
        elif _always_jumps(s.otherwise):
            then, otherwise, after = (*s.then, *rest), s.otherwise, ()
        else:
            then, otherwise, after = s.then, s.otherwise, rest
        branch = replace(
            s, then=self.block(then, targets), otherwise=self.block(otherwise, targets)
        )
        flags = tuple(f for f in (_flags(s, targets)) if f)
        return (branch, *self._guarded(flags, after, targets))

    def _guarded(
        self, flags: tuple[str, ...], rest: tuple[Stmt, ...], targets: _Targets
    ) -> tuple[Stmt, ...]:
        if not rest:
            return ()
        return (If(condition=none_of(flags), then=self.block(rest, targets)),)

    def _plain(self, statement: Stmt, targets: _Targets) -> tuple[Stmt, ...]:
        if isinstance(statement, For | While):
            return self._loop(statement, targets)
        return (map_blocks(statement, lambda block: self.block(block, targets)),)

    def _loop(self, loop: For | While, outer: _Targets) -> tuple[Stmt, ...]:
        own = tuple(_own_jumps(loop.body))
        targets = _Targets(outer.returned, outer.result)
        before: list[Stmt] = []
        if any(isinstance(j, Break) for j in own):
            targets.broke = self.flag("broke")
            before.append(_clear(targets.broke))
        if any(isinstance(j, Continue) for j in own):
            targets.skipped = self.flag("skipped")
        body = self.block(loop.body, targets)
        if targets.skipped in reads(body):
            body = (_clear(targets.skipped), *body)
        # Statements behind a jump are gone, and flags that only they set end no loop.
        flags = {targets.broke, outer.returned} & writes(body)
        exits = tuple(f for f in (targets.broke, outer.returned) if f in flags)
        return (*before, replace(loop, body=body, exits=exits))


def without_jumps(body: tuple[Stmt, ...], result: Type, local_types: dict[str, Type]) -> Structured:
    """Rewrites the body of a function that returns `result` (`Void` for kernels)."""
    returns = [s for s in statements(body) if isinstance(s, Return)]
    types = dict(local_types)
    rewriter = _Rewriter(types)
    if not returns or (len(returns) == 1 and body[-1] is returns[0]):
        split = len(body) - len(returns)
        new = (*rewriter.block(body[:split], _Targets("", "")), *body[split:])
    else:
        targets = _Targets(rewriter.flag("returned"), made_name("result", types))
        new = (_clear(targets.returned), *rewriter.block(body, targets))
        if not isinstance(result, Void):
            types[targets.result] = result
            start = Assign(name=targets.result, value=Zero(type=result))
            new = (start, *new, Return(value=Var(type=result, name=targets.result)))
    new = _drop(new, rewriter.flags, frozenset())
    exits = {f for s in statements(new) if isinstance(s, For | While) for f in s.exits}
    dead = rewriter.flags - reads(new) - exits
    return Structured(body=new, local_types={n: t for n, t in types.items() if n not in dead})


def _drop(body: tuple[Stmt, ...], flags: set[str], live: frozenset[str]) -> tuple[Stmt, ...]:
    """`body` without assignments to flags that nothing reads later, and ifs emptied by that."""
    return filtered(body, live, lambda s, live: _kept(s, flags, live))


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
    return with_branches(s, then, otherwise)


def _is_silent(condition: Expr) -> bool:
    """True if evaluating `condition` neither writes memory nor reports an error."""
    return all(
        isinstance(e, Const | Var | Logical)
        or (isinstance(e, Apply) and e.op not in (ops.FLOOR_DIV, ops.MOD))
        for e in expressions(condition)
    )


def none_of(flags: tuple[str, ...]) -> Expr:
    """``not a and not b``."""
    negated = [Apply(type=BOOL, op=ops.NOT, args=(Var(type=BOOL, name=f),)) for f in flags]
    return reduce(lambda a, b: Logical(type=BOOL, is_and=True, left=a, right=b), negated)


def _set(flag: str, at: Stmt) -> Assign:
    return Assign(name=flag, value=Const(type=BOOL, value=True), span=at.span)


def _clear(flag: str) -> Assign:
    return Assign(name=flag, value=Const(type=BOOL, value=False))


def _own_jumps(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Breaks and continues of the loop with this body, not of nested loops; returns of both."""
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


def _flags(s: If, targets: _Targets) -> Iterator[str]:
    kinds = {type(j) for block in blocks(s) for j in _own_jumps(block)}
    if Break in kinds:
        yield targets.broke
    if Continue in kinds:
        yield targets.skipped
    if Return in kinds:
        yield targets.returned


def _always_jumps(body: tuple[Stmt, ...]) -> bool:
    for s in body:
        if isinstance(s, Break | Continue | Return):
            return True
        if isinstance(s, If) and _always_jumps(s.then) and _always_jumps(s.otherwise):
            return True
    return False
