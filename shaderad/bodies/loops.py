"""Trip counts of loops, and the code size that decides which loops are unrolled.

Drivers inline every call and unroll loops whose counts they know, above all those over local
arrays. They took longer to compile eight copies of seven atomic additions, in a loop that each
thread runs once, than the rest of a ray marcher. So loops with large bodies stay loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import Type, byte_count
from shaderad.ir.walk import expressions

_MAX_OPERATIONS = 512
"""Largest number of operations in all iterations of an unrolled ``static_range``."""
_OPERATIONS_PER_WORD = 8
"""Cost of one word of an array access, index checks included, in operations."""
_MAX_WORDS = 16
"""Largest number of words that all iterations of an unrolled loop read, write or add to."""


@dataclass(frozen=True)
class CodeSize:
    """Operations, and words of arrays that are read, written or added to; calls inlined."""

    operations: int = 0
    words: int = 0

    def __add__(self, other: CodeSize) -> CodeSize:
        return CodeSize(self.operations + other.operations, self.words + other.words)

    def times(self, count: int) -> CodeSize:
        return CodeSize(count * self.operations, count * self.words)


_size_by_function: WeakKeyDictionary[Function, CodeSize] = WeakKeyDictionary()


def constant_range(loop: nodes.For) -> range | None:
    """The counters of a loop; `None` where a bound is no constant."""
    start, stop, step = (int(b.value) if isinstance(b, nodes.Const) else None for b in loop.bounds)
    if start is None or stop is None or step is None:
        return None
    return range(start, stop, step) if step else range(0)


def trip_count(loop: nodes.For) -> int | None:
    """The number of iterations; `None` where a bound is no constant."""
    counters = constant_range(loop)
    return None if counters is None else len(counters)


def unrolls(loop: nodes.For) -> bool:
    """True if a ``static_range`` is unrolled in the emitted text."""
    is_short = _unrolled_size(loop).operations <= _MAX_OPERATIONS
    return loop.is_unrolled and (loop.is_in_registers or is_short)


def may_unroll(loop: nodes.For) -> bool:
    """True if compilers may copy the iterations of a loop whose count they know."""
    return trip_count(loop) is None or _unrolled_size(loop).words <= _MAX_WORDS


def _unrolled_size(loop: nodes.For) -> CodeSize:
    return _body_size(loop.body).times(trip_count(loop) or 1)


def _body_size(body: Iterable[Stmt]) -> CodeSize:
    return sum(map(_statement_size, body), CodeSize())


def _statement_size(s: Stmt) -> CodeSize:
    size = sum(map(_expression_size, expressions(s)), CodeSize())
    if isinstance(s, nodes.Store | nodes.Accumulate | nodes.AccumulateGradient):
        size += _access_size(s.value.type)
    if isinstance(s, nodes.If):
        return size + _body_size(s.then) + _body_size(s.otherwise)
    if isinstance(s, nodes.For):
        unrolled = _unrolled_size(s)
        is_copied = unrolled.operations <= _MAX_OPERATIONS and (s.is_unrolled or may_unroll(s))
        return size + (unrolled if is_copied else _body_size(s.body))
    return size + _body_size(s.body) if isinstance(s, nodes.While) else size


def _expression_size(e: Expr) -> CodeSize:
    if isinstance(e, nodes.Call | nodes.ForwardDiff):
        if e.function not in _size_by_function:
            _size_by_function[e.function] = _body_size(e.function.body)
        return _size_by_function[e.function] + CodeSize(1)
    return _access_size(e.type) if isinstance(e, nodes.Load) else CodeSize(1)


def _access_size(t: Type) -> CodeSize:
    words = max(byte_count(t) // 4, 1)
    return CodeSize(_OPERATIONS_PER_WORD * words, words)
