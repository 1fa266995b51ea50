"""Gradients that a thread sums over several indices before it adds to memory.

On devices that run threads in turn, each thread takes many indices, and adjacent indices often add
to the same elements: see shaders/held_sums.slang.
"""

from __future__ import annotations

from shaderad.ir.nodes import AccumulateGradient, Expr, Stmt
from shaderad.ir.types import Kind, Scalar, Vector, scalars
from shaderad.lower.bindings import Variant
from shaderad.lower.prepare.traffic import cost_of
from shaderad.rules.nodes import Adjoint


def may_hold(variant: Variant) -> bool:
    """True if held sums make the dispatch faster on the device."""
    return variant.shape.held_additions > 0 and not variant.is_one_group


def is_whole(s: AccumulateGradient) -> bool:
    """True for additions to whole elements of floats."""
    t = s.value.type
    is_vector = isinstance(t, Scalar | Vector) and {k.kind for k in scalars(t)} == {Kind.FLOAT}
    return is_vector and not s.path


def held_count(adjoint: Adjoint, buffer: str, most: int) -> int:
    """The number of elements of a gradient that a thread holds; 0 if it adds to memory at once.

    The elements of one index, and one more. In whichever direction the next index lies, elements
    that it no longer adds to then go to memory before those that it still adds to.
    """

    def added(node: Expr | Stmt) -> int:
        is_addition = isinstance(node, AccumulateGradient)
        return int(is_addition and node.buffer == buffer and is_whole(node))

    number = cost_of(adjoint.body, added)
    if number is None:
        return most + 1
    if number < 2:
        return number
    return number + 1 if number <= most else 0
