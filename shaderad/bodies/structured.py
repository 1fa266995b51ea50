"""Bodies -> bodies without jumps, in which no head of a loop writes memory.

Statements after a jump move into the branch that does not jump; where a branch jumps on some of its
paths only, a flag guards them. Afterwards `Return` stands only as the last statement of a function
with a result, and loops end early through the flags in their `exits` alone.

The adjoint does not contain the head of a loop, and generated code may repeat it, so the writes of
a function called there would have no derivative or happen twice. Bounds that write memory are
therefore bound to names before their loop. Such a condition becomes a flag that each iteration sets
again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

from shaderad.bodies.liveness import filtered, live_in_loop, with_branches
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL, Type, Void
from shaderad.ir.walk import (
    Block,
    blocks,
    expressions,
    made_name,
    map_blocks,
    map_statements,
    new_local,
    reads,
    statements,
    writes,
    writes_memory,
)


@dataclass(frozen=True, kw_only=True)
class Structured:
    """A body without jumps, and the types of its locals, flags included."""

    body: Block
    local_types: dict[str, Type]


def structured(body: Block, result: Type, local_types: dict[str, Type]) -> Structured:
    """The body of a function that returns `result`, without jumps and without writes in heads."""
    plain = without_jumps(body, result, local_types)
    types = dict(plain.local_types)

    def change(s: Stmt) -> Block:
        if isinstance(s, nodes.For):
            return _without_writes_in_bounds(s, types)
        return _without_writes_in_condition(s, types) if isinstance(s, nodes.While) else (s,)

    return Structured(body=map_statements(plain.body, change), local_types=types)


# -- jumps ------------------------------------------------------------------------------------


_Jump = nodes.Break | nodes.Continue | nodes.Return
_Flags = dict[type[Stmt], str]
"""The flag that each kind of jump sets: those of the innermost loop, and that of the function."""


@dataclass
class _JumpRemover:
    local_types: dict[str, Type]
    result: str = ""
    """The local that holds the result of the function."""
    flags: set[str] = field(default_factory=set[str])

    def flag(self, stem: str) -> str:
        name = new_local(stem, BOOL, self.local_types).name
        self.flags.add(name)
        return name

    def block(self, body: Block, flags: _Flags) -> Block:
        out: list[Stmt] = []
        for position, s in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(s, _Jump):
                if isinstance(s, nodes.Return) and s.value is not None:
                    out.append(nodes.Assign(name=self.result, value=s.value, span=s.span))
                is_set = nodes.Const(type=BOOL, value=True)
                return (*out, nodes.Assign(name=flags[type(s)], value=is_set, span=s.span))
            if isinstance(s, nodes.If) and _jumps(s):
                return (*out, *self._branch(s, rest, flags))
            if isinstance(s, nodes.For | nodes.While):
                out += self._loop(s, flags)
                if nodes.Return in _own_jumps(s.body):
                    return (*out, *self._guarded((flags[nodes.Return],), rest, flags))
            else:
                out.append(map_blocks(s, lambda block: self.block(block, flags)))
        return tuple(out)

    def _branch(self, s: nodes.If, rest: Block, flags: _Flags) -> Block:
        if _always_jumps(s.then):
            then, otherwise, after = s.then, (*s.otherwise, *rest), ()
        elif _always_jumps(s.otherwise):
            then, otherwise, after = (*s.then, *rest), s.otherwise, ()
        else:
            then, otherwise, after = s.then, s.otherwise, rest
        branch = replace(s, then=self.block(then, flags), otherwise=self.block(otherwise, flags))
        jumps = _jumps(s)
        own = tuple(flag for kind, flag in flags.items() if kind in jumps)
        return (branch, *self._guarded(own, after, flags))

    def _guarded(self, own: tuple[str, ...], rest: Block, flags: _Flags) -> Block:
        return (nodes.If(condition=_none_of(own), then=self.block(rest, flags)),) if rest else ()

    def _loop(self, loop: nodes.For | nodes.While, outer: _Flags) -> Block:
        jumps = _own_jumps(loop.body)
        broke = self.flag("broke") if nodes.Break in jumps else ""
        skipped = self.flag("skipped") if nodes.Continue in jumps else ""
        returned = outer.get(nodes.Return, "")
        by_kind = {nodes.Break: broke, nodes.Continue: skipped, nodes.Return: returned}
        body = self.block(loop.body, {kind: flag for kind, flag in by_kind.items() if flag})
        if skipped in reads(body):
            body = (_clear(skipped), *body)
        # Statements after a jump are gone, so flags that only they set end no loop.
        written = writes(body)
        exits = tuple(f for f in (broke, returned) if f in written)
        before = (_clear(broke),) if broke else ()
        return (*before, replace(loop, body=body, exits=exits))


def without_jumps(body: Block, result: Type, local_types: dict[str, Type]) -> Structured:
    """Rewrites the body of a function that returns `result` (`Void` for kernels)."""
    returns = [s for s in statements(body) if isinstance(s, nodes.Return)]
    types = dict(local_types)
    rewriter = _JumpRemover(types)
    if not returns or (len(returns) == 1 and body[-1] is returns[0]):
        split = len(body) - len(returns)
        new = (*rewriter.block(body[:split], {}), *body[split:])
    else:
        returned = rewriter.flag("returned")
        rewriter.result = made_name("result", types)
        new = (_clear(returned), *rewriter.block(body, {nodes.Return: returned}))
        if not isinstance(result, Void):
            types[rewriter.result] = result
            start = nodes.Assign(name=rewriter.result, value=nodes.Zero(type=result))
            new = (start, *new, nodes.Return(value=nodes.Var(type=result, name=rewriter.result)))
    new = _drop(new, rewriter.flags, frozenset())
    exits = {f for s in statements(new) if isinstance(s, nodes.For | nodes.While) for f in s.exits}
    dead = rewriter.flags - reads(new) - exits
    return Structured(body=new, local_types={n: t for n, t in types.items() if n not in dead})


def _drop(body: Block, flags: set[str], live: frozenset[str]) -> Block:
    """`body` without assignments to flags that nothing reads later, and ifs emptied by that."""
    return filtered(body, live, lambda s, live: _kept(s, flags, live))


def _kept(s: Stmt, flags: set[str], live: frozenset[str]) -> Stmt | None:
    if isinstance(s, nodes.Assign) and s.name in flags and s.name not in live:
        return None
    if isinstance(s, nodes.For | nodes.While):
        return replace(s, body=_drop(s.body, flags, live_in_loop(s, live)))
    if not isinstance(s, nodes.If):
        return s
    then, otherwise = _drop(s.then, flags, live), _drop(s.otherwise, flags, live)
    if not then and not otherwise and _is_silent(s.condition):
        return None
    return with_branches(s, then, otherwise)


def _is_silent(condition: Expr) -> bool:
    """True if evaluating `condition` neither writes memory nor reports an error."""
    return all(
        isinstance(e, nodes.Const | nodes.Var | nodes.Logical)
        or (isinstance(e, nodes.Apply) and e.op not in (ops.FLOOR_DIV, ops.MOD))
        for e in expressions(condition)
    )


def _none_of(flags: tuple[str, ...]) -> Expr:
    """``not a and not b``."""
    negated = [
        nodes.Apply(type=BOOL, op=ops.NOT, args=(nodes.Var(type=BOOL, name=f),)) for f in flags
    ]
    return reduce(lambda a, b: nodes.Logical(type=BOOL, is_and=True, left=a, right=b), negated)


def _clear(flag: str) -> nodes.Assign:
    return nodes.Assign(name=flag, value=nodes.Const(type=BOOL, value=False))


def _own_jumps(body: Block) -> set[type[Stmt]]:
    """The kinds of jumps in a body: breaks and continues of its own loop only, all returns."""
    kinds: set[type[Stmt]] = set()
    for s in body:
        if isinstance(s, _Jump):
            kinds.add(type(s))
        elif isinstance(s, nodes.For | nodes.While):
            kinds |= _own_jumps(s.body) & {nodes.Return}
        else:
            kinds |= _jumps(s)
    return kinds


def _jumps(s: Stmt) -> set[type[Stmt]]:
    return {kind for block in blocks(s) for kind in _own_jumps(block)}


def _always_jumps(body: Block) -> bool:
    return any(
        isinstance(s, _Jump)
        or (isinstance(s, nodes.If) and _always_jumps(s.then) and _always_jumps(s.otherwise))
        for s in body
    )


# -- heads of loops ---------------------------------------------------------------------------


def _without_writes_in_bounds(s: nodes.For, types: dict[str, Type]) -> Block:
    named: list[Stmt] = []

    def bound(stem: str, e: Expr) -> Expr:
        if not writes_memory(e):
            return e
        local = new_local(stem, e.type, types)
        named.append(nodes.Assign(name=local.name, value=e, span=e.span))
        return local

    start, stop, step = bound("start", s.start), bound("stop", s.stop), bound("step", s.step)
    return (*named, replace(s, start=start, stop=stop, step=step))


def _without_writes_in_condition(s: nodes.While, types: dict[str, Type]) -> Block:
    if not writes_memory(s.condition):
        return (s,)
    going = replace(new_local("going", BOOL, types), span=s.condition.span)
    ask = nodes.Assign(name=going.name, value=s.condition, span=s.condition.span)
    again: Stmt = nodes.If(condition=_none_of(s.exits), then=(ask,)) if s.exits else ask
    return (ask, replace(s, condition=going, body=(*s.body, again)))
