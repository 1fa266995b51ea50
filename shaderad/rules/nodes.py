"""IR nodes of derivatives: pushed functions and kernels, adjoints, and nodes of adjoints.

Only lowering handles in-out parameters, cotangents of writes and reverse loops, because an adjoint
is never differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shaderad.ir.nodes import NO_SPAN, Expr, For, Function, Kernel, Parameter, Step


@dataclass(frozen=True, kw_only=True, eq=False)
class Pushed(Function):
    """``f_push`` of ``f``."""

    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of tangents -> names of their primals."""
    temporaries: frozenset[str] = frozenset()
    """Locals that hold parts of expressions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PushedKernel(Kernel):
    """A kernel that also computes the tangents of the float arrays that it writes.

    Tangents of Min and Max arrays exist only in its derivatives, which run after the argmin index
    of each element is known.
    """

    primal_name: str
    dots: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of arrays and uniforms -> names of their tangents."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of all tangents -> names of their primals."""
    temporaries: frozenset[str] = frozenset()
    """Locals that hold parts of expressions."""

    @property
    def reported_name(self) -> str:
        return self.primal_name if self.span != NO_SPAN else ""


def primal_name(kernel: Kernel) -> str:
    """The name of the user's kernel, also for a pushed kernel."""
    return kernel.primal_name if isinstance(kernel, PushedKernel) else kernel.name


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
    seed: str = ""
    """The parameter with the cotangent of the result; empty if there is none."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull(Function):
    """``f_pull(x, n, y_bar)``, which returns the tuple of cotangents of its parameters.

    Let J be the Jacobian of ``y = f(x)`` at x, and ``pull(f)(x, y_bar) = J^T y_bar``. An adjoint is
    never differentiated, because J is the same matrix in all of these:
        tangent of J^T y_bar along (x_dot, y_bar_dot)
                                              = pull(push(f))(x, x_dot, (y_bar_dot, y_bar)) by x
        cotangent of x in <z, J^T y_bar>      = pull(push(f))(x, z, (0, y_bar)) by x
        cotangent of y_bar in <z, J^T y_bar>  = the tangent in push(f)(x, z)
    where ``push(f)(x, x_dot) = (f(x), J x_dot)``.
    """

    primal: Function
    wanted: tuple[int, ...]
    """Positions of the parameters whose cotangents it returns, in order."""
