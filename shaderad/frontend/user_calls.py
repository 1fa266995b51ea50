"""Calls of user functions; each set of arrays and constants has its own IR function."""

from __future__ import annotations

import ast

from shaderad.diagnostics import Span, error
from shaderad.frontend.body import BodyReader, Unit
from shaderad.frontend.scope import Scope
from shaderad.frontend.slots import Slot, ValueSlot, flatten, instantiate, paired, slot_for
from shaderad.ir.nodes import Call, Expr, Function, Parameter, Stmt
from shaderad.ir.pointers import pointers_in, reaches_floats, without_targets
from shaderad.ir.types import (
    VOID,
    Access,
    BufferType,
    Pair,
    Struct,
    Type,
    Void,
    is_differentiable,
    tangent,
)
from shaderad.language.host import DerivativeFunction, PythonFunction, UserFunction
from shaderad.language.signatures import Signature, signature_of
from shaderad.language.values import Value


def call(body: BodyReader, function: object, node: ast.Call, owner: Value | None) -> Expr:
    """A call of a user function, or of a method of `owner`.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0233 for unknown keywords,
            SR0303 for their types.
    """
    assert isinstance(function, UserFunction)
    signature = signature_of(function)
    slots: list[Slot] = []
    args: list[Expr] = []
    values = _bind(body, function, signature, node, owner)
    for (_, wanted), (value, span) in zip(signature.parameters, values, strict=True):
        slots.append(slot_for(wanted, value, span))
        args += flatten(slots[-1], value, span)
    callee = body.unit.readers.specialise(body.unit, function, tuple(slots), body.span(node))
    note_buffers(body, callee)
    return Call(type=callee.result, function=callee, args=tuple(args), span=body.span(node))


def note_buffers(body: BodyReader, function: Function) -> None:
    """Adds the buffers that `function` uses to those of its caller."""
    for name in function.buffers:
        body.buffers.setdefault(name, body.unit.arrays[name])


def _bind(
    body: BodyReader,
    function: UserFunction,
    signature: Signature,
    node: ast.Call,
    owner: Value | None,
) -> list[tuple[Value, Span]]:
    """The arguments in the order of the parameters."""
    names = [n for n, _ in signature.parameters]
    argument_by_name: dict[str, tuple[Value, Span]] = {}
    free = list(names)
    if owner is not None:
        argument_by_name[free.pop(0)] = (owner, body.span(node))
    for a in node.args:
        if isinstance(a, ast.Starred):
            raise body.error("SR0233", a, found="`*`")
    if len(node.args) + len(node.keywords) != len(free):
        raise body.error("SR0231", node, name=function.shown_name,
                         found=len(node.args) + len(node.keywords), wanted=len(free))  # fmt: skip
    for name, a in zip(free, node.args, strict=False):
        argument_by_name[name] = (body.value(a), body.span(a))
    for keyword in node.keywords:
        if keyword.arg not in free or keyword.arg in argument_by_name:
            raise body.error("SR0233", keyword.value, found=f"`{keyword.arg or '**'}=`")
        argument_by_name[keyword.arg] = (body.value(keyword.value), body.span(keyword.value))
    return [argument_by_name[n] for n in names]


def specialise(unit: Unit, function: UserFunction, slots: tuple[Slot, ...], span: Span) -> Function:
    """The IR function of one specialisation, with its custom derivatives.

    Raises:
        LanguageError: SR0240 for recursion.
    """
    key = (function, slots)
    if key in unit.functions:
        return unit.functions[key]
    if function in unit.in_progress:
        running = unit.in_progress[unit.in_progress.index(function) :]
        cycle = [f.shown_name for f in running]
        raise error("SR0240", span, name=function.shown_name,
                    cycle=" -> ".join([*cycle, function.shown_name]))  # fmt: skip
    signature = signature_of(function)
    unit.register(signature.structs, span)
    unit.in_progress.append(function)
    try:
        specialised = read_function(unit, function, signature.result, slots, function.name)
    finally:
        unit.in_progress.pop()
    unit.functions[key] = specialised
    for derivative in (function.backward, function.forward):
        if derivative is not None:
            _attach(unit, specialised, derivative, signature, slots)
    return specialised


def read_function(
    unit: Unit, function: PythonFunction, result: Type | None, slots: tuple[Slot, ...], name: str
) -> Function:
    """Reads a body with its parameters bound to `slots`.

    Raises:
        LanguageError: SR0219 where a path ends without a result.
    """
    signature = signature_of(function)
    scope = Scope(function.names, {})
    parameters: list[Parameter] = []
    for (parameter, _), slot in zip(signature.parameters, slots, strict=True):
        scope.parameters[parameter], own = instantiate(slot, parameter, scope)
        parameters += own
    body = BodyReader(unit, function, scope)
    body.result = result
    statements = read_statements(body, function)
    result = body.result if body.result is not None else VOID
    if scope.assigned is not None and not isinstance(result, Void):
        raise error("SR0219", function.def_span, name=function.shown_name, type=result)
    return Function(
        name=name,
        parameters=tuple(parameters),
        result=result,
        body=statements,
        local_types=dict(scope.types),
        buffers=tuple(body.buffers),
        span=function.def_span,
    )


def read_statements(body: BodyReader, function: PythonFunction) -> tuple[Stmt, ...]:
    """The body's statements; rebound parameters become locals first."""
    body.start_rebound()
    body.unit.readers.block(body, function.tree.body)
    return body.finish()


def _attach(
    unit: Unit,
    primal: Function,
    derivative: DerivativeFunction,
    signature: Signature,
    slots: tuple[Slot, ...],
) -> None:
    """Reads a custom derivative and sets it on the frozen primal, which it may call."""
    own = signature_of(derivative)
    unit.register(own.structs, derivative.source.span)
    _check_signature(derivative, own, signature, primal)
    for name, t in signature.parameters:
        _check_arrays(derivative, name, t)
    pair_slots = tuple(paired(s) for s in slots)
    result: Type = VOID
    if derivative.is_forward:
        result = Pair(primal.result) if is_differentiable(primal.result) else primal.result
    elif not isinstance(primal.result, Void):
        cotangent = tangent(primal.result) if is_differentiable(primal.result) else primal.result
        pair_slots = (*pair_slots, ValueSlot(cotangent))
    unit.deriving.append((derivative.primal, primal))
    try:
        custom = read_function(unit, derivative, result, pair_slots, derivative.name)
    finally:
        unit.deriving.pop()
    if derivative.is_forward:
        object.__setattr__(primal, "forward", custom)
        return
    object.__setattr__(primal, "backward", custom)
    object.__setattr__(primal, "is_checked", derivative.check)


def _check_arrays(derivative: DerivativeFunction, name: str, t: Type) -> None:
    """Refuses derivatives of functions with arrays that no derivative can handle.

    Raises:
        LanguageError: SR0248 for a float array that is written, SR0249 for one that is read
            where the derivative is a forward one.
    """
    if isinstance(t, Struct):
        for field, inner in t.fields:
            _check_arrays(derivative, f"{name}.{field}", inner)
    if derivative.is_forward and any(reaches_floats(p) for _, p in pointers_in(t, (name,))):
        raise error("SR0249", derivative.def_span, array=name, type=t,
                    primal=derivative.primal.shown_name)  # fmt: skip
    if not isinstance(t, BufferType) or not is_differentiable(t):
        return
    is_read = t.access is Access.IN
    if derivative.is_forward or not is_read:
        raise error("SR0249" if is_read else "SR0248", derivative.def_span, array=name, type=t,
                    primal=derivative.primal.shown_name)  # fmt: skip


def _check_signature(
    derivative: DerivativeFunction, own: Signature, signature: Signature, primal: Function
) -> None:
    wanted: list[Type] = [Pair(t) if reaches_floats(t) else t for _, t in signature.parameters]
    accepted: list[tuple[Type, ...]] = [(t,) for t in wanted]
    if not derivative.is_forward and not isinstance(primal.result, Void):
        result = without_targets(primal.result)
        accepted.append((result, tangent(result)))
    types = [t for _, t in own.parameters]
    fits = len(types) == len(accepted) and all(
        t in options for t, options in zip(types, accepted, strict=True)
    )
    if not fits:
        names = [n for n, _ in signature.parameters]
        shown = [f"{n}: {o[0]}" for n, o in zip([*names, "d_out"], accepted, strict=False)]
        raise error("SR0234", derivative.def_span, name=derivative.name,
                    primal=derivative.primal.shown_name,
                    found=", ".join(f"{n}: {t}" for n, t in own.parameters),
                    wanted=", ".join(shown))  # fmt: skip
