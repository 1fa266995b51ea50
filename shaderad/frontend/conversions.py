"""Compile-time values -> typed IR, and the implicit conversions.

An int converts to float, a number of the program to the type of the other operand, and a scalar is
repeated over a vector or matrix. There are no other implicit conversions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from shaderad.diagnostics import Error, Span, error
from shaderad.ir import types
from shaderad.ir.nodes import Cast, Conditional, Const, Construct, Expr, Splat, Var
from shaderad.ir.pointers import without_targets
from shaderad.language.values import (
    CapturedStruct,
    NumberArgument,
    PythonNumber,
    Sequence,
    StructRef,
    Value,
    describe,
)

_FLOAT_FORM = {
    types.Kind.HALF: (11, 16),
    types.Kind.FLOAT: (24, 128),
    types.Kind.DOUBLE: (53, 1024),
}
"""Binary digits of the significand, and the exponent of the power of two above all numbers."""
_INT_RANGE = {types.Kind.INT: (-(2**31), 2**31 - 1), types.Kind.UINT: (0, 2**32 - 1)}


def natural_type(number: PythonNumber) -> types.Scalar:
    """The type of a number without another operand."""
    if isinstance(number.value, bool):
        return types.BOOL
    return types.INT if isinstance(number.value, int) else types.FLOAT


def constant(number: PythonNumber, scalar: types.Scalar, span: Span) -> Const:
    """The number as a constant of `scalar`.

    Raises:
        LanguageError: SR0306 where it does not fit, SR0303 where the kinds do not mix.
    """
    value, kind = number.value, scalar.kind
    if isinstance(value, bool) != (kind is types.Kind.BOOL):
        raise mismatch(number, scalar, span)
    if kind in types.INTEGER_KINDS:
        if isinstance(value, float):
            raise mismatch(number, scalar, span)
        low, high = _INT_RANGE[kind]
        if not low <= value <= high:
            raise error("SR0306", span, value=value, type=scalar, why=f"{low} ... {high}")
    elif kind in types.FLOAT_KINDS:
        value = _as_float(value, scalar, span)
    return Const(type=scalar, value=value, span=span)


def _number(number: PythonNumber, scalar: types.Scalar, span: Span) -> Expr:
    """The number as an expression of type `scalar`."""
    checked = constant(number, scalar, span)
    if isinstance(number, NumberArgument):
        return Var(type=scalar, name=number.name, span=span)
    return checked


def _as_float(value: float, scalar: types.Scalar, span: Span) -> float:
    digits, exponent = _FLOAT_FORM[scalar.kind]
    # Numbers from the limit on round to infinity.
    limit = 2**exponent - 2 ** (exponent - digits - 1)
    if isinstance(value, int):
        dropped = max(abs(value).bit_length() - digits, 0)
        if abs(value) >= limit or abs(value) >> dropped << dropped != abs(value):
            raise error("SR0306", span, value=value, type=scalar,
                        why=f"whole numbers to {2**digits} are exact")  # fmt: skip
    elif math.isfinite(value) and abs(value) >= limit:
        raise error("SR0306", span, value=value, type=scalar, why=f"numbers end at 2**{exponent}")
    return float(value)


def expr(value: Value, span: Span) -> Expr:
    """The value as IR, in its own type."""
    if isinstance(value, Expr):
        if isinstance(value.type, types.Void):
            raise error("SR0238", span, found="a call that returns nothing")
        return value
    if isinstance(value, PythonNumber):
        return _number(value, natural_type(value), span)
    if isinstance(value, Sequence):
        parts = tuple(expr(p, span) for p in value.parts)
        return Construct(type=types.Tuple(tuple(p.type for p in parts)), parts=parts, span=span)
    if isinstance(value, CapturedStruct):
        return value.constant(span)
    if isinstance(value, StructRef) and not value.type.holds_buffers and not value.part:
        return of_struct(value.type, tuple(expr(p, span) for _, p in value.parts), span)
    raise error("SR0238", span, found=describe(value))


def of_struct(t: types.Struct, parts: tuple[Expr, ...], span: Span) -> Construct:
    """A struct of `parts`; its type has the targets of their pointers."""
    fields = tuple((name, part.type) for (name, _), part in zip(t.fields, parts, strict=True))
    return Construct(type=types.Struct(t.name, fields), parts=parts, span=span)


COMPONENTS = (
    "select a component, such as `v.x`; `sad.stack([v.x, v.y], axis=-1)` makes the components of "
    "an array an axis"
)
"""The help where numbers are needed and vectors found."""


def mismatch(value: Value, wanted: types.Type, span: Span) -> Error:
    """SR0303 with the conversion to write."""
    t = value.type if isinstance(value, Expr) else None
    if isinstance(value, PythonNumber):
        t = natural_type(value)
    help_ = f"the two are different types; `{wanted}` is needed here"
    if isinstance(t, types.Vector) and isinstance(wanted, types.Scalar):
        help_ = COMPONENTS
    if t is not None and types.scalar_of(t) is not None and types.scalar_of(wanted) is not None:
        if isinstance(t, types.Scalar) or _shape(t) == _shape(wanted):
            help_ = f"convert it: `{wanted}(...)`"
        if t == types.BOOL:
            help_ = f"write `{wanted}(...)`, or a conditional expression"
        if isinstance(wanted, types.Scalar) and wanted == types.BOOL:
            help_ = "compare it: `... != 0`"
        if wanted == types.FLOAT and t == types.DOUBLE:
            help_ = (
                "convert it: `float(...)` rounds to 32 bits; or declare what takes it `sad.double`"
            )
    return error("SR0303", span, found=describe(value), wanted=wanted, help=help_)


def coerce(value: Value, wanted: types.Type, span: Span) -> Expr:
    """The value as `wanted`, by implicit conversions.

    Raises:
        LanguageError: SR0303 where none applies, SR0306 where a number does not fit.
    """
    if isinstance(value, PythonNumber):
        if isinstance(wanted, types.Scalar):
            return _number(value, wanted, span)
        raise mismatch(value, wanted, span)
    if isinstance(value, Sequence):
        if not isinstance(wanted, types.Tuple):
            raise mismatch(value, wanted, span)
        if len(wanted.elements) != len(value.parts):
            raise error("SR0318", span, found=len(value.parts), wanted=len(wanted.elements))
        pairs = zip(value.parts, wanted.elements, strict=True)
        return expr(Sequence(tuple(coerce(p, t, span) for p, t in pairs)), span)
    e = expr(value, span)
    if e.type == wanted or without_targets(e.type) == wanted:
        return e
    if isinstance(wanted, types.Scalar) and types.is_float(wanted):
        if e.type == types.INT:
            return cast(e, wanted)
        if is_choice(e):
            return _chosen(e, wanted)
    raise mismatch(value, wanted, span)


def unify(values: tuple[Value, ...], span: Span) -> tuple[Expr, ...] | None:
    """All values converted to one type; `None` where their types do not mix."""
    if not all(isinstance(v, Expr | PythonNumber) for v in values):
        return None
    scalar = _common_scalar(values)
    shape = _common_shape(values)
    if scalar is None or shape is None:
        return None
    out: list[Expr] = []
    for value in values:
        converted = _to_scalar(value, scalar, span)
        if converted is None:
            return None
        if isinstance(converted.type, types.Scalar) and not isinstance(shape, types.Scalar):
            t = types.with_scalar(shape, scalar)
            converted = Splat(type=t, value=converted, span=converted.span)
        out.append(converted)
    return tuple(out)


def double_help(values: Iterable[Value]) -> str:
    """The conversion to write where doubles meet other types; empty where no value is double."""
    scalars = {types.scalar_of(v.type) for v in values if isinstance(v, Expr)}
    if types.DOUBLE not in scalars or len(scalars) == 1:
        return ""
    return (
        "`double` mixes with numbers that stand beside it, and with no other type: write "
        "`sad.double(...)` of a value, and `sad.double(1e-5)` where a name first gets a number; of "
        "arrays `sad.cast(x, sad.double)`, or `sad.array(1e-5, sad.double)`"
    )


def cast(value: Expr, t: types.Type) -> Expr:
    """`value` converted to `t`."""
    return value if value.type == t else Cast(type=t, value=value, span=value.span)


def to_float(value: Value) -> Value:
    """Integers of any shape as float, for ``/`` and for functions of floats."""
    if isinstance(value, PythonNumber) and not isinstance(value.value, bool):
        return replace(value, value=float(value.value))
    if isinstance(value, Expr) and types.is_integer(value.type):
        return cast(value, types.with_scalar(value.type, types.FLOAT))
    return value


def is_choice(value: Value) -> bool:
    """True for ``0.1 if test else 0.2``, whose numbers take the type of the other operand."""
    sides = (value.if_true, value.if_false) if isinstance(value, Conditional) else ()
    is_float = isinstance(value, Conditional) and value.type == types.FLOAT
    return is_float and all(isinstance(s, Const) or is_choice(s) for s in sides)


def _chosen(e: Expr, scalar: types.Scalar) -> Expr:
    """A choice between numbers, in another type of floats."""
    if isinstance(e, Conditional):
        sides = (_chosen(side, scalar) for side in (e.if_true, e.if_false))
        if_true, if_false = sides
        return replace(e, type=scalar, if_true=if_true, if_false=if_false)
    assert isinstance(e, Const)
    return constant(PythonNumber(e.value), scalar, e.span)


def _common_scalar(values: tuple[Value, ...]) -> types.Scalar | None:
    typed = {types.scalar_of(v.type) for v in values if isinstance(v, Expr) and not is_choice(v)}
    weak = {natural_type(v) for v in values if isinstance(v, PythonNumber)}
    weak |= {types.FLOAT for v in values if is_choice(v)}
    if len(typed) == 2:
        typed.discard(types.INT)
    scalars = typed or (weak - {types.INT} if types.FLOAT in weak else weak)
    if len(scalars) != 1:
        return None
    (scalar,) = scalars
    return types.FLOAT if scalar == types.INT and types.FLOAT in weak else scalar


def _shape(t: types.Type) -> types.Type | None:
    """The type with float components, for comparing shapes."""
    return None if types.scalar_of(t) is None else types.with_scalar(t, types.FLOAT)


def _common_shape(values: tuple[Value, ...]) -> types.Type | None:
    shapes = {_shape(v.type) for v in values if isinstance(v, Expr)} - {types.FLOAT}
    if not shapes:
        return types.FLOAT
    return shapes.pop() if len(shapes) == 1 else None


def _to_scalar(value: Value, scalar: types.Scalar, span: Span) -> Expr | None:
    if isinstance(value, PythonNumber):
        is_mixed = isinstance(value.value, bool) != (scalar == types.BOOL)
        if is_mixed or (isinstance(value.value, float) and scalar.kind in types.INTEGER_KINDS):
            return None
        return _number(value, scalar, value.span if value.span.line else span)
    assert isinstance(value, Expr)
    if types.scalar_of(value.type) == scalar:
        return value
    if is_choice(value) and types.is_float(scalar):
        return _chosen(value, scalar)
    return cast(value, scalar) if value.type == types.INT and types.is_float(scalar) else None


def element_count(t: types.Type) -> int | None:
    """The number of values of `k` in ``t[k]``; `None` for types without elements."""
    if isinstance(t, types.Vector | types.LocalArray):
        return t.count
    return t.row_count if isinstance(t, types.Matrix) else None
