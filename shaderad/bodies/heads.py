"""Loop heads without effects: a call that writes an array, or adds to one, leaves them.

The head of a loop is no part of what Slang differentiates, and its text may stand more than once:
the writes of a function called there would have no derivative, or happen twice. Bounds get names
before their loop; a condition becomes a flag that the loop's step sets anew.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.bodies.jumps import Structured, none_of, without_jumps
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Assign, Call, Expr, For, If, Stmt, Var, While
from shaderad.ir.types import BOOL, Type
from shaderad.ir.walk import expressions, writes_memory


def structured(body: tuple[Stmt, ...], result: Type, local_types: dict[str, Type]) -> Structured:
    """The body of a function that returns `result`, without jumps and without effects in heads."""
    plain = without_jumps(body, result, local_types)
    types = dict(plain.local_types)
    return Structured(body=_block(plain.body, types), local_types=types)


def has_effect(e: Expr) -> bool:
    """Whether evaluating `e` writes memory."""
    return any(isinstance(part, Call) and writes_memory(part.function) for part in expressions(e))


def _block(body: tuple[Stmt, ...], types: dict[str, Type]) -> tuple[Stmt, ...]:
    return tuple(new for s in body for new in _statement(s, types))


def _statement(s: Stmt, types: dict[str, Type]) -> tuple[Stmt, ...]:
    if isinstance(s, If):
        then, otherwise = _block(s.then, types), _block(s.otherwise, types)
        return (replace(s, then=then, otherwise=otherwise),)
    if isinstance(s, For):
        return _for(replace(s, body=_block(s.body, types)), types)
    if isinstance(s, While):
        return _while(replace(s, body=_block(s.body, types)), types)
    return (s,)


def _for(s: For, types: dict[str, Type]) -> tuple[Stmt, ...]:
    named: list[Assign] = []

    def bound(stem: str, e: Expr) -> Expr:
        if not has_effect(e):
            return e
        named.append(Assign(name=_local(stem, e.type, types), value=e, span=e.span))
        return Var(type=e.type, name=named[-1].name)

    start, stop, step = bound("start", s.start), bound("stop", s.stop), bound("step", s.step)
    return (*named, replace(s, start=start, stop=stop, step=step))


def _while(s: While, types: dict[str, Type]) -> tuple[Stmt, ...]:
    if not has_effect(s.condition):
        return (s,)
    flag = _local("going", BOOL, types)
    ask = Assign(name=flag, value=s.condition, span=s.condition.span)
    again: Stmt = If(condition=none_of(s.exits), then=(ask,)) if s.exits else ask
    going = Var(type=BOOL, name=flag, span=s.condition.span)
    return (ask, replace(s, condition=going, body=(*s.body, again)))


def _local(stem: str, t: Type, types: dict[str, Type]) -> str:
    name = made_name(stem, types)
    types[name] = t
    return name
