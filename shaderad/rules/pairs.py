"""Pairs of a primal and its derivative, in functions that call ``fwd_diff`` and ``bwd_diff``.

Calls in array expressions are differentiated by such functions. With ``y = f(x)`` and J its
Jacobian at x,
    push(f)(x, x_dot) = J x_dot                   by fwd_diff(f)
    pull(f)(x, y_bar) = J^T y_bar                 by bwd_diff(f)
The second order needs no derivative of `bwd_diff`, because J is the same matrix in both:
    tangent of J^T y_bar along x_dot            = d/dx <y_bar, J x_dot>  = pull(push(f)) by x
    cotangent of x in <z, J^T y_bar>            = d/dx <y_bar, J z>      = pull(push(f)) by x
The results are ordinary functions, so the same rules give their derivatives, and NumPy can run
them. `Transforms` lowers their pairs, and those that users write, to tuples of a primal and its
derivative. Both have the type of the primal, so no derivative types are needed; parts without a
derivative are 0 in the second element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shaderad.diagnostics import error
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Parameter, Stmt
from shaderad.ir.types import (
    FloatElements,
    FloatFields,
    LocalArray,
    Pair,
    Struct,
    Tuple,
    Type,
    is_differentiable,
    tangent,
)
from shaderad.ir.walk import all_expressions, made_name, reachable

PRIMAL, DERIVATIVE = "0", "1"
"""Element names of a lowered pair."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PulledFunction(Function):
    """``pull(f)``: (arguments of `primal`, cotangent of its result) -> tuple of cotangents."""

    primal: Function


def differentiable(function: Function) -> list[int]:
    """Positions of the differentiable parameters."""
    return [k for k, p in enumerate(function.parameters) if is_differentiable(p.type)]


def push_call(e: nodes.Call, args_dot: Sequence[Expr]) -> Expr:
    """The tangent of a call, given a tangent for each differentiable argument."""
    f = e.function
    if not isinstance(f, PulledFunction):
        return _call(push_function(f), [*e.args, *args_dot])
    *args, y_bar = e.args
    *tangents, y_bar_dot = args_dot
    by_x = _call(pull_function(push_function(f.primal)), [*args, *tangents, y_bar])
    by_y_bar = _call(f, [*args, y_bar_dot])
    names = [str(k) for k in range(len(tangents))]
    return c.construct(e.type, [c.added(c.field(by_x, n), c.field(by_y_bar, n)) for n in names])


def pull_call(e: nodes.Call, bar: Expr) -> dict[int, Expr]:
    """The cotangents of a call's arguments, by position."""
    f = e.function
    if not isinstance(f, PulledFunction):
        bars = _call(pull_function(f), [*e.args, bar])
        return {position: c.field(bars, str(k)) for k, position in enumerate(differentiable(f))}
    *args, y_bar = e.args
    positions = differentiable(f.primal)
    args_z = [*args, *(c.field(bar, str(k)) for k in range(len(positions)))]
    pushed = push_function(f.primal)
    bars = _call(pull_function(pushed), [*args_z, y_bar])
    bar_by_position = {position: c.field(bars, str(k)) for k, position in enumerate(positions)}
    return bar_by_position | {len(args): _call(pushed, args_z)}


def push_function(f: Function) -> Function:
    """``push(f)``: (arguments of `f`, a tangent of each differentiable one) -> tangent of `f`.

    Raises:
        DerivativeError: SR0412 if `f` calls a function that has only a backward derivative.
    """
    _check_derivatives(f, "SR0412")
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
    result = nodes.Return(value=_derivative(f.result, c.variable(name, Pair(f.result))))
    return Function(name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=f.result,
                    body=(*body.statements, result), local_types=body.local_types,
                    span=f.span)  # fmt: skip


def pull_function(f: Function) -> PulledFunction:
    """``pull(f)``.

    Raises:
        DerivativeError: SR0411 if `f` calls a function that has only a forward derivative.
    """
    _check_derivatives(f, "SR0411")
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
    bars = tuple(_derivative(f.parameters[k].type, args[k]) for k in differentiable(f))
    result = Tuple(tuple(arg_bar.type for arg_bar in bars))
    end = nodes.Return(value=nodes.Construct(type=result, parts=bars))
    return PulledFunction(
        name=f"{f.name}_pull", parameters=(*f.parameters, bar), result=result,
        body=(*body.statements, end), local_types=body.local_types, span=f.span, primal=f,
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


def _derivative(t: Type, pair: Expr) -> Expr:
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


def _call(f: Function, args: Sequence[Expr]) -> Expr:
    return nodes.Call(type=f.result, function=f, args=tuple(args))


def _check_derivatives(f: Function, code: str) -> None:
    has_own = f.backward is not None or f.forward is not None
    for g in (f,) if has_own else (f, *reachable(f.body)):
        has, lacks = (g.backward, g.forward) if code == "SR0412" else (g.forward, g.backward)
        if has is not None and lacks is None:
            raise error(code, g.span, function=g.name)


# -- pairs as tuples -----------------------------------------------------------------------------


def plain_type(t: Type) -> Type:
    """`t` with tuples for pairs, and primal types for derivative types."""
    if isinstance(t, Pair):
        whole = plain_type(t.primal)
        # A primal without floats holds pointers only: see ir/pointers.py.
        return Tuple((whole, whole)) if is_differentiable(t.primal) else whole
    if isinstance(t, FloatFields | FloatElements):
        return plain_type(t.whole)
    if isinstance(t, LocalArray):
        return LocalArray(plain_type(t.element), t.count)
    if isinstance(t, Tuple):
        return Tuple(tuple(map(plain_type, t.elements)))
    return t


def holds_pairs(body: tuple[Stmt, ...]) -> bool:
    """True if a body constructs or reads pairs, or calls ``fwd_diff``."""
    kinds = nodes.ForwardDiff | nodes.MakePair | nodes.PairPart
    return any(isinstance(e, kinds) for e in all_expressions(body))


def plain(e: Expr, written: Expr) -> Expr:
    """`e` without pairs; its operands are lowered already, those of `written` are not."""
    if isinstance(e, nodes.MakePair):
        return nodes.Construct(type=plain_type(e.type), parts=(e.primal, e.derivative), span=e.span)
    if isinstance(e, nodes.PairPart):
        if isinstance(written, nodes.PairPart) and not _holds_floats(written.value.type):
            return e.value
        return c.field(e.value, PRIMAL if e.part == "p" else DERIVATIVE)
    if isinstance(e, nodes.Construct) and isinstance(written.type, FloatFields):
        return _whole(e, written.type)
    if isinstance(e, nodes.Field) and isinstance(written, nodes.Field):
        name = _whole_name(written)
        whole = e.value.type
        assert isinstance(whole, Struct | Tuple)
        return replace(e, type=dict(c.named_parts(whole))[name], name=name)
    if isinstance(e, nodes.Element) and isinstance(e.value.type, LocalArray):
        return replace(e, type=e.value.type.element)
    t = plain_type(e.type)
    return e if t == e.type else replace(e, type=t)


def _holds_floats(t: Type) -> bool:
    return isinstance(t, Pair) and is_differentiable(t.primal)


def _whole(e: nodes.Construct, t: FloatFields) -> Expr:
    """A derivative of type `t`, converted to the primal type; fields without one are zero."""
    part_by_field = dict(zip(t.type_by_field, e.parts, strict=True))
    whole = plain_type(t)
    assert isinstance(whole, Struct)
    parts = tuple(part_by_field.get(n, nodes.Zero(type=f)) for n, f in whole.fields)
    return nodes.Construct(type=whole, parts=parts, span=e.span)


def _whole_name(e: nodes.Field) -> str:
    """The name of a field in the primal type; derivatives of tuples number their elements anew."""
    if not isinstance(e.value.type, FloatElements):
        return e.name
    parts = c.named_parts(e.value.type.whole)
    return [name for name, t in parts if is_differentiable(t)][int(e.name)]


def plain_path(path: tuple[nodes.Step, ...]) -> tuple[nodes.Step, ...]:
    """The path of an assignment, without `PartStep`."""
    return tuple(
        nodes.FieldStep(name=DERIVATIVE) if isinstance(step, nodes.PartStep) else step
        for step in path
    )
