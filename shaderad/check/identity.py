"""The vjp against the jvp: ``<pullback(y_bar), x_dot> == <y_bar, jvp(x_dot)>``."""

from __future__ import annotations

import numpy as np

from shaderad.check.differences import Problem
from shaderad.check.results import derivative_floats
from shaderad.check.slots import derivative_leaf, with_leaves
from shaderad.check.vectors import as_float32
from shaderad.diagnostics import DerivativeError, error
from shaderad.session.linearised import Linearised

# The identity compares two exact derivatives: only rounding separates them.
IDENTITY_RTOL = 2e-3


def check_identity(at: Linearised, problem: Problem, random: np.random.Generator) -> str:
    directions = [as_float32(random.choice([-1.0, 1.0], one.values.size)) for one in problem.slots]
    leaves = [
        derivative_leaf(one, values) for one, values in zip(problem.slots, directions, strict=True)
    ]
    try:
        pushed = at.push(with_leaves(problem.args, leaves, others=None))
    except DerivativeError as refused:
        return f"no jvp to compare with ({refused.code})"
    tangent = derivative_floats(at.out, pushed)
    forward = float(np.dot(problem.cotangent, tangent))
    pairs = list(zip(problem.gradients, directions, strict=True))
    backward = float(sum(np.dot(one, way) for one, way in pairs))
    size = float(np.sum(np.abs(problem.cotangent * tangent)))
    size += float(sum(np.sum(np.abs(one * way)) for one, way in pairs))
    if not abs(forward - backward) <= IDENTITY_RTOL * size + problem.atol:
        names = ", ".join(one.name for one in problem.slots)
        raise error("SR0463", name=names, found=backward, expected=forward)
    return "vjp agrees with jvp"
