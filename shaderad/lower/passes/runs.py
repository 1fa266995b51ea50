"""The bodies of a reduction or scan -> how a thread iterates over its elements.

shaders/runs.slang implements the ways. On lavapipe, unrolled blocks of short code took 0.4 to 0.8
of the time of rolled ones. They hold the code of an element 10 times and that of a combination 20
times, so the driver took 10 to 20 times as long to compile scans of long code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Function, Kernel, Stmt
from shaderad.ir.types import DOUBLE, Type, byte_count, leaves, scalar_of
from shaderad.ir.walk import Block, expressions, statements

UNROLLED, BLOCKS, SINGLE = "UnrolledRuns", "BlockRuns", "SingleRuns"
"""The types of shaders/runs.slang."""

# -- the cost of code, in additions of floats; nodes that are not listed are free ----------------
_ADDITION = 1
_FUNCTION = 6
"""Per component of a function of float, a division or a matrix product: several instructions."""
_DOUBLE = 6
"""The factor for doubles."""
_DOUBLE_FUNCTION = 100
"""A function of double, which the library computes."""
_ACCESS = 2
"""An access to a buffer, besides one for each of its words."""
_BRANCH = 20
"""A branch or loop. Code with two is not unrolled: SwiftShader needs exponential time for it."""
_UNROLLED_LIMIT = 40
"""Elements and combinations are unrolled up to this cost together; a scan combines each twice."""
_BLOCK_LIMIT = 24
"""Functions up to this cost combine in blocks, which take more code than single elements. Sums and
other built-in operators always do, which keeps their rounding errors small."""

_CHEAP = frozenset({
    ops.ADD, ops.SUB, ops.MUL, ops.NEG, ops.MIN, ops.MAX, ops.ABS, ops.SELECT, ops.NOT, ops.TIMES,
    ops.EQ, ops.NE, ops.LT, ops.LE, ops.GT, ops.GE, ops.BIT_AND, ops.BIT_OR, ops.BIT_XOR, ops.MAD,
    ops.POWI, ops.SATURATE, ops.CLAMP, ops.DOT,
})  # fmt: skip


def runs_of(
    producer: Kernel,
    combine: Function,
    epilogues: Iterable[Function],
    *,
    is_built_in: bool,
    is_scan: bool,
) -> str:
    """The type of shaders/runs.slang by which threads iterate over their elements.

    Args:
        producer: The kernel that computes elements.
        combine: The operator.
        epilogues: Functions of each result.
        is_built_in: True if the operator is no function of the user's.
        is_scan: True for scans, which combine each element with the one before and the total.
    """
    combination = _cost(combine.body)
    if combination > _BLOCK_LIMIT and not is_built_in:
        return SINGLE
    parts = [producer.body, *([f.body for f in epilogues] if is_scan else ())]
    element = sum(map(_cost, parts)) + combination * (2 if is_scan else 1)
    return UNROLLED if element <= _UNROLLED_LIMIT else BLOCKS


def _cost(body: Block) -> int:
    """The cost of code; counting stops where the code is long.

    Shared expressions count at each use, which may be very often.
    """
    total = 0
    for part in _inlined(body):
        total += _own_cost(part)
        if total > _UNROLLED_LIMIT:
            break
    return total


def _inlined(body: Block) -> Iterator[Expr | Stmt]:
    """Every node of a body and of the functions that it calls, as often as code repeats them."""
    for statement in statements(body):
        yield statement
        for e in expressions(statement):
            yield e
            if isinstance(e, nodes.Call | nodes.ForwardDiff):
                for _ in range(2 if isinstance(e, nodes.ForwardDiff) else 1):
                    yield from _inlined(e.function.body)


def _own_cost(part: Expr | Stmt) -> int:
    """The cost of one node without its parts."""
    match part:
        case nodes.Apply():
            return _cost_of_op(part)
        case nodes.Load():
            return _ACCESS + _words(part.type)
        case nodes.Store():
            return _ACCESS + _words(part.value.type)
        case nodes.TextureCall() | nodes.PointerIndex():
            return _FUNCTION
        case nodes.Conditional() | nodes.If() | nodes.Logical() | nodes.For() | nodes.While():
            return _BRANCH
        case _:
            return 0


def _cost_of_op(part: nodes.Apply) -> int:
    types = (part.type, *(a.type for a in part.args))
    component_count = max(len(leaves(t)) for t in types)
    is_cheap = part.op in _CHEAP
    if all(scalar_of(t) != DOUBLE for t in types):
        return component_count * (_ADDITION if is_cheap else _FUNCTION)
    if part.op == ops.DIV:
        return component_count * _DOUBLE * _FUNCTION
    return component_count * (_DOUBLE if is_cheap else _DOUBLE_FUNCTION)


def _words(t: Type) -> int:
    return -(-byte_count(t) // 4)
