"""The vjp against the jvp: ``<pullback(y_bar), x_dot> == <y_bar, jvp(x_dot)>``."""

from __future__ import annotations

import numpy as np

from shaderad.check.differences import Problem
from shaderad.check.results import tangent_floats
from shaderad.check.slots import with_leaves
from shaderad.check.vectors import as_float32
from shaderad.diagnostics import DerivativeError, error
from shaderad.differentiate.linearised import Linearised

# The identity compares two exact derivatives: only rounding separates them.
IDENTITY_RTOL = 2e-3


def check_identity(at: Linearised, problem: Problem, random: np.random.Generator) -> str:
    """Compares vjp and jvp along random signs; returns the verdict as text.

    Raises:
        GradientError: SR0463 where they disagree.
    """
    slots = problem.slots
    x_dots = [as_float32(random.choice([-1.0, 1.0], slot.values.size)) for slot in slots]
    leaves = [slot.tangent(x_dot) for slot, x_dot in zip(slots, x_dots, strict=True)]
    try:
        pushed = at.push(with_leaves(problem.args, leaves, keeps_others=False))
    except DerivativeError as refused:
        return f"no jvp to compare with ({refused.code})"
    y_dot = tangent_floats(at.out, pushed)
    forward = float(np.dot(problem.cotangent, y_dot))
    pairs = list(zip(problem.gradients, x_dots, strict=True))
    backward = float(sum(np.dot(x_bar, x_dot) for x_bar, x_dot in pairs))
    size = float(np.sum(np.abs(problem.cotangent * y_dot)))
    size += float(sum(np.sum(np.abs(x_bar * x_dot)) for x_bar, x_dot in pairs))
    if not abs(forward - backward) <= IDENTITY_RTOL * size + problem.atol:
        names = ", ".join(slot.name for slot in slots)
        raise error("SR0463", name=names, found=backward, expected=forward)
    return "vjp agrees with jvp"
