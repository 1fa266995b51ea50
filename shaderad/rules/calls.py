"""Derivatives of calls in array expressions, by ``fwd_diff`` and ``bwd_diff`` of the function.

With ``y = f(x)`` and J its Jacobian at x,
    push(f)(x, x_dot) = J x_dot                   by fwd_diff(f)
    pull(f)(x, y_bar) = J^T y_bar                 by bwd_diff(f)
The second order needs no derivative of `bwd_diff`, because J is the same matrix in both:
    tangent of J^T y_bar along x_dot            = d/dx <y_bar, J x_dot>  = pull(push(f)) by x
    cotangent of x in <z, J^T y_bar>            = d/dx <y_bar, J z>      = pull(push(f)) by x
The results are ordinary functions, so the same rules give their derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import Pair, Tuple, Type, is_differentiable, tangent
from shaderad.ir.walk import made_name, reachable
from shaderad.rules import composing as c


@dataclass(frozen=True, kw_only=True, eq=False)
class PulledFunction(Function):
    """``pull(f)``: (arguments of `primal`, cotangent of its result) -> tuple of cotangents."""

    primal: Function


def differentiable(function: Function) -> list[int]:
    """Positions of the differentiable parameters."""
    return [k for k, p in enumerate(function.parameters) if is_differentiable(p.type)]


def push(e: nodes.Call, args_dot: Sequence[Expr]) -> Expr:
    """The tangent of a call, given a tangent for each differentiable argument."""
    f = e.function
    if not isinstance(f, PulledFunction):
        return _call(push_function(f), [*e.args, *args_dot])
    *args, y_bar = e.args
    *tangents, y_bar_dot = args_dot
    by_x = _pulled(push_function(f.primal), [*args, *tangents], y_bar)
    by_y_bar = _call(f, [*args, y_bar_dot])
    names = [str(k) for k in range(len(tangents))]
    return c.construct(e.type, [c.added(c.field(by_x, n), c.field(by_y_bar, n)) for n in names])


def pull(e: nodes.Call, y_bar: Expr) -> dict[int, Expr]:
    """The cotangents of a call's arguments, by position."""
    f = e.function
    if isinstance(f, PulledFunction):
        return _pull_of_pull(f, e, y_bar)
    return _by_position(f, _pulled(f, e.args, y_bar))


def _pull_of_pull(f: PulledFunction, e: nodes.Call, z: Expr) -> dict[int, Expr]:
    *args, y_bar = e.args
    tangents = [c.field(z, str(k)) for k in range(len(differentiable(f.primal)))]
    pushed = push_function(f.primal)
    bars = _by_position(f.primal, _pulled(pushed, [*args, *tangents], y_bar))
    return bars | {len(args): _call(pushed, [*args, *tangents])}


def _by_position(f: Function, bars: Expr) -> dict[int, Expr]:
    """The elements of a tuple of cotangents, by parameter of `f`."""
    return {position: c.field(bars, str(k)) for k, position in enumerate(differentiable(f))}


def push_function(f: Function) -> Function:
    """``push(f)``: (arguments of `f`, a tangent of each differentiable one) -> tangent of `f`.

    Raises:
        DerivativeError: SR0412 if `f` calls a function that has only a backward derivative.
    """
    _check(f, "SR0412")
    body = _PairBody()
    taken = {p.name for p in f.parameters}
    dots: list[Parameter] = []
    args: list[Expr] = []
    for p in f.parameters:
        primal = c.variable(p.name, p.type)
        if is_differentiable(p.type):
            dots.append(Parameter(name=made_name(f"{p.name}_dot", taken), type=p.type))
            taken.add(dots[-1].name)
            primal = body.pair(p.type, p.name, primal, c.variable(dots[-1].name, p.type))
        args.append(primal)
    both = nodes.ForwardDiff(type=Pair(f.result), function=f, args=tuple(args))
    name = made_name("result_pair")
    body.assign(name, both)
    body.give(body.derivative(f.result, c.variable(name, Pair(f.result))))
    return Function(name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=f.result,
                    body=tuple(body.statements), local_types=body.local_types,
                    span=f.span)  # fmt: skip


def pull_function(f: Function) -> PulledFunction:
    """``pull(f)``.

    Raises:
        DerivativeError: SR0411 if `f` calls a function that has only a forward derivative.
    """
    _check(f, "SR0411")
    body = _PairBody()
    args: list[Expr] = []
    for p in f.parameters:
        primal = c.variable(p.name, p.type)
        args.append(body.pair(p.type, p.name, primal) if is_differentiable(p.type) else primal)
    bar = Parameter(name=made_name("result_bar", [p.name for p in f.parameters]), type=f.result)
    cotangent = c.variable(bar.name, bar.type)
    if tangent(f.result) != f.result:
        pair = body.pair(f.result, "result", c.zero(f.result), cotangent)
        cotangent = nodes.PairPart(type=tangent(f.result), value=pair, part="d")
    body.statements.append(nodes.BackwardDiff(function=f, args=tuple(args), cotangent=cotangent))
    bars = [body.derivative(f.parameters[k].type, args[k]) for k in differentiable(f)]
    result = Tuple(tuple(arg_bar.type for arg_bar in bars))
    body.give(nodes.Construct(type=result, parts=tuple(bars)))
    return PulledFunction(
        name=f"{f.name}_pull", parameters=(*f.parameters, bar), result=result,
        body=tuple(body.statements), local_types=body.local_types, span=f.span, primal=f,
    )  # fmt: skip


class _PairBody:
    """Builds the body of a derivative function, whose derivatives have the types of primals.

    The derivative type of a value with ints or bools has no name in Slang here, so its floats are
    copied one by one into and out of the pair.
    """

    def __init__(self) -> None:
        self.statements: list[nodes.Stmt] = []
        self.local_types: dict[str, Type] = {}

    def assign(self, name: str, value: Expr) -> None:
        self.local_types[name] = value.type
        self.statements.append(nodes.Assign(name=name, value=value))

    def give(self, value: Expr) -> None:
        self.statements.append(nodes.Return(value=value))

    def pair(self, t: Type, name: str, primal: Expr, derivative: Expr | None = None) -> Expr:
        """A local pair of `primal` and `derivative`, which is zero by default."""
        name, is_plain = made_name(f"{name}_pair", self.local_types), tangent(t) == t
        start = derivative if derivative is not None and is_plain else c.zero(tangent(t))
        self.assign(name, nodes.MakePair(type=Pair(t), primal=primal, derivative=start))
        if derivative is not None and not is_plain:
            for path, value in _float_parts(derivative):
                self.statements.append(
                    nodes.Assign(name=name, path=(nodes.PartStep(), *path), value=value)
                )
        return c.variable(name, Pair(t))

    def derivative(self, t: Type, pair: Expr) -> Expr:
        """``.d`` of a pair, converted to the type `t` of its primal."""
        return c.with_zeros(t, nodes.PairPart(type=tangent(t), value=pair, part="d"))


def _float_parts(value: Expr) -> Iterator[tuple[tuple[nodes.Step, ...], Expr]]:
    """Path and value of the largest parts of `value` that hold floats only."""
    t = value.type
    if tangent(t) == t:
        yield (), value
    else:
        for step, part in c.parts(value):
            if is_differentiable(part.type):
                for path, inner in _float_parts(part):
                    yield (step, *path), inner


def _pulled(f: Function, args: Sequence[Expr], y_bar: Expr) -> Expr:
    return _call(pull_function(f), [*args, y_bar])


def _call(f: Function, args: Sequence[Expr]) -> Expr:
    return nodes.Call(type=f.result, function=f, args=tuple(args))


def _check(f: Function, code: str) -> None:
    for g in _called(f):
        has, lacks = (g.backward, g.forward) if code == "SR0412" else (g.forward, g.backward)
        if has is not None and lacks is None:
            raise error(code, g.span, function=g.name)


def _called(f: Function) -> Iterator[Function]:
    yield f
    if f.backward is None and f.forward is None:
        yield from reachable(f.body)
