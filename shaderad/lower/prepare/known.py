"""Divisors that compilers may fold to a constant zero.

Division by zero is undefined in SPIR-V, and drivers fold a constant one to something else than
infinity (Mesa: 0). Such divisors are hidden (shaders/division.slang). A local or parameter joins
all its values; a product or choice may be zero if a part may. Invariant: hiding a divisor changes
only results of divisions by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from shaderad.bodies.outputs import AlreadyRead
from shaderad.ir import nodes, ops
from shaderad.ir.types import is_float
from shaderad.ir.walk import all_expressions, children, statements

_CARRIERS = (nodes.Cast, nodes.Splat, nodes.Field, nodes.Swizzle, nodes.Element, AlreadyRead)
"""Expressions that are folded like their `value`."""
_DIVISIONS = frozenset({ops.DIV, ops.FLOOR_DIV, ops.MOD, ops.FMOD})


class Folded(IntEnum):
    """The constant to which compilers may fold a value; the greatest of several counts."""

    NOT = 0
    NONZERO = 1
    MAYBE_ZERO = 2


@dataclass(frozen=True, kw_only=True)
class AtRunTime(nodes.Expr):
    """`value`, which no compiler can fold."""

    value: nodes.Expr


def with_hidden_divisor(e: nodes.Apply, names: Mapping[str, Folded]) -> nodes.Apply:
    """`e`; a float divisor that may be folded to zero is hidden."""
    if e.op not in _DIVISIONS or not is_float(e.type):
        return e
    dividend, divisor = e.args
    if _folded(divisor, names) is not Folded.MAYBE_ZERO:
        return e
    hidden = AtRunTime(type=divisor.type, value=divisor, span=divisor.span)
    return replace(e, args=(dividend, hidden))


def _folded(e: nodes.Expr, names: Mapping[str, Folded]) -> Folded:
    if isinstance(e, nodes.Const):
        return Folded.NONZERO if e.value else Folded.MAYBE_ZERO
    if isinstance(e, nodes.Zero | nodes.Call):
        return Folded.MAYBE_ZERO
    if isinstance(e, nodes.Load | nodes.Length | nodes.PointerIndex | nodes.PointerLength):
        return Folded.NOT
    if isinstance(e, nodes.Var):
        return names.get(e.name, Folded.NOT)
    if isinstance(e, _CARRIERS):
        return _folded(e.value, names)
    parts = [_folded(part, names) for part in children(e)]
    op = e.op if isinstance(e, nodes.Apply) else None
    if op is ops.MUL or op is ops.SELECT or isinstance(e, nodes.Construct | nodes.Conditional):
        return Folded.MAYBE_ZERO if Folded.MAYBE_ZERO in parts else min(parts)
    is_nothing = isinstance(e, nodes.Apply) and op is ops.SUB and e.args[0] == e.args[1]
    return Folded.MAYBE_ZERO if is_nothing or all(parts) else Folded.NOT


def folded_names(
    body: tuple[nodes.Stmt, ...], parameters: Mapping[str, Folded]
) -> dict[str, Folded]:
    """The folding of the locals in `body`, and of its `parameters`."""
    assigned = [(s.name, s.value) for s in statements(body) if isinstance(s, nodes.Assign)]
    assigned += [(s.variable, s.start) for s in statements(body) if isinstance(s, nodes.For)]
    names = dict(parameters)
    while True:
        before = dict(names)
        for name, value in assigned:
            _join(names, name, _folded(value, before))
        if names == before:
            return names


def folded_parameters(
    body: tuple[nodes.Stmt, ...], written: Callable[[nodes.Function], nodes.Function]
) -> dict[nodes.Function, dict[str, Folded]]:
    """The folding of the parameters of each function that `body` reaches, over all calls.

    `written` gives the function that the module writes for a called one.
    """
    result: dict[nodes.Function, dict[str, Folded]] = {}

    def join_calls(body: tuple[nodes.Stmt, ...], parameters: Mapping[str, Folded]) -> None:
        names = folded_names(body, parameters)
        for call in all_expressions(body):
            if isinstance(call, nodes.Call):
                f = written(call.function)
                for p, argument in zip(f.parameters, call.args, strict=True):
                    _join(result.setdefault(f, {}), p.name, _folded(argument, names))

    join_calls(body, {})
    while True:
        before = {f: dict(names) for f, names in result.items()}
        for f, names in before.items():
            join_calls(f.body, names)
        if result == before:
            return result


def _join(names: dict[str, Folded], name: str, value: Folded) -> None:
    names[name] = max(value, names.get(name, Folded.NOT))
