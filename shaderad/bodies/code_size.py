"""How much code a body becomes where compilers copy what loops repeat and functions are called for.

Drivers inline every call, and unroll loops whose counts they know, above all those over local
arrays. Eight copies of seven atomic additions, in a loop that each thread runs once, took them
longer than the rest of a ray marcher. So loops that would become too much stay loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from shaderad.bodies.trip_counts import trip_count
from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Call,
    Expr,
    For,
    ForwardDiff,
    Function,
    If,
    Load,
    Stmt,
    Store,
    While,
)
from shaderad.ir.types import Type, byte_count
from shaderad.ir.walk import expressions

OPERATIONS = 512
"""The most that the iterations of a ``static_range`` come to one after the other."""
_OF_WORD = 8
"""Operations that a word of an array stands for, with its checks."""
WORDS = 16
"""The most of arrays that the iterations of any loop read and add to, one after the other."""


class Size(NamedTuple):
    """Of code, that of functions counted at each call."""

    operations: int = 0
    words: int = 0
    """That are read of arrays, written or added to."""

    def and_(self, other: Size) -> Size:
        return Size(self.operations + other.operations, self.words + other.words)

    def times(self, count: int) -> Size:
        return Size(count * self.operations, count * self.words)


_functions: WeakKeyDictionary[Function, Size] = WeakKeyDictionary()


def unrolls(loop: For) -> bool:
    """Whether the iterations of a ``static_range`` are written one after the other."""
    return loop.is_unrolled and _copies(loop).operations <= OPERATIONS


def may_unroll(loop: For) -> bool:
    """Whether compilers may copy the iterations of a loop, if they know its count."""
    return trip_count(loop) is None or _copies(loop).words <= WORDS


def _copies(loop: For) -> Size:
    return _size(loop.body).times(trip_count(loop) or 1)


def _size(body: Iterable[Stmt]) -> Size:
    total = Size()
    for s in body:
        total = total.and_(_of_statement(s))
    return total


def _of_statement(s: Stmt) -> Size:
    size = Size()
    for e in expressions(s):
        size = size.and_(_of_expression(e))
    if isinstance(s, Store | Accumulate | AccumulateGradient):
        size = size.and_(_of_access(s.value.type))
    if isinstance(s, If):
        return size.and_(_size(s.then)).and_(_size(s.otherwise))
    if isinstance(s, For):
        is_copied = unrolls(s) or (_copies(s).operations <= OPERATIONS and may_unroll(s))
        return size.and_(_copies(s) if is_copied else _size(s.body))
    return size.and_(_size(s.body)) if isinstance(s, While) else size


def _of_expression(e: Expr) -> Size:
    if isinstance(e, Call | ForwardDiff):
        if e.function not in _functions:
            _functions[e.function] = _size(e.function.body)
        return _functions[e.function].and_(Size(1))
    return _of_access(e.type) if isinstance(e, Load) else Size(1)


def _of_access(t: Type) -> Size:
    words = max(byte_count(t) // 4, 1)
    return Size(_OF_WORD * words, words)
