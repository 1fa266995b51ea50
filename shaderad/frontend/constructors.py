"""``float3(...)``, ``int(x)``, ``Triangle(...)``, ``sad.LocalArray[T, 8]()``: values from parts."""

from __future__ import annotations

import ast
from types import MethodType

from shaderad.diagnostics import Error, Span, counted, error
from shaderad.frontend import math_functions
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import cast, coerce, constant, expr, of_struct
from shaderad.frontend.operators import typed_constant
from shaderad.ir import types
from shaderad.ir.nodes import Bitcast, Const, Construct, Expr, Splat, Zero
from shaderad.language.annotations import (
    Subscripted,
    TypeObject,
    resolve,
    value_type,
)
from shaderad.language.structs import StructInfo, info_of
from shaderad.language.values import Host, PythonNumber, Value, describe


def call(body: BodyReader, thing: object, node: ast.Call) -> Value | None:
    """The value that a call of a type makes; `None` if `thing` is no type of values."""
    if isinstance(thing, Subscripted):
        return _local_array(body, thing, node)
    if isinstance(thing, MethodType) and isinstance(thing.__self__, TypeObject):
        return _identity(body, thing.__self__.ir_type, node)
    info = info_of(thing) if isinstance(thing, type) else None
    if info is not None:
        return _struct(body, info, node)
    t = value_type(thing)
    if isinstance(t, types.Scalar):
        return _scalar(body, t, _positional(body, node), node)
    if isinstance(t, types.Vector | types.Matrix):
        return _composite(body, t, _positional(body, node), node)
    return None


def _positional(body: BodyReader, node: ast.Call) -> tuple[Value, ...]:
    for keyword in node.keywords:
        raise body.unknown_keyword(keyword)
    return tuple(body.value(a) for a in node.args)


def _scalar(body: BodyReader, t: types.Scalar, args: tuple[Value, ...], node: ast.Call) -> Value:
    span = body.span(node)
    (value,) = math_functions.exactly(t, args, 1, span)
    if isinstance(value, PythonNumber):
        return typed_constant(_number(value, t, span), t, span)
    if t == types.BOOL:
        return math_functions.to_kind("bool", value, t, span)
    if t == types.INT:
        whole = math_functions.to_kind("int", value, t, span)
        if whole.type != types.INT:
            raise _no_parts(body, t, args, node)
        return whole
    number = expr(value, span)
    if not isinstance(number.type, types.Scalar):
        raise _no_parts(body, t, args, node)
    return cast(number, t)


def _number(value: PythonNumber, t: types.Scalar, span: Span) -> PythonNumber:
    """A number of the program converted by Python's own ``int``, ``float`` or ``bool``."""
    python = {types.Kind.INT: int, types.Kind.UINT: int, types.Kind.BOOL: bool}.get(t.kind, float)
    try:
        return PythonNumber(python(value.value), span)
    except (ValueError, OverflowError) as failure:
        raise error("SR0306", span, value=value.value, type=t, why=str(failure)) from None


def _composite(
    body: BodyReader, t: types.Vector | types.Matrix, args: tuple[Value, ...], node: ast.Call
) -> Expr:
    """A vector or matrix: of one argument, or of parts."""
    whole = _converted(t, args[0], body, node) if len(args) == 1 else None
    if whole is not None:
        return whole
    parts = [_part(body, a, t.element, n) for a, n in zip(args, node.args, strict=True)]
    if not _fill(t, [p.type for p in parts]):
        raise _no_parts(body, t, args, node)
    return Construct(type=t, parts=tuple(parts), span=body.span(node))


def _fill(t: types.Vector | types.Matrix, parts: list[types.Type]) -> bool:
    """True if parts of these types make up a `t`."""
    if isinstance(t, types.Matrix):
        rows, scalars = [t.row] * t.row_count, [t.element] * (t.row_count * t.column_count)
        return parts in (rows, scalars)
    is_flat = all(isinstance(p, types.Scalar | types.Vector) for p in parts)
    return is_flat and t.count == sum(p.count if isinstance(p, types.Vector) else 1 for p in parts)


def _converted(
    t: types.Vector | types.Matrix, value: Value, body: BodyReader, node: ast.Call
) -> Expr | None:
    """``float3(x)``: a scalar for every component, or a value of this shape converted."""
    span = body.span(node)
    if isinstance(value, PythonNumber):
        return Splat(type=t, value=_part(body, value, t.element, node.args[0]), span=span)
    if not isinstance(value, Expr):
        return None
    if isinstance(value.type, types.Scalar):
        return Splat(type=t, value=cast(value, t.element), span=span)
    if types.scalar_of(value.type) is not None and types.with_scalar(value.type, t.element) == t:
        return cast(value, t)
    return None


def _part(body: BodyReader, value: Value, scalar: types.Scalar, node: ast.expr) -> Expr:
    """A part as scalars of type `scalar`: constructors convert."""
    span = body.span(node)
    if isinstance(value, PythonNumber):
        return constant(_number(value, scalar, span), scalar, span)
    part = expr(value, span)
    if types.scalar_of(part.type) is None:
        raise body.error("SR0313", node, type=scalar, found=describe(part), wanted="numbers")
    return cast(part, types.with_scalar(part.type, scalar))


def _identity(body: BodyReader, t: types.Type, node: ast.Call) -> Expr:
    """``float3x3.identity()``."""
    if not isinstance(t, types.Matrix) or t.row_count != t.column_count or node.args:
        raise body.error(
            "SR0310", node, type=t, name="identity", known="none: it is no square matrix"
        )
    parts = tuple(
        Const(type=t.element, value=1.0 if r == c else 0.0)
        for r in range(t.row_count)
        for c in range(t.column_count)
    )
    return Construct(type=t, parts=parts, span=body.span(node))


def _local_array(body: BodyReader, thing: Subscripted, node: ast.Call) -> Expr:
    t = resolve(thing, body.function.namespace(), body.span(node), body.unit.structs)
    if not isinstance(t, types.LocalArray) or node.args or node.keywords:
        raise body.error("SR0313", node, type=t, found=counted(len(node.args), "argument"),
                         wanted="none: it starts as zeros")  # fmt: skip
    return Zero(type=t, span=body.span(node))


def _struct(body: BodyReader, info: StructInfo, node: ast.Call) -> Expr:
    """``Triangle(v0, v1, v2)``, also by field name; fields with defaults may be left out.

    Raises:
        LanguageError: SR0313 for missing or unknown fields, SR0303 for their types.
    """
    t = info.ir_type
    body.unit.register({t: info.cls, **info.nested}, body.span(node))
    if t.holds_buffers:
        raise body.error("SR0313", node, type=t, found="a call",
                         wanted="a kernel parameter: it holds arrays")  # fmt: skip
    names = [n for n, _ in t.fields]

    def refusal(where: ast.expr, passed: str) -> Error:
        return body.error("SR0313", where, type=t, found=passed, wanted=", ".join(names))

    if len(node.args) > len(names):
        raise refusal(node, counted(len(node.args), "value"))
    node_by_name = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in names or keyword.arg in node_by_name:
            raise refusal(keyword.value, f"`{keyword.arg}=`")
        node_by_name[keyword.arg] = keyword.value
    parts: list[Expr] = []
    for name, field in t.fields:
        if name in node_by_name:
            parts.append(body.coerced(node_by_name[name], field))
        elif name in info.defaults and isinstance(
            default := body.unit.captures.attribute(info.cls, name), bool | int | float
        ):
            parts.append(coerce(PythonNumber(default), field, body.span(node)))
        else:
            raise refusal(node, f"no `{name}`")
    return of_struct(t, tuple(parts), body.span(node))


def call_bitcast(body: BodyReader, node: ast.Call) -> Expr:
    """``sad.bitcast(T, x)``: 32-bit scalars and vectors."""
    body.check_count(node, "bitcast", 2)
    target = body.value(node.args[0])
    value = expr(body.value(node.args[1]), body.span(node.args[1]))
    t = value_type(target.object) if isinstance(target, Host) else None
    if t is None or not _same_bits(t, value.type):
        raise body.error("SR0312", node, name="bitcast",
                         found=f"{describe(target)}, {describe(value)}",
                         help="it takes float, int or uint, or vectors, of one size")  # fmt: skip
    return Bitcast(type=t, value=value, span=body.span(node))


def _same_bits(a: types.Type, b: types.Type) -> bool:
    bits = (types.FLOAT, types.INT, types.UINT)
    are_words = all(
        isinstance(t, types.Scalar | types.Vector) and types.scalar_of(t) in bits for t in (a, b)
    )
    return are_words and types.byte_count(a) == types.byte_count(b)


def _no_parts(body: BodyReader, t: types.Type, args: tuple[Value, ...], node: ast.Call) -> Error:
    passed = ", ".join(map(describe, args)) or "nothing"
    if isinstance(t, types.Vector):
        wanted = f"{t.count} components, one for all, or vectors that add up to them"
    elif isinstance(t, types.Matrix):
        wanted = f"{t.row_count} rows `{t.row}`, or {t.row_count * t.column_count} numbers"
    else:
        wanted = "one number"
    return body.error("SR0313", node, type=t, found=passed, wanted=wanted)
