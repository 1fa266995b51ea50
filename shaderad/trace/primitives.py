"""Traced arrays of any broadcastable shapes -> nodes of array graphs.

Invariant: results follow NumPy's broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from shaderad.arrays.traced_sizes import TracedSize, shown_shape
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error, text_of
from shaderad.frontend import conversions
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.dags import in_order
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Scalar
from shaderad.language.values import NumberArgument, PythonNumber
from shaderad.language.values import Value as Operand
from shaderad.trace.traced import OPERAND, TracedArray, tracing

Number = bool | int | float


@dataclass(frozen=True, slots=True)
class OpenNumber:
    """A number among the operands that becomes an input, so that later calls can replace it.

    Two are equal if tracing cannot distinguish them.
    """

    position: int
    type: type
    is_zero: bool
    value: Number = field(compare=False)


@dataclass(frozen=True, slots=True)
class NumberInput:
    """A graph input that holds an `OpenNumber` converted to one type.

    Two are equal if one input serves both.
    """

    position: int
    type: Scalar
    value: Number = field(compare=False)


def traced(x: Any, name: str = OPERAND) -> TracedArray:
    """An array or array-like as an array of the current trace."""
    if isinstance(x, TracedSize):
        return size_array(x.size)
    return tracing().lifted(x, name)


def as_number(x: Any) -> Number | None:
    """`x` if it is a Python number; `None` for everything else."""
    plain = cast("object", x.item() if isinstance(x, np.generic) else x)
    return plain if isinstance(plain, bool | int | float) else None


def noted_number(number: Number) -> Number | OpenNumber:
    """A Python number as an operand; an `OpenNumber` if traces of the function differ in it."""
    if not isinstance(number, float):
        return number
    trace = tracing()
    group = trace.groups.get(len(trace.numbers))
    trace.numbers.append(number)
    return number if group is None else OpenNumber(group, float, number == 0.0, number)


def number_array(number: Number, t: Scalar) -> TracedArray:
    """A Python number as an array without axes."""
    operand, span = noted_number(number), user_span()
    constant = conversions.coerce(PythonNumber(number), t, span)
    if isinstance(operand, OpenNumber):
        return made(_number_input(operand, t))
    return made(b.full((), constant))


def size_array(size: Size) -> TracedArray:
    """A size as a 0-d int array."""
    return made(arrays.SizeOf(operands=(), size=size).result)


def made(value: Value) -> TracedArray:
    """An array of the current trace that holds `value`."""
    return TracedArray(tracing(), value)


# -- shapes -----------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all of `shapes` broadcast to.

    Raises:
        ShapeError: SR0379 if two sizes differ and neither is 1.
    """
    common: Shape = ()
    for shape in shapes:
        rank = max(len(common), len(shape))
        left, right = ((1,) * (rank - len(s)) + s for s in (common, shape))
        pairs = zip(left, right, strict=True)
        common = tuple(_common(p, q, common, shape) for p, q in pairs)
    return common


def _common(a: Size, b_: Size, left: Shape, right: Shape) -> Size:
    if a == 1 or b_ == 1:
        return b_ if a == 1 else a
    if not tracing().are_equal(a, b_):
        raise error("SR0379", user_span(), left=known_shape(left), right=known_shape(right))
    return b_ if isinstance(b_, int) else a


def repeats_to(shape: Shape, wanted: Shape) -> bool:
    """True if an array of `shape` broadcasts to `wanted`."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(p == 1 or tracing().are_equal(p, q) for p, q in pairs)


def known_shape(shape: Shape) -> str:
    """A shape for messages: its sizes, and their values in this call."""
    if all(isinstance(extent, int) for extent in shape):
        return shown_shape(shape)
    trace = tracing()
    numbers = shown_shape(tuple(sizes.evaluate(extent, trace.size_by_name) for extent in shape))
    return f"{shown_shape(shape)} = {numbers}" if trace.has_named_sizes else numbers


def spread(x: TracedArray, shape: Shape) -> Value:
    """`x` broadcast to a shape."""
    axes = range(len(shape) - len(x.extents), len(shape))
    # Sizes that are equal only in this call must become the same symbol: rules compare them.
    own = tuple(1 if p == 1 else shape[k] for p, k in zip(x.extents, axes, strict=True))
    return b.broadcast(b.reshape(x.value, own), shape, axes)


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ShapeError: SR0323, where there is none such.
    """
    number = as_number(axis)
    if type(number) is not int or not -rank <= number < rank:
        raise error("SR0323", user_span(), axis=text_of(axis), rank=rank)
    return number % rank


def only_axis(axis: Any, x: TracedArray, name: str) -> int:
    """An axis counted from the front; if `axis` is `None`, the only axis of `x`.

    Raises:
        ShapeError: SR0323 if there is no such axis; SR0833 if `x` has several axes and the call
            of the function `name` selects none.
    """
    rank = len(x.extents)
    if axis is None and rank > 1:
        raise error("SR0833", user_span(), name=name, shape=known_shape(x.extents))
    return axis_of(-1 if axis is None else axis, rank)


# -- by element -------------------------------------------------------------------------------


def elementwise(
    make: Callable[[Span, Sequence[Operand]], Operand],
    *operands: Any,
    has_known_numbers: bool = False,
) -> TracedArray:
    """Applies `make` to each element, by the rules of the kernel language.

    Args:
        make: Takes the span of the operation, and for each operand a typed expression, or a
            number if it is constant in the trace.
        operands: Arrays, data and numbers; at least one array.
        has_known_numbers: True if the result of `make` depends on the numbers, as powers do.
    """
    span = user_span()
    if not has_known_numbers:
        operands = tuple(map(_noted, operands))
    is_number = [isinstance(x, OpenNumber) or as_number(x) is not None for x in operands]
    operand_by_name = {f"x{k}": x if is_number[k] else traced(x) for k, x in enumerate(operands)}
    array_by_name = {name: x for name, x in operand_by_name.items() if isinstance(x, TracedArray)}
    arguments = [_operand(x, name, span) for name, x in operand_by_name.items()]
    expr = conversions.expr(make(span, arguments), span)
    array_by_name |= _open_numbers(expr, operand_by_name)
    shape = broadcast_shapes(*(x.extents for x in array_by_name.values()))
    value_by_name = {name: spread(x, shape) for name, x in array_by_name.items()}
    return made(b.elementwise(expr, value_by_name, shape))


def _noted(operand: Any) -> Any:
    number = None if isinstance(operand, OpenNumber) else as_number(operand)
    return operand if number is None else noted_number(number)


def _number_input(number: OpenNumber, t: Scalar) -> Value:
    number_input = NumberInput(number.position, t, number.value)
    return tracing().number_input(ArrayType(t, ()), number_input)


def _open_numbers(expr: nodes.Expr, operand_by_name: Mapping[str, Any]) -> dict[str, TracedArray]:
    """A graph input without axes for each `OpenNumber` among the operands."""
    type_by_name = {e.name: e.type for e in in_order(expr) if isinstance(e, nodes.Var)}
    array_by_name: dict[str, TracedArray] = {}
    for name, x in operand_by_name.items():
        t = type_by_name.get(name)
        if isinstance(x, OpenNumber) and isinstance(t, Scalar):
            array_by_name[name] = made(_number_input(x, t))
    return array_by_name


def _operand(x: Any, name: str, span: Span) -> Operand:
    if isinstance(x, TracedArray):
        return c.variable(name, x.element)
    if isinstance(x, OpenNumber):
        return NumberArgument(x.value, span, name)
    number = as_number(x)
    assert number is not None
    return PythonNumber(number, span)
