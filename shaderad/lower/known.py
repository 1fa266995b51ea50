"""Which values a compiler may find to be constant zeros.

Division by zero is undefined in SPIR-V, and drivers that see a constant zero make something else of
it than infinity (Mesa 0). Such divisors are hidden: see shaders/division.slang. Locals and
parameters are taken for all that they hold anywhere, and a product or a choice for zero where a
part of it may be. Invariant: hiding a divisor changes nothing but what dividing by zero gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from shaderad.bodies.outputs import AlreadyRead
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Apply,
    Assign,
    BackwardDiff,
    Call,
    Cast,
    Conditional,
    Const,
    Construct,
    Element,
    Expr,
    Field,
    For,
    ForwardDiff,
    Function,
    Length,
    Load,
    PointerIndex,
    PointerLength,
    Splat,
    Stmt,
    Swizzle,
    Var,
    Zero,
)
from shaderad.ir.types import is_float
from shaderad.ir.walk import children, expressions, statements

_DIVISIONS = frozenset({ops.DIV, ops.FLOOR_DIV, ops.MOD, ops.FMOD})


class Known(IntEnum):
    """What a compiler may know of a value; of two possibilities, the greater one counts."""

    NOT = 0
    NO_ZERO = 1
    MAYBE_ZERO = 2


@dataclass(frozen=True, kw_only=True)
class AtRunTime(Expr):
    """`value`, of which no compiler knows anything."""

    value: Expr


def with_hidden_divisor(e: Apply, names: Mapping[str, Known]) -> Apply:
    """`e`, where it divides floats by what may be a constant zero, with that divisor hidden."""
    if e.op not in _DIVISIONS or not is_float(e.type):
        return e
    dividend, divisor = e.args
    if known(divisor, names) is not Known.MAYBE_ZERO:
        return e
    hidden = AtRunTime(type=divisor.type, value=divisor, span=divisor.span)
    return replace(e, args=(dividend, hidden))


def known(e: Expr, names: Mapping[str, Known]) -> Known:
    """What a compiler may know of `e`, given the same of locals and parameters."""
    if isinstance(e, Const):
        return Known.NO_ZERO if e.value else Known.MAYBE_ZERO
    if isinstance(e, Zero | Call | ForwardDiff):
        return Known.MAYBE_ZERO
    if isinstance(e, Load | Length | PointerIndex | PointerLength):
        return Known.NOT
    if isinstance(e, Var):
        return names.get(e.name, Known.NOT)
    if isinstance(e, Cast | Splat | Field | Swizzle | Element | AlreadyRead):
        return known(e.value, names)
    return _of_parts(e, [known(part, names) for part in children(e)])


def _of_parts(e: Expr, parts: list[Known]) -> Known:
    op = e.op if isinstance(e, Apply) else None
    if op is ops.MUL or op is ops.SELECT or isinstance(e, Construct | Conditional):
        return Known.MAYBE_ZERO if Known.MAYBE_ZERO in parts else min(parts)
    is_nothing = isinstance(e, Apply) and op is ops.SUB and e.args[0] == e.args[1]
    return Known.MAYBE_ZERO if is_nothing or all(parts) else Known.NOT


def known_names(body: tuple[Stmt, ...], parameters: Mapping[str, Known]) -> dict[str, Known]:
    """What a compiler may know of the names in `body`."""
    assigned = [(s.name, s.value) for s in statements(body) if isinstance(s, Assign)]
    assigned += [(s.variable, s.start) for s in statements(body) if isinstance(s, For)]
    found = dict(parameters)
    while True:
        before = dict(found)
        for name, value in assigned:
            _note(found, name, known(value, before))
        if found == before:
            return found


def known_arguments(body: tuple[Stmt, ...]) -> dict[Function, dict[str, Known]]:
    """By function: what a compiler may know of the parameters, from all calls together."""
    found: dict[Function, dict[str, Known]] = {}
    _note_calls(body, {}, found)
    while True:
        before = {f: dict(names) for f, names in found.items()}
        for f, names in before.items():
            _note_calls(f.body, names, found)
            for own in (f.backward, f.forward):
                if own is not None:
                    for p, q in zip(f.parameters, own.parameters, strict=False):
                        _note(found.setdefault(own, {}), q.name, names.get(p.name, Known.NOT))
        if found == before:
            return found


def _note_calls(
    body: tuple[Stmt, ...],
    parameters: Mapping[str, Known],
    found: dict[Function, dict[str, Known]],
) -> None:
    names = known_names(body, parameters)
    for s in statements(body):
        for call in (s, *expressions(s)):
            if not isinstance(call, Call | ForwardDiff | BackwardDiff):
                continue
            given = found.setdefault(call.function, {})
            for p, argument in zip(call.function.parameters, call.args, strict=True):
                _note(given, p.name, known(argument, names))


def _note(names: dict[str, Known], name: str, value: Known) -> None:
    names[name] = max(value, names.get(name, Known.NOT))
