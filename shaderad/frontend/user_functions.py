"""Calls of user functions; each set of arrays and constants has its own IR function.

A slot is the binding of one parameter in a specialisation: values stay parameters, arrays and
constants are compiled in. Invariant: calls with equal slots share one specialised function.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.diagnostics import Span, error
from shaderad.frontend.body import BodyReader, Scope, Unit
from shaderad.frontend.conversions import coerce
from shaderad.frontend.operators import as_number, typed_constant
from shaderad.ir.nodes import Call, Const, Expr, Function, Parameter, Var
from shaderad.ir.pointers import holds_pointers, pointers_in, reaches_floats, without_targets
from shaderad.ir.types import (
    VOID,
    Access,
    BufferType,
    Pair,
    ResourceType,
    Struct,
    TextureType,
    Type,
    Void,
    is_differentiable,
    tangent,
)
from shaderad.language.annotations import ConstType
from shaderad.language.host import DerivativeFunction, PythonFunction, UserFunction
from shaderad.language.signatures import Signature, signature_of
from shaderad.language.values import (
    ArrayRef,
    EnumMember,
    PythonNumber,
    ResourceRef,
    StructRef,
    Value,
    describe,
    known_number,
)

# -- slots ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConstSlot:
    """A ``sad.Const`` parameter; `text` distinguishes 1, 1.0 and True, and 0.0 from -0.0."""

    value: PythonNumber | Const
    text: str


@dataclass(frozen=True)
class StructSlot:
    """A struct that holds arrays: one slot per field."""

    type: Struct
    fields: tuple[tuple[str, Slot], ...]
    part: str = ""


@dataclass(frozen=True)
class ResourceSlot:
    """A texture or sampler; its number stays a parameter."""

    content: ArrayRef
    type: ResourceType


Slot = Type | ConstSlot | ArrayRef | ResourceSlot | StructSlot
"""The type of a parameter that stays one; else a constant, an array, or a struct of these."""


def constant_of(
    name: str, wanted: ConstType, values: Mapping[str, object], span: Span
) -> PythonNumber | Const:
    """The value of parameter `name` in a call with the constants `values`.

    Raises:
        LanguageError: SR0227 where it is missing or no number; SR0228, SR0303, SR0306 where it
            does not fit.
    """
    number = known_number(values[name], span) if name in values else None
    if number is None:
        argument = f"a `{type(values[name]).__name__}`" if name in values else "nothing"
        raise error("SR0227", span, name=name, type=wanted, found=argument)
    return _fitted(number, wanted, span)


def _fitted(number: PythonNumber, wanted: ConstType, span: Span) -> PythonNumber | Const:
    """`number` as a constant of the wanted type, or as a member of the wanted enum.

    Raises:
        LanguageError: SR0228 where it is no member, SR0303 and SR0306 where it does not fit.
    """
    enum = wanted.enum
    if enum is None:
        return typed_constant(number, wanted.value, span)
    try:
        if isinstance(number, EnumMember) and number.enum is not enum:
            raise ValueError
        member = enum(number.value)
    except ValueError:
        names = ", ".join(f"`{enum.__name__}.{m.name}`" for m in enum)
        raise error("SR0228", span, found=number.value, enum=enum.__name__, known=names) from None
    return EnumMember(member.value, span, enum)


def slot_for(wanted: Type, value: Value, span: Span) -> Slot:
    """The slot that an argument gives a parameter of type `wanted`.

    Raises:
        LanguageError: SR0303 where an array or a struct of arrays does not fit, SR0319 where a
            `sad.Const` parameter gets a value that is known only at run time.
    """
    if isinstance(wanted, ConstType):
        number = as_number(value)
        if number is None:
            raise error("SR0319", span, found=describe(value))
        constant = _fitted(number, wanted, span)
        return ConstSlot(constant, repr(constant.value))
    if isinstance(wanted, ResourceType):
        if not isinstance(value, ResourceRef) or value.type != wanted:
            raise _unfit(value, wanted, span)
        return ResourceSlot(value.content, wanted)
    if isinstance(wanted, BufferType):
        if not isinstance(value, ArrayRef) or value.part == "d" or (
            without_targets(value.type) != wanted
        ):  # fmt: skip
            raise _unfit(value, wanted, span)
        return value
    if isinstance(wanted, Struct) and wanted.holds_buffers:
        if not isinstance(value, StructRef) or value.type != wanted:
            raise _unfit(value, wanted, span)
        parts = dict(value.parts)
        return StructSlot(wanted, tuple((n, slot_for(t, parts[n], span)) for n, t in wanted.fields))
    if holds_pointers(wanted):
        # The targets of pointers are part of their types: the function is specialised for them.
        return coerce(value, wanted, span).type
    return wanted


def _unfit(value: Value, wanted: Type, span: Span) -> Exception:
    argument = f"`{value.type}`" if isinstance(value, ArrayRef | ResourceRef) else describe(value)
    return error("SR0303", span, found=argument, wanted=wanted,
                 help=f"pass a parameter that is annotated `{wanted}`")  # fmt: skip


def _instantiate(slot: Slot, name: str, scope: Scope) -> tuple[Value, list[Parameter]]:
    """The value of parameter `name` in the body, and the IR parameters that carry it."""
    if isinstance(slot, Type):
        return Var(type=slot, name=name), [Parameter(name=name, type=slot)]
    if isinstance(slot, ConstSlot):
        return slot.value, []
    if isinstance(slot, ArrayRef):
        return slot, []
    if isinstance(slot, ResourceSlot):
        number = Var(type=slot.type.number, name=scope.reserve(f"{name}_{slot.type.number_name}"))
        return ResourceRef(slot.content, number), [Parameter(name=number.name, type=number.type)]
    parts: list[tuple[str, Value]] = []
    parameters: list[Parameter] = []
    for field_name, field_slot in slot.fields:
        value, own = _instantiate(field_slot, scope.reserve(f"{name}_{field_name}"), scope)
        parts.append((field_name, value))
        parameters += own
    return StructRef(slot.type, tuple(parts), slot.part), parameters


def flatten(slot: Slot, value: Value, span: Span) -> list[Expr]:
    """The argument as values for the IR parameters of `_instantiate`."""
    if isinstance(slot, Type):
        return [coerce(value, slot, span)]
    if isinstance(value, ResourceRef):
        return [value.number]
    if isinstance(slot, StructSlot) and isinstance(value, StructRef):
        parts = dict(value.parts)
        return [e for name, inner in slot.fields for e in flatten(inner, parts[name], span)]
    return []


def _paired(slot: Slot) -> Slot:
    """The slot of the same parameter in a derivative function."""
    if isinstance(slot, Type):
        return Pair(slot) if reaches_floats(slot) else slot
    if isinstance(slot, ArrayRef):
        return ArrayRef(slot.buffer, slot.type, "pair") if is_differentiable(slot.type) else slot
    if isinstance(slot, StructSlot) and reaches_floats(slot.type):
        return StructSlot(slot.type, tuple((n, _paired(s)) for n, s in slot.fields), "pair")
    return slot


# -- calls ------------------------------------------------------------------------------------


def call(body: BodyReader, function: UserFunction, node: ast.Call, owner: Value | None) -> Expr:
    """A call of a user function, or of a method of `owner`.

    Raises:
        LanguageError: SR0231 for the wrong number of arguments, SR0233 for unknown keywords,
            SR0303 for their types.
    """
    signature = signature_of(function)
    slots: list[Slot] = []
    args: list[Expr] = []
    values = _bind(body, function, [n for n, _ in signature.parameters], node, owner)
    for (_, wanted), (value, span) in zip(signature.parameters, values, strict=True):
        slots.append(slot_for(wanted, value, span))
        args += flatten(slots[-1], value, span)
    callee = specialise(body.unit, function, tuple(slots), body.span(node))
    note_buffers(body, callee)
    return Call(type=callee.result, function=callee, args=tuple(args), span=body.span(node))


def note_buffers(body: BodyReader, function: Function) -> None:
    """Adds the buffers that `function` uses to those of its caller."""
    for name in function.buffers:
        body.buffers.setdefault(name, body.unit.arrays[name])


def _bind(
    body: BodyReader, function: UserFunction, names: list[str], node: ast.Call, owner: Value | None
) -> list[tuple[Value, Span]]:
    """The arguments in the order of the parameters `names`."""
    bound = {} if owner is None else {names[0]: (owner, body.span(node))}
    free = names[len(bound) :]
    for a in node.args:
        if isinstance(a, ast.Starred):
            raise body.error("SR0233", a, found="`*`")
    count = len(node.args) + len(node.keywords)
    if count != len(free):
        raise body.error("SR0231", node, name=function.shown_name, found=count, wanted=len(free))
    for name, a in zip(free, node.args, strict=False):
        bound[name] = (body.value(a), body.span(a))
    for keyword in node.keywords:
        if keyword.arg not in free or keyword.arg in bound:
            raise body.unknown_keyword(keyword)
        bound[keyword.arg] = (body.value(keyword.value), body.span(keyword.value))
    return [bound[n] for n in names]


def specialise(unit: Unit, function: UserFunction, slots: tuple[Slot, ...], span: Span) -> Function:
    """The IR function of one specialisation, with its custom derivatives."""
    key = (function, slots)
    if key in unit.functions:
        return unit.functions[key]
    if function in unit.in_progress:
        running = unit.in_progress[unit.in_progress.index(function) :]
        cycle = " -> ".join(f.shown_name for f in (*running, function))
        raise error("SR0240", span, name=function.shown_name, cycle=cycle)
    signature = signature_of(function)
    unit.register(signature.structs, span)
    unit.in_progress.append(function)
    try:
        specialised = _read(unit, function, signature, signature.result, slots)
    finally:
        unit.in_progress.pop()
    unit.functions[key] = specialised
    for name in ("backward", "forward"):
        derivative = unit.captures.attribute(function, name)
        if isinstance(derivative, DerivativeFunction):
            _attach(unit, specialised, derivative, signature, slots)
    return specialised


def _read(
    unit: Unit,
    function: PythonFunction,
    signature: Signature,
    result: Type | None,
    slots: tuple[Slot, ...],
) -> Function:
    """Reads a body with its parameters bound to `slots`."""
    body = BodyReader(unit, function)
    body.result = result
    scope = body.scope
    parameters: list[Parameter] = []
    for (name, _), slot in zip(signature.parameters, slots, strict=True):
        scope.parameters[name], own = _instantiate(slot, name, scope)
        parameters += own
    statements = body.read_body()
    result = body.result or VOID
    if scope.assigned is not None and not isinstance(result, Void):
        raise error("SR0219", function.def_span, name=function.shown_name, type=result)
    return Function(
        name=function.name,
        parameters=tuple(parameters),
        result=result,
        body=statements,
        local_types=dict(scope.types),
        buffers=tuple(body.buffers),
        span=function.def_span,
    )


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
    for name, t in signature.parameters:
        _check_arrays(derivative, name, t)
    _check_signature(derivative, own, signature, primal)
    pair_slots = tuple(_paired(s) for s in slots)
    result: Type = VOID
    if derivative.is_forward:
        result = Pair(primal.result) if is_differentiable(primal.result) else primal.result
    elif not isinstance(primal.result, Void):
        cotangent = tangent(primal.result) if is_differentiable(primal.result) else primal.result
        pair_slots = (*pair_slots, cotangent)
    unit.deriving.append((derivative.primal, primal))
    try:
        custom = _read(unit, derivative, own, result, pair_slots)
    finally:
        unit.deriving.pop()
    if derivative.is_forward:
        object.__setattr__(primal, "forward", custom)
    else:
        object.__setattr__(primal, "backward", custom)
        object.__setattr__(primal, "is_checked", derivative.check)


def _check_arrays(derivative: DerivativeFunction, name: str, t: Type) -> None:
    """Refuses custom derivatives of functions whose arrays they cannot handle."""
    if isinstance(t, Struct):
        for field, inner in t.fields:
            _check_arrays(derivative, f"{name}.{field}", inner)
    if isinstance(t, TextureType):
        raise error("SR0251", derivative.def_span, texture=name, type=t,
                    primal=derivative.primal.shown_name)  # fmt: skip
    is_array = isinstance(t, BufferType) and is_differentiable(t)
    is_written = isinstance(t, BufferType) and is_array and t.access is not Access.IN
    has_targets = any(reaches_floats(p) for _, p in pointers_in(t, (name,)))
    if is_written or (derivative.is_forward and (is_array or has_targets)):
        code = "SR0248" if is_written else "SR0249"
        raise error(code, derivative.def_span, array=name, type=t,
                    primal=derivative.primal.shown_name)  # fmt: skip


def _check_signature(
    derivative: DerivativeFunction, own: Signature, signature: Signature, primal: Function
) -> None:
    accepted: list[tuple[Type, ...]] = [
        (Pair(t) if reaches_floats(t) else t,) for _, t in signature.parameters
    ]
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
