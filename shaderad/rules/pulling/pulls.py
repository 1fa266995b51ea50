"""Pulled functions: ``bwd_diff`` as a function that returns the cotangents of its arguments.

With ``y = f(x)``, its Jacobian J at x and ``pull(f)(x, y_bar) = J^T y_bar``, an adjoint is never
differentiated, because J is the same matrix in all of these:
    tangent of J^T y_bar along (x_dot, y_bar_dot) = pull(push(f))(x, x_dot, (y_bar_dot, y_bar)) by x
    cotangent of x in <z, J^T y_bar>              = pull(push(f))(x, z, (0, y_bar)) by x
    cotangent of y_bar in <z, J^T y_bar>          = the tangent in push(f)(x, z)
where ``push(f)(x, x_dot) = (f(x), J x_dot)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir import nodes
from shaderad.ir.nodes import Function
from shaderad.ir.types import VOID, Tuple
from shaderad.rules.pulling.nodes import Adjoint, InOut


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull(Function):
    """``f_pull(x, n, y_bar)``, which returns the tuple of cotangents of its parameters."""

    primal: Function
    wanted: tuple[int, ...]
    """Positions of the parameters whose cotangents it returns, in order."""


def pull_of(f: Function, adjoint: Adjoint, wanted: tuple[int, ...]) -> Function:
    """The function that calls the `adjoint` of `f` with cotangents that start at 0.

    A user-defined derivative that is declared not to be the Jacobian of `f` gives an ordinary
    function, which is differentiated as it is written.
    """
    given = tuple(p for p in adjoint.parameters if not isinstance(p, InOut))
    in_out = (p for p in adjoint.parameters if isinstance(p, InOut))
    bars = [nodes.Var(type=p.type, name=p.name) for p in in_out]
    result = Tuple(tuple(bar.type for bar in bars))
    start = tuple(
        nodes.Assign(name=bar.name, value=nodes.Zero(type=bar.type), span=f.span) for bar in bars
    )
    end = nodes.Return(value=nodes.Construct(type=result, parts=tuple(bars)), span=f.span)
    local_types = {bar.name: bar.type for bar in bars}
    name, buffers, span = f"{f.name}_pull", f.buffers, f.span
    if f.backward is not None and not f.is_checked:
        return Function(
            name=name, parameters=given, result=result, body=(*start, *adjoint.body, end),
            local_types={**adjoint.local_types, **local_types}, buffers=buffers, span=span,
        )  # fmt: skip
    args = (*(nodes.Var(type=p.type, name=p.name) for p in given), *bars)
    call = nodes.Evaluate(call=nodes.Call(type=VOID, function=adjoint, args=args), span=f.span)
    return Pull(
        name=name, parameters=given, result=result, body=(*start, call, end),
        local_types=local_types, buffers=buffers, span=span, primal=f, wanted=wanted,
    )  # fmt: skip
