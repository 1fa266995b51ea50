"""Slots: the bindings of a function's parameters in one specialisation.

Values stay parameters; arrays and constants are compiled in. Invariant: calls with equal slots
share one specialised function.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.diagnostics import Span, error
from shaderad.frontend.constants import fitted
from shaderad.frontend.conversions import coerce
from shaderad.frontend.operators import as_number
from shaderad.frontend.scope import Scope
from shaderad.ir.nodes import Const, Expr, Parameter, Var
from shaderad.ir.pointers import holds_pointers, reaches_floats, without_targets
from shaderad.ir.types import (
    BufferType,
    Pair,
    Struct,
    Type,
    is_differentiable,
)
from shaderad.language.annotations import ConstType
from shaderad.language.values import ArrayRef, PythonNumber, StructRef, Value, describe


@dataclass(frozen=True)
class ValueSlot:
    """A parameter of the IR function."""

    type: Type


@dataclass(frozen=True)
class ConstSlot:
    """A ``sad.Const`` parameter; `text` distinguishes 1, 1.0 and True, and 0.0 from -0.0."""

    value: PythonNumber | Const
    text: str


@dataclass(frozen=True)
class ArraySlot:
    """An array parameter, bound to one array of the kernel."""

    array: ArrayRef


@dataclass(frozen=True)
class StructSlot:
    """A struct that holds arrays: one slot per field."""

    type: Struct
    fields: tuple[tuple[str, Slot], ...]
    part: str = ""


Slot = ValueSlot | ConstSlot | ArraySlot | StructSlot


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
        constant = fitted(number, wanted, span)
        return ConstSlot(constant, repr(constant.value))
    if isinstance(wanted, BufferType):
        if not isinstance(value, ArrayRef) or not _fits(value, wanted) or value.part == "d":
            raise _unfit(value, wanted, span)
        return ArraySlot(value)
    if isinstance(wanted, Struct) and wanted.holds_buffers:
        if not isinstance(value, StructRef) or value.type != wanted:
            raise _unfit(value, wanted, span)
        fields = tuple(
            (name, slot_for(t, dict(value.parts)[name], span)) for name, t in wanted.fields
        )
        return StructSlot(wanted, fields)
    if holds_pointers(wanted):
        # The targets of pointers are part of their types: the function is specialised for them.
        return ValueSlot(coerce(value, wanted, span).type)
    return ValueSlot(wanted)


def _fits(value: ArrayRef, wanted: BufferType) -> bool:
    return without_targets(value.type) == wanted


def _unfit(value: Value, wanted: Type, span: Span) -> Exception:
    found = f"`{value.type}`" if isinstance(value, ArrayRef) else describe(value)
    return error("SR0303", span, found=found, wanted=wanted,
                 help=f"pass a parameter that is annotated `{wanted}`")  # fmt: skip


def instantiate(slot: Slot, name: str, scope: Scope) -> tuple[Value, list[Parameter]]:
    """The value of parameter `name` in the body, and the IR parameters that carry it."""
    if isinstance(slot, ValueSlot):
        return Var(type=slot.type, name=name), [Parameter(name=name, type=slot.type)]
    if isinstance(slot, ConstSlot):
        return slot.value, []
    if isinstance(slot, ArraySlot):
        return slot.array, []
    parts: list[tuple[str, Value]] = []
    parameters: list[Parameter] = []
    for field_name, field_slot in slot.fields:
        value, own = instantiate(field_slot, scope.reserve(f"{name}_{field_name}"), scope)
        parts.append((field_name, value))
        parameters += own
    return StructRef(slot.type, tuple(parts), slot.part), parameters


def flatten(slot: Slot, value: Value, span: Span) -> list[Expr]:
    """The argument as values for the IR parameters of `instantiate`."""
    if isinstance(slot, ValueSlot):
        return [coerce(value, slot.type, span)]
    if isinstance(slot, StructSlot) and isinstance(value, StructRef):
        parts = dict(value.parts)
        return [e for name, inner in slot.fields for e in flatten(inner, parts[name], span)]
    return []


def paired(slot: Slot) -> Slot:
    """The slot of the same parameter in a derivative function."""
    if isinstance(slot, ValueSlot):
        return ValueSlot(Pair(slot.type)) if reaches_floats(slot.type) else slot
    if isinstance(slot, ArraySlot):
        array = slot.array
        is_pair = is_differentiable(array.type)
        return ArraySlot(ArrayRef(array.buffer, array.type, "pair")) if is_pair else slot
    if isinstance(slot, StructSlot) and reaches_floats(slot.type):
        return StructSlot(slot.type, tuple((n, paired(s)) for n, s in slot.fields), "pair")
    return slot
