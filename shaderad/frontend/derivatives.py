"""``sad.fwd_diff(f)(...)``, ``sad.bwd_diff(f)(...)`` and ``sad.diff_pair`` inside kernels."""

from __future__ import annotations

import ast
from collections.abc import Collection

from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import coerce, expr, to_float
from shaderad.frontend.user_functions import Slot, flatten, note_buffers, slot_for, specialise
from shaderad.ir import nodes
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.prints import silent_function
from shaderad.ir.types import BufferType, Pair, Struct, Type, Void, is_differentiable, tangent
from shaderad.ir.walk import all_expressions, called, has_effect, statements
from shaderad.language.host import UserFunction
from shaderad.language.signatures import signature_of
from shaderad.language.values import Derivative, Host, describe


def derivative_of(body: BodyReader, is_forward: bool, node: ast.Call) -> Derivative:
    """``sad.fwd_diff(f)`` or ``sad.bwd_diff(f)``, before its call."""
    name = "fwd_diff" if is_forward else "bwd_diff"
    body.check_count(node, name, 1)
    value = body.value(node.args[0])
    if not isinstance(value, Host) or not isinstance(value.object, UserFunction):
        raise body.error("SR0235", node.args[0], name=name, found=describe(value))
    return Derivative(value.object, is_forward)


def make_pair(body: BodyReader, node: ast.Call) -> nodes.MakePair:
    """``sad.diff_pair(primal)`` or ``sad.diff_pair(primal, derivative)``."""
    body.check_count(node, "diff_pair", 1, 2)
    span = body.span(node)
    primal = expr(to_float(body.value(node.args[0])), span)
    if not is_differentiable(primal.type) or holds_pointers(primal.type):
        raise body.error("SR0312", node, name="diff_pair", found=describe(primal),
                         help="it takes a value that holds floats, and no pointers")  # fmt: skip
    derivative: nodes.Expr = nodes.Zero(type=tangent(primal.type), span=span)
    if len(node.args) == 2:
        derivative = _differential(body, node.args[1], primal.type)
    return nodes.MakePair(type=Pair(primal.type), primal=primal, derivative=derivative, span=span)


def _differential(body: BodyReader, node: ast.expr, primal: Type) -> nodes.Expr:
    """The argument that is the differential of a `primal`; a whole struct gives its floats."""
    value, wanted, span = body.value(node), tangent(primal), body.span(node)
    has_more = primal != wanted and isinstance(value, nodes.Expr) and value.type == primal
    if has_more and isinstance(value, nodes.Expr) and isinstance(wanted, Struct):
        is_plain = isinstance(value, nodes.Construct) and not has_effect(value)
        value = _floats_of(value if is_plain else body.once(value, "differential", node), wanted)
    return coerce(value, wanted, span)


def _floats_of(value: nodes.Expr, wanted: Struct) -> nodes.Expr:
    """The struct `value` reduced to the fields of its differential `wanted`."""
    assert isinstance(value.type, Struct)
    values = value.parts if isinstance(value, nodes.Construct) else None
    parts: list[nodes.Expr] = []
    for k, (name, t) in enumerate(value.type.fields):
        kept = wanted.type_by_field.get(name)
        if kept is None:
            continue
        part = values[k] if values else nodes.Field(type=t, value=value, name=name, span=value.span)
        if isinstance(kept, Struct) and kept != t:
            part = _floats_of(part, kept)
        parts.append(part)
    return nodes.Construct(type=wanted, parts=tuple(parts), span=value.span)


def call_forward(body: BodyReader, callee: Derivative, node: ast.Call) -> nodes.Expr:
    """``sad.fwd_diff(f)(x, ...)``: the result with its derivative.

    Raises:
        LanguageError: SR0237 for ``bwd_diff`` used as a value, SR0245 for an argument that is
            no pair.
    """
    if not callee.is_forward:
        raise body.error("SR0237", node)
    function, args = _function(body, callee, node, node.args)
    t = function.result
    if not is_differentiable(t):
        raise body.error("SR0312", node, name="fwd_diff", found=f"`{function.name}`",
                         help="its result holds no float, so it has no derivative")  # fmt: skip
    return nodes.ForwardDiff(type=Pair(t), function=function, args=args, span=body.span(node))


def call_backward(body: BodyReader, callee: Derivative, node: ast.Call) -> nodes.BackwardDiff:
    """``sad.bwd_diff(f)(x, ..., d_out)``, a statement."""
    count = len(signature_of(callee.function).parameters)
    function, args = _function(body, callee, node, node.args[:count])
    span = body.span(node)
    for arg, a in zip(args, node.args, strict=False):
        is_local = isinstance(arg, nodes.Var) and arg.name in body.scope.types
        if isinstance(arg.type, Pair) and not is_local:
            raise body.error("SR0245", a, name="bwd_diff", wanted=arg.type,
                             found="an expression")  # fmt: skip
    has_cotangent = not isinstance(function.result, Void) and is_differentiable(function.result)
    wanted = count + has_cotangent
    if len(node.args) != wanted:
        raise body.error("SR0231", node, name=f"bwd_diff({callee.function.shown_name})",
                         found=len(node.args), wanted=wanted)  # fmt: skip
    cotangent: nodes.Expr = nodes.Zero(type=function.result, span=span)
    if has_cotangent:
        cotangent = _differential(body, node.args[-1], function.result)
    return nodes.BackwardDiff(function=function, args=args, cotangent=cotangent, span=span)


def _function(
    body: BodyReader, callee: Derivative, node: ast.Call, arguments: list[ast.expr]
) -> tuple[nodes.Function, tuple[nodes.Expr, ...]]:
    """The specialised function, and its arguments, with pairs for differentiable values."""
    user = callee.function
    signature = signature_of(user)
    if node.keywords or len(arguments) != len(signature.parameters):
        raise body.error("SR0231", node, name=f"{callee.name}({user.shown_name})",
                         found=len(arguments), wanted=len(signature.parameters))  # fmt: skip
    args: list[nodes.Expr] = []
    slots: list[Slot] = []
    for (_, t), a in zip(signature.parameters, arguments, strict=True):
        value, span = body.value(a), body.span(a)
        if not is_differentiable(t) or _holds_arrays(t):
            slots.append(slot_for(t, value, span))
            args += flatten(slots[-1], value, span)
            continue
        if not isinstance(value, nodes.Expr) or value.type != Pair(t):
            raise body.error("SR0245", a, name=callee.name, wanted=Pair(t), found=describe(value))
        slots.append(slot_for(t, nodes.PairPart(type=t, value=value, part="p"), span))
        args.append(value)
    _refuse_recursion(body, user, (), node)
    function = specialise(body.unit, user, tuple(slots), body.span(node))
    reached = _differentiated(function, is_forward=callee.is_forward)
    _refuse_recursion(body, user, reached, node)
    note_buffers(body, function)
    return silent_function(function), tuple(args)


def _refuse_recursion(
    body: BodyReader, user: UserFunction, reached: Collection[nodes.Function], node: ast.Call
) -> None:
    """Raises SR0240 where the derivative that is being read differentiates its own function."""
    for function, primal in body.unit.deriving:
        if function is user or primal in reached:
            own = f"derivative of {function.shown_name}"
            via = "" if function is user else f"derivative of {user.shown_name} -> "
            raise body.error("SR0240", node, name=own, cycle=f"{own} -> {via}{own}")


def _differentiated(function: nodes.Function, *, is_forward: bool) -> list[nodes.Function]:
    """All functions that the derivative of `function` differentiates.

    A custom derivative replaces that of the body, so only its own ``fwd_diff`` and ``bwd_diff``
    count.
    """
    result: list[nodes.Function] = []
    pending = [function]
    while pending:
        caller = pending.pop()
        if caller in result:
            continue
        result.append(caller)
        own = caller.forward if is_forward else caller.backward
        if own is None:
            pending += called(caller.body)
        else:
            pending += [
                s.function for s in statements(own.body) if isinstance(s, nodes.BackwardDiff)
            ]
            pending += [
                e.function for e in all_expressions(own.body) if isinstance(e, nodes.ForwardDiff)
            ]
    return result


def _holds_arrays(t: Type) -> bool:
    return isinstance(t, BufferType) or (isinstance(t, Struct) and t.holds_buffers)
