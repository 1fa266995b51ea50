"""Elementwise operations on traced arrays: arithmetic, `sad.*` maths, comparison, conversion.

The front end of the kernel language applies its rules: an int beside a float becomes a float, a
Python number takes the type of the other operand, and a scalar fills a vector.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from shaderad.arrays.arrays import Array, vector_of
from shaderad.arrays.containers import struct_fields
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, counted, error
from shaderad.frontend import attributes, conversions, math_functions, operators
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import NO_SPAN, Expr
from shaderad.ir.sizes import Shape
from shaderad.ir.types import (
    DOUBLE,
    FLOAT,
    FLOAT_KINDS,
    HALF,
    INT,
    Scalar,
    Struct,
    Type,
    Vector,
    scalar_of,
    with_scalar,
)
from shaderad.language.annotations import HostVector, TypeObject
from shaderad.language.structs import StructInfo, info_of
from shaderad.language.values import PythonNumber, constants_of
from shaderad.language.values import Value as Operand
from shaderad.runtime.buffers import base_of, element_axes
from shaderad.trace.components import composed, packed
from shaderad.trace.primitives import (
    as_number,
    elementwise,
    known_shape,
    made,
    number_array,
    repeats_to,
    traced,
)
from shaderad.trace.traced import OPERAND, TracedArray, tracing

_ARITHMETIC: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "subtract": ast.Sub,
    "mul": ast.Mult,
    "divide": ast.Div,
    "floor_divide": ast.FloorDiv,
    "mod": ast.Mod,
    "pow": ast.Pow,
    "bit_and": ast.BitAnd,
    "bit_or": ast.BitOr,
    "bit_xor": ast.BitXor,
    "shift_left": ast.LShift,
    "shift_right": ast.RShift,
    "matmul": ast.MatMult,
}
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq,
    "not_equal": ast.NotEq,
    "less": ast.Lt,
    "less_equal": ast.LtE,
    "greater": ast.Gt,
    "greater_equal": ast.GtE,
}
_UNARY: dict[str, type[ast.unaryop]] = {
    "negate": ast.USub,
    "positive": ast.UAdd,
    "bit_not": ast.Invert,
}


def binary(name: str, left: Any, right: Any) -> TracedArray:
    """``left op right``, for Python's operator with this name in ``ir/ops.py``."""
    if name in _COMPARISONS:
        comparison = _COMPARISONS[name]()
        return by_element(
            lambda span, of: operators.compare(comparison, of[0], of[1], span), left, right
        )
    symbol = _ARITHMETIC[name]()
    return by_element(
        lambda span, of: operators.binary(symbol, of[0], of[1], span), left, right,
        has_known_numbers=isinstance(symbol, ast.Pow),
    )  # fmt: skip


def unary(name: str, x: Any) -> TracedArray:
    """``op x``, for Python's operator with this name."""
    if name not in _UNARY:
        return primitive(ops.TABLE[name], x)
    symbol = _UNARY[name]()
    return elementwise(lambda span, of: operators.unary(symbol, of[0], span), x)


def by_element(
    make: Callable[[Span, Sequence[Operand]], Operand],
    *operands: Any,
    has_known_numbers: bool = False,
) -> TracedArray:
    """Like `elementwise`, but takes a host vector or matrix as one element."""
    lifted = (x if vector_of(x) is None else as_element(x) for x in operands)
    return elementwise(make, *lifted, has_known_numbers=has_known_numbers)


def primitive(op: ops.Op, *operands: Any) -> TracedArray:
    """``sad.<op>`` of every element."""
    return by_element(
        lambda span, of: math_functions.primitive(op, tuple(of), span), *operands,
        has_known_numbers=op == ops.POW,
    )  # fmt: skip


def cast_to(x: Any, wanted: Type) -> TracedArray:
    """Every element converted to this type."""
    return elementwise(
        lambda span, of: converted_to(conversions.expr(of[0], span), wanted, span), x
    )


def converted_to(value: Expr, wanted: Type, span: Span) -> Expr:
    """One element converted to this type.

    Raises:
        LanguageError: SR0303 if it does not convert.
    """
    if value.type == wanted:
        return value
    scalar, held = scalar_of(wanted), scalar_of(value.type)
    if scalar is None or held is None:
        raise conversions.mismatch(value, wanted, span)
    if with_scalar(value.type, scalar) == wanted:
        return nodes.Cast(type=wanted, value=value, span=span)
    if value.type == held:  # a scalar for every component
        return nodes.Splat(type=wanted, value=converted_to(value, scalar, span), span=span)
    raise conversions.mismatch(value, wanted, span)


def as_floats(x: TracedArray) -> TracedArray:
    """`x`, with floats in place of ints and bools."""
    scalar = scalar_of(x.element)
    is_float = scalar is None or scalar.kind in FLOAT_KINDS
    return x if is_float else cast_to(x, with_scalar(x.element, FLOAT))


def in_floats(compute: Callable[[TracedArray], TracedArray], x: Any) -> TracedArray:
    """``compute(x)`` in floats. Halves are computed in float and rounded once."""
    operand = as_floats(as_element(x))
    element = operand.element
    if scalar_of(element) != HALF:
        return compute(operand)
    return cast_to(compute(cast_to(operand, with_scalar(element, FLOAT))), element)


def detach(x: Any) -> TracedArray:
    """`x`, through which no derivative flows."""

    def make(span: Span, of: Sequence[Operand]) -> Expr:
        value = conversions.expr(of[0], span)
        return nodes.Detach(type=value.type, value=value, span=span)

    return elementwise(make, x)


def has_part(element: Type, name: str) -> bool:
    """True if elements of this type have a field or components `name`."""
    return _selection(c.variable("x", element), name) is not None


def selected(array: Array, name: str) -> TracedArray:
    """The field or components `name` of every element, which must exist."""
    x = traced(array)
    part = _selection(c.variable("x", x.element), name, user_span())
    assert part is not None
    return made(b.elementwise(part, {"x": x.value}, x.value.shape))


def _selection(element: Expr, name: str, span: Span = NO_SPAN) -> Expr | None:
    t = element.type
    if isinstance(t, Struct) and name in t.type_by_field:
        return nodes.Field(type=t.type_by_field[name], value=element, name=name, span=span)
    return attributes.swizzle(element, name, span) if isinstance(t, Vector) else None


# -- elements from arrays of parts ------------------------------------------------------------


def constructed(t: TypeObject, parts: tuple[Any, ...]) -> TracedArray:
    """``float3(x, y, z)`` of arrays."""
    wanted = t.ir_type
    return elementwise(lambda span, of: _of_parts(wanted, of, span), *parts)


def _of_parts(t: Type, operands: Sequence[Operand], span: Span) -> Expr:
    scalar = scalar_of(t)
    assert scalar is not None
    parts = [conversions.expr(operand, span) for operand in operands]
    if len(parts) == 1:
        return converted_to(parts[0], t, span)
    converted: list[Expr] = []
    for part in parts:
        if scalar_of(part.type) is None:
            raise error("SR0313", span, type=t, found=f"`{part.type}`", wanted="numbers")
        converted.append(converted_to(part, with_scalar(part.type, scalar), span))
    component_count, wanted = sum(_scalar_count(part.type) for part in converted), _scalar_count(t)
    if component_count != wanted:
        raise error("SR0313", span, type=t, found=counted(component_count, "number", "numbers"),
                    wanted=counted(wanted, "number", "numbers"))  # fmt: skip
    return nodes.Construct(type=t, parts=tuple(converted), span=span)


def _scalar_count(t: Type) -> int:
    return prod(element_axes(t))


def struct_of(info: StructInfo, fields: dict[str, Any]) -> TracedArray:
    """An array of structs, from one array or number per field."""
    return struct_of_fields(info.ir_type, fields)


def struct_of_fields(t: Struct, fields: Mapping[str, Any]) -> TracedArray:
    """An array of structs of this type, from one array or number per field."""

    def make(span: Span, of: Sequence[Operand]) -> Expr:
        parts = tuple(conversions.expr(operand, span) for operand in of)
        return nodes.Construct(type=t, parts=parts, span=span)

    return elementwise(make, *(conform(fields[name], field, name) for name, field in t.fields))


# -- values in a wanted type ------------------------------------------------------------------


def as_array(x: Any, name: str = OPERAND) -> TracedArray:
    """Any value as an array of the trace; numbers and structs of numbers have no axes."""
    number = as_number(x)
    if number is not None:
        return number_array(number, conversions.natural_type(PythonNumber(number)))
    info = None if isinstance(x, type) else info_of(x)
    if info is not None:
        return struct_of(info, {field: getattr(x, field) for field in info.annotations})
    return traced(x, name)


def as_element(x: Any) -> TracedArray:
    """Like `as_array`, but takes a host vector or matrix as one element."""
    vector = vector_of(x)
    if isinstance(x, HostVector) and vector is not None and tracing().holds_vectors:
        return made(b.full((), constants_of(x, vector, user_span())))
    components = as_array(x)
    return components if vector is None else packed(cast_to(components, base_of(vector)), vector)


def conform(x: Any, element: Type, name: str) -> TracedArray:
    """`x` with elements of this type: int becomes float, and trailing axes become a vector.

    Raises:
        ShapeError: SR0330 if the elements do not convert.
    """
    number = as_number(x)
    if number is not None and isinstance(element, Scalar):
        return number_array(number, element)
    fields = None if isinstance(x, Array) else struct_fields(x)
    if isinstance(element, Struct) and fields and set(fields) == set(element.type_by_field):
        return struct_of_fields(element, fields)
    whole = _of_components(x, element, name)
    if whole is not None:
        return whole
    elements = as_array([*typing.cast("tuple[Any, ...]", x)] if isinstance(x, tuple) else x)
    if elements.element == element or isinstance(element, Struct):
        pass
    elif elements.element in (INT, base_of(element)) and scalar_of(element) in (
        *(FLOAT, HALF, DOUBLE),
        elements.element,
    ):
        elements = packed(cast_to(elements, base_of(element)), element)
    elif isinstance(elements.element, Scalar) and number is not None:
        elements = cast_to(elements, element)
    if elements.element != element:
        raise error("SR0330", user_span(), name=name, found=elements.element, wanted=element)
    return elements


def _of_components(x: Any, element: Type, name: str) -> TracedArray | None:
    """A vector or matrix, or its components, as an array; `None` for anything else."""
    if vector_of(x) == element:
        return as_element(x)
    parts, scalar = _parts(x), scalar_of(element)
    is_whole = scalar not in (None, element) and len(parts) == _scalar_count(element)
    has_ints = is_whole and any(type(as_number(part)) is int for part in parts)
    if not has_ints and not any(isinstance(part, Array) for part in parts):
        return None
    if scalar is None or not is_whole:
        raise error("SR0330", user_span(), name=name, found="a tuple", wanted=element)
    return composed(element, [conform(part, scalar, name) for part in parts])


def start_of(init: Any, element: Type, shape: Shape) -> TracedArray:
    """The initial value of a reduction, scan or histogram: one element, or one for each of `shape`.

    Raises:
        ShapeError: SR0330 for elements of another type, SR0349 for another shape.
    """
    start = conform(init, element, "init")
    surplus = max(len(start.extents) - len(shape), 0)
    if all(extent == 1 for extent in start.extents[:surplus]):
        start = made(b.reshape(start.value, start.extents[surplus:]))
    if not repeats_to(start.extents, shape):
        raise error("SR0349", user_span(), found=known_shape(start.extents),
                    wanted=known_shape(shape))  # fmt: skip
    return start


def _parts(x: Any) -> list[Any]:
    """The entries of a tuple or list, at any depth; nothing for anything else."""
    if not isinstance(x, tuple | list):
        return []
    items = typing.cast("Sequence[Any]", x)
    return [part for item in items for part in (_parts(item) or [item])]
