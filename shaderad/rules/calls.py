"""Derivatives of calls: functions that call ``fwd_diff`` and ``bwd_diff`` of a user's function.

With ``y = f(x)`` and J its Jacobian at x,
    push(f)(x, x_dot) = J x_dot                   by fwd_diff(f)
    pull(f)(x, y_bar) = J^T y_bar                 by bwd_diff(f)
and the second order, which needs no derivative of `bwd_diff`, because J is one matrix in both:
    J^T y_bar moved along x_dot                 = d/dx <y_bar, J x_dot>  = pull(push(f)) by x
    the cotangent of x in <z, J^T y_bar>        = d/dx <y_bar, J z>      = pull(push(f)) by x
What comes out are functions like any other, whose derivatives are made alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import LocalArray, Pair, Struct, Tuple, Type, is_differentiable, tangent
from shaderad.ir.walk import reachable
from shaderad.rules import composing as c
from shaderad.rules.local_arrays import added, with_zeros


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull(Function):
    """``pull(f)``: takes the arguments of `primal` and its cotangent; gives theirs, as a tuple."""

    primal: Function


def differentiable(function: Function) -> list[int]:
    """Positions of the parameters that have derivatives."""
    return [k for k, p in enumerate(function.parameters) if is_differentiable(p.type)]


def push(e: nodes.Call, args_dot: Sequence[Expr]) -> Expr:
    """The tangent of a call, given a tangent for each differentiable argument."""
    f = e.function
    if not isinstance(f, Pull):
        return _call(push_function(f), [*e.args, *args_dot])
    *args, y_bar = e.args
    *tangents, y_bar_dot = args_dot
    moved = _pulled(push_function(f.primal), [*args, *tangents], y_bar)
    linear = _call(f, [*args, y_bar_dot])
    names = [str(k) for k in range(len(tangents))]
    return c.construct(e.type, [added(c.field(moved, n), c.field(linear, n)) for n in names])


def pull(e: nodes.Call, y_bar: Expr) -> dict[int, Expr]:
    """The cotangents of a call's arguments, by position."""
    f = e.function
    if isinstance(f, Pull):
        return _pull_of_pull(f, e, y_bar)
    found = _pulled(f, e.args, y_bar)
    return {position: c.field(found, str(k)) for k, position in enumerate(differentiable(f))}


def _pull_of_pull(f: Pull, e: nodes.Call, z: Expr) -> dict[int, Expr]:
    *args, y_bar = e.args
    wanted = differentiable(f.primal)
    tangents = [c.field(z, str(k)) for k in range(len(wanted))]
    pushed = push_function(f.primal)
    by_x = _pulled(pushed, [*args, *tangents], y_bar)
    found = {position: c.field(by_x, str(k)) for k, position in enumerate(wanted)}
    return found | {len(args): _call(pushed, [*args, *tangents])}


def push_function(f: Function) -> Function:
    """``push(f)``: takes the arguments of `f`, then a tangent each; gives that of its result.

    Raises:
        DerivativeError: SR0412 where `f` calls a function that has only a backward derivative.
    """
    _check(f, "SR0412")
    body = _Body()
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


def pull_function(f: Function) -> Pull:
    """``pull(f)``.

    Raises:
        DerivativeError: SR0411 where `f` calls a function that has only a forward derivative.
    """
    _check(f, "SR0411")
    body = _Body()
    args: list[Expr] = []
    for p in f.parameters:
        primal = c.variable(p.name, p.type)
        args.append(body.pair(p.type, p.name, primal) if is_differentiable(p.type) else primal)
    bar = Parameter(name=made_name("result_bar", [p.name for p in f.parameters]), type=f.result)
    given = c.variable(bar.name, bar.type)
    if tangent(f.result) != f.result:
        held = body.pair(f.result, "result", c.zero(f.result), given)
        given = nodes.PairPart(type=tangent(f.result), value=held, part="d")
    body.statements.append(nodes.BackwardDiff(function=f, args=tuple(args), cotangent=given))
    found = [body.derivative(f.parameters[k].type, args[k]) for k in differentiable(f)]
    result = Tuple(tuple(one.type for one in found))
    body.give(nodes.Construct(type=result, parts=tuple(found)))
    return Pull(name=f"{f.name}_pull", parameters=(*f.parameters, bar), result=result,
                body=tuple(body.statements), local_types=body.local_types, span=f.span,
                primal=f)  # fmt: skip


class _Body:
    """Statements of a derivative function, whose arguments and results have their primals' types.

    What holds more than floats has no type of its own for its derivative that Slang could name
    here: its floats move one by one into and out of the pair.
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
        """A local pair of `primal` and `derivative`, zero where none is given."""
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
        """``.d`` of a pair, in its primal's type."""
        return with_zeros(t, nodes.PairPart(type=tangent(t), value=pair, part="d"))


def _float_parts(value: Expr) -> Iterator[tuple[tuple[nodes.Step, ...], Expr]]:
    """The parts of a value that are their own tangents, and where they are."""
    t = value.type
    if tangent(t) == t:
        yield (), value
    elif isinstance(t, LocalArray):
        for k in range(t.count):
            for path, part in _float_parts(c.element(value, c.whole(k))):
                yield (nodes.ElementStep(index=c.whole(k)), *path), part
    else:
        assert isinstance(t, Struct)
        for n, inner in t.fields:
            if is_differentiable(inner):
                for path, part in _float_parts(c.field(value, n)):
                    yield (nodes.FieldStep(name=n), *path), part


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
