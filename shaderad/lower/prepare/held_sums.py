"""Which gradients a thread sums for several indices before it adds to memory.

Where threads run in turn, each takes many indices, and adjacent ones often add to the same
elements: see shaders/held_sums.slang.
"""

from __future__ import annotations

from shaderad.ir.nodes import AccumulateGradient, Expr, Stmt
from shaderad.ir.types import Kind, Scalar, Vector, scalars
from shaderad.lower.bindings import Variant
from shaderad.lower.prepare.traffic import cost_of
from shaderad.rules.nodes import Adjoint


def may_hold(variant: Variant) -> bool:
    """True if it pays on the device that threads hold sums."""
    return variant.shape.held_additions > 0 and not variant.is_one_group


def is_whole(s: AccumulateGradient) -> bool:
    """True for additions to whole elements of floats."""
    t = s.value.type
    is_vector = isinstance(t, Scalar | Vector) and {k.kind for k in scalars(t)} == {Kind.FLOAT}
    return is_vector and not s.path


def held_count(adjoint: Adjoint, buffer: str, most: int) -> int:
    """How many elements of a gradient a thread holds; 0 for additions that memory gets at once.

    Those of an index, and one more: whatever way the next index goes, what it does not add to any
    more goes to memory before what it still adds to.
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
