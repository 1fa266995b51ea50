"""IR nodes of adjoints: in-out parameters, cotangents of writes, reverse loops.

Only the lowering knows these nodes, because an adjoint is never differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaderad.ir.nodes import Expr, For, Function, Parameter, Step


@dataclass(frozen=True, kw_only=True)
class InOut(Parameter):
    """A parameter that is passed by reference; the argument is a `Var`."""


@dataclass(frozen=True, kw_only=True)
class Cotangent(Expr):
    """The cotangent of the value written to ``buffer[indices]<path>``; 0 out of range."""

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...]
    write_number: Expr | None = None
    """For Min and Max: the number of the write, whose cotangent is 0 unless it won."""
    of: str = ""
    """The tangent buffer, if this is the cotangent of the tangent of a Min or Max write."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Adjoint(Function):
    """A function that adds cotangents to its `InOut` parameters: ``f_bwd`` of ``f``."""

    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of cotangents -> names of their primals."""
    is_own: bool = False
    """True for a user-defined backward derivative."""


@dataclass(frozen=True)
class Split:
    """An adjoint in two functions, one for each sweep.

    ``f_keeping(x, n, y, saved)`` sets `y` to ``f(x, n)`` and saves the values that the reverse
    sweep ``f_bwd(x, n, saved, y_bar, x_bar)`` reads.
    """

    keeping: Adjoint
    without_result: Adjoint
    """`keeping` without the parameter `y`, for callers that do not read it."""
    adjoint: Adjoint
    saved: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class Leap(Expr):
    """The number of iterations, out of `count`, before the next of `states` states is saved.

    See `loops.py`.
    """

    count: Expr
    states: Expr


@dataclass(frozen=True, kw_only=True)
class ReverseFor(For):
    """The reverse sweep of a loop; out-of-range accesses that it recomputes are not reported.

    `variable` counts from `start`, the last iteration, down to 0, as `stop` and `step` state. At
    most `limit` iterations run.
    """
