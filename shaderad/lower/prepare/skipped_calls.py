"""Calls of adjoints that need not run where the cotangent of the result is 0.

In a minimum over boxes, for instance, one box has a cotangent. A call is skipped if all that it
adds is a product with that cotangent, and if its threads need not add together.
"""

from __future__ import annotations

from collections.abc import Callable

from shaderad.ir import nodes
from shaderad.ir.costs import is_costly
from shaderad.ir.nodes import AccumulateGradient, Expr
from shaderad.ir.types import FLOAT, Vector
from shaderad.ir.walk import all_expressions, all_statements, reachable
from shaderad.rules.nodes import Adjoint, Cotangent


def needed_cotangent(
    call: nodes.Call, is_uniform: Callable[[AccumulateGradient], bool]
) -> Expr | None:
    """The cotangent, a float or a vector, where `call` changes nothing if it is 0.

    `None` if there is no such cotangent, or if the call is cheap. `is_uniform` holds for additions
    that the threads of a wave or workgroup make together.
    """
    f = call.function
    if not isinstance(f, Adjoint) or not f.seed or not is_costly(f):
        return None
    position = next(k for k, p in enumerate(f.parameters) if p.name == f.seed)
    seed = call.args[position]
    is_plain = (seed.type.element if isinstance(seed.type, Vector) else seed.type) == FLOAT
    return seed if is_plain and _is_product(f) and not _adds_together(f, is_uniform) else None


def _is_product(f: Adjoint) -> bool:
    """True if all that `f` adds is linear in its seed.

    It then reads no cotangents of arrays, and calls no derivatives of users.
    """
    functions = [g for g in (f, *reachable(f.body)) if isinstance(g, Adjoint)]
    parts = (e for g in functions for e in all_expressions(g.body))
    return not any(g.is_own for g in functions) and not any(isinstance(e, Cotangent) for e in parts)


def _adds_together(f: Adjoint, is_uniform: Callable[[AccumulateGradient], bool]) -> bool:
    return any(isinstance(s, AccumulateGradient) and is_uniform(s) for s in all_statements(f))
