"""What adjoints need beyond the IR: parameters that are added to, cotangents of writes.

No other pass knows these nodes: an adjoint is never differentiated itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaderad.ir.nodes import Expr, For, Function, Parameter, Step


@dataclass(frozen=True, kw_only=True)
class Place(Parameter):
    """A parameter that the function changes for its caller: the argument is a `Var`."""


@dataclass(frozen=True, kw_only=True)
class Cotangent(Expr):
    """The cotangent of what a write put into ``buffer[indices]<path>``; 0 out of range."""

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...]
    write_number: Expr | None = None
    """Of a write to Min or Max: only the write that won has one."""
    of: str = ""
    """The array that holds the tangent which the write brought, where it is that one's."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Adjoint(Function):
    """A function that adds cotangents to its `Place` parameters: ``f_bwd`` of ``f``."""

    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of cotangents: whose they are."""
    is_own: bool = False
    """Whether the user wrote it."""


@dataclass(frozen=True)
class Split:
    """An adjoint in two parts, of which the second does not run the function again.

    ``f_keeping(x, n, y, saved)`` sets y to ``f(x, n)``, and `saved` to what the way back,
    ``f_bwd(x, n, saved, y_bar, x_bar)``, asks for.
    """

    keeping: Adjoint
    without_result: Adjoint
    """`keeping` where nobody reads y: it computes what is saved, no more."""
    adjoint: Adjoint
    saved: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class Leap(Expr):
    """After how many of `count` iterations the next of `states` states is kept: see `loops.py`."""

    count: Expr
    states: Expr


@dataclass(frozen=True, kw_only=True)
class ReverseFor(For):
    """The loop that goes back over the iterations of another: what it runs again is silent.

    `variable` counts from `start`, the last iteration, down to 0; `stop` and `step` say the same.
    There are at most `limit` of them.
    """
