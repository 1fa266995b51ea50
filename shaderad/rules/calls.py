"""Derivatives of calls: functions that call ``fwd_diff`` and ``bwd_diff`` of a user's function.

With ``y = f(x)`` and J its Jacobian at x,
    push(f)(x, x_dot) = J x_dot                   by fwd_diff(f)
    pull(f)(x, y_bar) = J^T y_bar                 by bwd_diff(f)
and the second order, which needs no derivative of `bwd_diff`, because J is one matrix in both:
    J^T y_bar moved along x_dot                 = d/dx <y_bar, J x_dot>  = pull(push(f)) by x
    the cotangent of x in <z, J^T y_bar>        = d/dx <y_bar, J z>      = pull(push(f)) by x
Beyond that kernels have no derivative: SR0419.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import Pair, Tuple, Type, is_differentiable, tangent
from shaderad.ir.walk import reachable
from shaderad.rules import composing as c
from shaderad.rules.local_arrays import added

MAX_ORDER = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Push(Function):
    """``push(f)``: takes the arguments of `primal`, then a tangent each; gives its tangent."""

    primal: Function
    order: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull(Function):
    """``pull(f)``: takes the arguments of `primal` and its cotangent; gives theirs, as a tuple."""

    primal: Function
    order: int


def differentiable(function: Function) -> list[int]:
    """Positions of the parameters that have derivatives."""
    return [k for k, p in enumerate(function.parameters) if is_differentiable(p.type)]


def push(e: nodes.Call, args_dot: Sequence[Expr]) -> Expr:
    """The tangent of a call, given a tangent for each differentiable argument."""
    f = e.function
    if isinstance(f, Pull):
        *args, y_bar = e.args
        *_, y_bar_dot = args_dot
        moved = _pulled(push_function(f.primal), [*args, *map(c.float_part, args_dot[:-1])], y_bar)
        linear = _call(f, [*args, y_bar_dot])
        count = len(differentiable(f.primal))
        parts = [added(c.field(moved, str(k)), c.field(linear, str(k))) for k in range(count)]
        return c.construct(e.type, parts)
    return c.with_zeros(e.type, _call(push_function(f), [*e.args, *map(c.float_part, args_dot)]))


def pull(e: nodes.Call, y_bar: Expr) -> dict[int, Expr]:
    """The cotangents of a call's arguments, by position."""
    f = e.function
    if isinstance(f, Pull):
        return _pull_of_pull(f, e, y_bar)
    found = _pulled(f, e.args, c.float_part(y_bar))
    wanted = differentiable(f)
    return {
        position: c.with_zeros(e.args[position].type, c.field(found, str(k)))
        for k, position in enumerate(wanted)
    }


def _pull_of_pull(f: Pull, e: nodes.Call, z: Expr) -> dict[int, Expr]:
    *args, y_bar = e.args
    wanted = differentiable(f.primal)
    tangents = [c.field(z, str(k)) for k in range(len(wanted))]
    pushed = push_function(f.primal)
    by_x = _pulled(pushed, [*args, *tangents], y_bar)
    found = {
        position: c.with_zeros(args[position].type, c.field(by_x, str(k)))
        for k, position in enumerate(wanted)
    }
    return found | {len(args): _call(pushed, [*args, *tangents])}


def push_function(f: Function) -> Push:
    """``push(f)``.

    Raises:
        DerivativeError: SR0412 where `f` calls a function that has only a backward derivative,
            SR0419 beyond second order.
    """
    _check(f, "SR0412")
    wanted = differentiable(f)
    dots = [Parameter(name=f"{f.parameters[k].name}_dot", type=tangent(f.parameters[k].type))
            for k in wanted]  # fmt: skip
    dot_of = dict(zip(wanted, dots, strict=True))
    args: list[Expr] = []
    for k, p in enumerate(f.parameters):
        primal = c.variable(p.name, p.type)
        if k in dot_of:
            args.append(_pair(p.type, primal, c.variable(dot_of[k].name, dot_of[k].type)))
        else:
            args.append(primal)
    both = nodes.ForwardDiff(type=Pair(f.result), function=f, args=tuple(args))
    t = tangent(f.result)
    body = (nodes.Return(value=nodes.PairPart(type=t, value=both, part="d")),)
    return Push(name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=t, body=body,
                local_types={}, span=f.span, primal=f, order=_order(f) + 1)  # fmt: skip


def pull_function(f: Function) -> Pull:
    """``pull(f)``.

    Raises:
        DerivativeError: SR0411 where `f` calls a function that has only a forward derivative,
            SR0419 beyond second order.
    """
    _check(f, "SR0411")
    body: list[nodes.Stmt] = []
    args: list[Expr] = []
    locals_: dict[str, Type] = {}
    found: list[Expr] = []
    for p in f.parameters:
        primal = c.variable(p.name, p.type)
        if not is_differentiable(p.type):
            args.append(primal)
            continue
        name, t = f"{p.name}_pair", Pair(p.type)
        locals_[name] = t
        body.append(nodes.Assign(name=name, value=_pair(p.type, primal, c.zero(tangent(p.type)))))
        args.append(c.variable(name, t))
        found.append(nodes.PairPart(type=tangent(p.type), value=args[-1], part="d"))
    bar = Parameter(name="result_bar", type=tangent(f.result))
    body.append(
        nodes.BackwardDiff(function=f, args=tuple(args), cotangent=c.variable(bar.name, bar.type))
    )
    result = Tuple(tuple(one.type for one in found))
    body.append(nodes.Return(value=nodes.Construct(type=result, parts=tuple(found))))
    return Pull(name=f"{f.name}_pull", parameters=(*f.parameters, bar), result=result,
                body=tuple(body), local_types=locals_, span=f.span, primal=f,
                order=_order(f) + 1)  # fmt: skip


def _pulled(f: Function, args: Sequence[Expr], y_bar: Expr) -> Expr:
    return _call(pull_function(f), [*args, y_bar])


def _call(f: Function, args: Sequence[Expr]) -> Expr:
    return nodes.Call(type=f.result, function=f, args=tuple(args))


def _pair(t: Type, primal: Expr, derivative: Expr) -> Expr:
    return nodes.MakePair(type=Pair(t), primal=primal, derivative=derivative)


def _order(f: Function) -> int:
    return f.order if isinstance(f, Push | Pull) else 0


def _check(f: Function, code: str) -> None:
    if _order(f) >= MAX_ORDER:
        raise error("SR0419", f.span, order=_order(f) + 1, function=_user_function(f).name)
    for g in _called(f):
        has, lacks = (g.backward, g.forward) if code == "SR0412" else (g.forward, g.backward)
        if has is not None and lacks is None:
            raise error(code, g.span, function=g.name)


def _called(f: Function) -> Iterator[Function]:
    yield f
    if f.backward is None and f.forward is None:
        yield from reachable(f.body)


def _user_function(f: Function) -> Function:
    while isinstance(f, Push | Pull):
        f = f.primal
    return f
