"""Tests for discarded cotangents -> cheaper ones, once derivatives are taken.

Where a `where` may discard a result, a product with its cotangent `bar` is
``select(isnan(part) & (bar == 0), 0, part)``, which keeps the derivative by `bar` (see
`rules.arrays.layout`). If `part` is 0 or NaN where `bar` is 0, ``select(bar == 0, 0, part)`` has
the same value; if `part` is 0 there, so has `part`. A sum of such products can leave all tests out
unless it is NaN: see `nest/sums/writer.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.dags import in_order
from shaderad.ir.equality import Expressions
from shaderad.ir.nodes import Apply, Expr
from shaderad.ir.walk import map_children


class _Value(IntEnum):
    """The value of an expression where a cotangent is 0."""

    ZERO = 0
    ZERO_OR_NAN = 1
    ANY = 2


class _Test(NamedTuple):
    """The parts of ``select(isnan(part) & (bar == 0), 0, part)``."""

    bar: Expr
    is_zero: Expr
    part: Expr


def simply_discarded(e: Expr) -> Expr:
    """`e` with cheaper tests for discarded cotangents."""
    if not any(_args(part, ops.ISNAN) for part in in_order(e)):
        return e
    whole = Expressions().shared(e)
    simple: dict[int, Expr] = {}
    for part in in_order(whole):
        simple[id(part)] = _simpler(part, simple)
    return simple[id(whole)]


def without_test(e: Expr) -> Expr:
    """`e` without the test for a discarded cotangent around it; NaN where that matters."""
    whole = Expressions().shared(e)
    test = _test_of(whole)
    if test is not None:
        return test.part
    match _args(whole, ops.SELECT):
        case [condition, nodes.Zero(), part]:
            match _args(condition, ops.EQ):
                case [bar, zero] if c.number_of(zero) == 0 and bar.type == part.type:
                    return e if _where_zero(part, bar) is _Value.ANY else part
                case _:
                    pass
        case _:
            pass
    return e


def _simpler(e: Expr, simple: dict[int, Expr]) -> Expr:
    """`e` of operands that are `simple` already, by their identities."""
    test = _test_of(e)
    if test is not None:
        value = _where_zero(test.part, test.bar)
        if value is _Value.ZERO:
            return simple[id(test.part)]
        if value is _Value.ZERO_OR_NAN:
            is_zero, part = simple[id(test.is_zero)], simple[id(test.part)]
            return c.select(is_zero, c.zero(e.type), part)
    return map_children(e, lambda child: simple[id(child)])


def _test_of(e: Expr) -> _Test | None:
    match _args(e, ops.SELECT):
        case [condition, nodes.Zero(), part]:
            match _args(condition, ops.BIT_AND):
                case [is_nan, is_zero] if [*_args(is_nan, ops.ISNAN)] == [part]:
                    match _args(is_zero, ops.EQ):
                        case [bar, zero] if c.number_of(zero) == 0 and bar.type == part.type:
                            return _Test(bar, is_zero, part)
                        case _:
                            pass
                case _:
                    pass
        case _:
            pass
    return None


def _where_zero(part: Expr, bar: Expr) -> _Value:
    """The value of `part`, an expression of shared parts, where `bar` is 0."""
    value_by_part: dict[int, _Value] = {}
    for e in in_order(part):
        values = [value_by_part[id(arg)] for arg in _args(e)]
        value_by_part[id(e)] = _Value.ZERO if e is bar or c.is_zero(e) else _of(e, values)
    return value_by_part[id(part)]


def _of(e: Expr, values: Sequence[_Value]) -> _Value:
    """The value of an operation by those of its operands."""
    match e:
        case Apply(op=ops.NEG):
            return values[0]
        case Apply(op=ops.SELECT):
            return max(values[1:])
        case Apply(op=ops.MUL) if min(values) is not _Value.ANY:
            return _Value.ZERO_OR_NAN
        case Apply(op=ops.DIV) if values[0] is not _Value.ANY:
            return _Value.ZERO_OR_NAN
        case _:
            return _Value.ANY


def _args(e: Expr, op: ops.Op | None = None) -> Sequence[Expr]:
    """The operands of an operation, `op` if that is given; none of other expressions."""
    return e.args if isinstance(e, Apply) and op in (None, e.op) else ()
