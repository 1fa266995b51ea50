"""The floating-point operations of a kernel's body at one index.

Numbers that the host knows, such as sizes, decide how often loops run and which branches are taken.
Where they do not, the more expensive branch counts. The middle iteration of a loop stands for all
of its iterations. A function such as ``sin`` is one operation per component.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL, INT, UINT, Type, is_float, leaves
from shaderad.ir.walk import changed, children

_WHOLE = (INT, UINT, BOOL)
_PRODUCTS = frozenset({ops.DOT, ops.MATMUL})
_MOVES = frozenset({ops.SELECT, ops.TRANSPOSE})
"""They compute nothing."""

Numbers = Mapping[str, Any]
"""Whole numbers that are known, by the name of a variable."""


class UncountableError(Exception):
    """A loop runs as often as data say."""


class OperationCounter:
    """Counts the operations of one kernel.

    Args:
        body: Its statements for one index.
        length: The extent of an axis of an array; `None` if it is not known.
    """

    def __init__(self, body: Sequence[Stmt], length: Callable[[str, int], int | None]) -> None:
        self._body, self._length = body, length

    def count(self, numbers: Numbers) -> float:
        """The operations of the body, where `numbers` has its index and the uniforms.

        Raises:
            UncountableError: If a loop's number of iterations is not known.
        """
        return self._of_block(self._body, numbers)

    def _of_block(self, body: Iterable[Stmt], known: Numbers) -> float:
        """The operations of statements."""
        total, numbers = 0.0, dict(known)
        for statement in body:
            total += self._of_statement(statement, numbers)
        return total

    def _of_statement(self, s: Stmt, numbers: dict[str, Any]) -> float:
        """The operations of a statement; enters what it assigns in `numbers`."""
        own = self._of_all(children(s), numbers)
        match s:
            case nodes.Assign(path=()):
                self._set(s.name, self._value(s.value, numbers), numbers)
            case nodes.Assign():
                numbers.pop(s.name, None)
            case nodes.Accumulate() | nodes.AccumulateGradient():
                own += _float_count(s.value.type)
            case nodes.If():
                own += self._of_branches(s, numbers)
            case nodes.For():
                own += self._of_loop(s, numbers)
            case nodes.While() | nodes.BackwardDiff():
                raise UncountableError
            case _:
                pass
        return own

    def _of_branches(self, s: nodes.If, numbers: dict[str, Any]) -> float:
        holds = self._value(s.condition, numbers)
        branches = (s.then, s.otherwise) if holds is None else (s.then if holds else s.otherwise,)
        own = max(self._of_block(branch, numbers) for branch in branches)
        for name in changed((*s.then, *s.otherwise)):
            numbers.pop(name, None)
        return own

    def _of_loop(self, s: nodes.For, numbers: dict[str, Any]) -> float:
        start, stop, step = (self._value(e, numbers) for e in (s.start, s.stop, s.step))
        for name in changed(s.body):
            numbers.pop(name, None)
        if start is None or stop is None or not step:
            raise UncountableError
        count = max(0, math.ceil((stop - start) / step))
        inside = {**numbers, s.variable: start + count // 2 * step}
        return count * self._of_block(s.body, inside) if count else 0.0

    @staticmethod
    def _set(name: str, value: Any, numbers: dict[str, Any]) -> None:
        if value is None:
            numbers.pop(name, None)
        else:
            numbers[name] = value

    # -- expressions ---------------------------------------------------------------------------

    def _of_all(self, expressions: Sequence[Expr], numbers: Numbers) -> float:
        """The operations of expressions, each part once."""
        parts: dict[int, Expr] = {}
        left = [*expressions]
        while left:
            part = left.pop()
            if id(part) not in parts:
                parts[id(part)] = part
                left += children(part)
        return sum(self._own(part, numbers) for part in parts.values())

    def _own(self, e: Expr, numbers: Numbers) -> float:
        """The operations of an expression without its operands."""
        match e:
            case nodes.TextureCall():
                return 0.0
            case nodes.Call():
                names = [p.name for p in e.function.parameters]
                values = (self._value(argument, numbers) for argument in e.args)
                arguments = {n: v for n, v in zip(names, values, strict=False) if v is not None}
                return self._of_block(e.function.body, arguments)
            case nodes.ForwardDiff():
                raise UncountableError
            case nodes.Apply():
                return _operation_count(e)
            case _:
                return 0.0

    def _value(self, e: Expr, numbers: Numbers) -> Any:
        """A whole number or bool; `None` if it is not known."""
        match e:
            case nodes.Const(type=t) if t in _WHOLE:
                return e.value
            case nodes.Zero(type=t) if t in _WHOLE:
                return 0
            case nodes.Var():
                return numbers.get(e.name) if e.type in _WHOLE else None
            case nodes.Length():
                return self._length(e.buffer, e.axis)
            case nodes.Cast(type=t) if t in _WHOLE and e.value.type in _WHOLE:
                return self._value(e.value, numbers)
            case nodes.KnownNumber():
                return self._value(e.number, numbers)
            case nodes.Apply() if all(argument.type in _WHOLE for argument in e.args):
                values = [self._value(argument, numbers) for argument in e.args]
                return None if None in values else _applied(e, values)
            case _:
                return None


def _applied(e: nodes.Apply, values: Sequence[Any]) -> Any:
    if e.op in (ops.FLOOR_DIV, ops.MOD) and values[1] == 0:
        return None
    value: Any = e.op.numpy(*values)  # type: ignore[call-arg]
    return bool(value) if e.type == BOOL else int(value)


@cache
def _float_count(t: Type) -> int:
    """The floats in a value of type `t`."""
    return sum(is_float(leaf.scalar) for leaf in leaves(t))


def _operation_count(e: nodes.Apply) -> int:
    if e.op in _MOVES:
        return 0
    count = _float_count(e.type)
    if e.op in _PRODUCTS:
        return count * (2 * _inner(e) - 1)
    return 2 * count if e.op == ops.MAD else count


def _inner(e: nodes.Apply) -> int:
    """The terms of each sum of a product of matrices and vectors."""
    left, right = (_float_count(argument.type) for argument in e.args)
    return math.isqrt(left * right // _float_count(e.type))
