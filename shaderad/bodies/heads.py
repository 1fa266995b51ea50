"""Moves calls that write memory out of the heads of loops.

The adjoint does not contain the head of a loop, and generated code may repeat it: the writes of a
function called there would have no derivative, or happen twice. Bounds get names before their loop;
a condition becomes a flag that each iteration sets anew.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.bodies.jumps import Structured, none_of, without_jumps
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Assign, Call, Expr, For, If, Stmt, Var, While
from shaderad.ir.types import BOOL, Type
from shaderad.ir.walk import expressions, map_statements, writes_memory


def structured(body: tuple[Stmt, ...], result: Type, local_types: dict[str, Type]) -> Structured:
    """The body of a function that returns `result`, without jumps and without effects in heads."""
    plain = without_jumps(body, result, local_types)
    types = dict(plain.local_types)

    def change(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, For):
            return _for(s, types)
        return _while(s, types) if isinstance(s, While) else (s,)

    return Structured(body=map_statements(plain.body, change), local_types=types)


def has_effect(e: Expr) -> bool:
    """True if evaluating `e` writes memory."""
    return any(isinstance(part, Call) and writes_memory(part.function) for part in expressions(e))


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
