"""`sad.map`: a function of one element, for every element of arrays of one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from shaderad.arrays import trees
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.frontend import conversions
from shaderad.functions.array_function import array_function
from shaderad.functions.elements import as_array, conform
from shaderad.functions.operators import value_function
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr
from shaderad.ir.types import Matrix, Tuple, Vector, Void
from shaderad.language.host import UserFunction
from shaderad.language.values import Value as Operand
from shaderad.rules import composing as c
from shaderad.trace.primitives import (
    broadcast_shapes,
    elementwise,
    made,
    spread,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["map"]


@array_function
def map(function: Callable[..., Any], *arrays: Any) -> Any:  # noqa: A001 - the public name
    """``function`` of each element.

    ``result[i] = function(x[i], y[i], ...)`` for arrays x, y, ... that broadcast to one shape.

    Args:
        function: A ``@sad.function``, or any Python function. It is called once, on arrays that
            show one element, and may use everything that it captures.
        arrays: One for each parameter.

    Returns:
        An array, or one for each leaf of the tuples, lists and dicts that the function gives.

    Raises:
        LanguageError: SR0231 for another number of parameters, SR0331 for a parameter that is no
            value, SR0332 for a function without a result, SR0343 for operations that a mapped
            function cannot contain.
        ShapeError: SR0379, where the shapes do not broadcast.

    Differentiable in the arrays and in what a Python function captures.
    """
    if isinstance(function, UserFunction):
        return _called(function, arrays)
    return _traced_through(function, arrays)


# -- functions of the kernel language ---------------------------------------------------------


def _called(function: UserFunction, operands: tuple[Any, ...]) -> Any:
    read = value_function(function)
    if len(operands) != len(read.parameters):
        raise error("SR0231", user_span(), name=function.shown_name, found=len(operands),
                    wanted=len(read.parameters))  # fmt: skip
    if isinstance(read.result, Void):
        raise error("SR0332", user_span(), name=function.shown_name, found="nothing")

    def call(span: Span, values: Sequence[Operand]) -> nodes.Call:
        args = [conversions.coerce(value, p.type, span)
                for value, p in zip(values, read.parameters, strict=True)]  # fmt: skip
        return nodes.Call(type=read.result, function=read, args=tuple(args), span=span)

    def field_of(part: str, span: Span, values: Sequence[Operand]) -> Expr:
        return c.field(call(span, values), part)

    arrays_ = [_operand(x, p) for x, p in zip(operands, read.parameters, strict=True)]
    if not isinstance(read.result, Tuple):
        return elementwise(call, *arrays_)
    return tuple(
        elementwise(partial(field_of, str(k)), *arrays_) for k in range(len(read.result.elements))
    )


def _operand(x: Any, parameter: nodes.Parameter) -> TracedArray:
    """An operand as an array. A vector or matrix parameter also takes the components of one."""
    if isinstance(parameter.type, Vector | Matrix):
        return conform(x, parameter.type, parameter.name)
    return as_array(x, parameter.name)


# -- functions of Python ----------------------------------------------------------------------


def _traced_through(function: Any, operands: tuple[Any, ...]) -> Any:
    """Calls the function once, on arrays of one element each whose axes are all in the batch."""
    arrays_ = [as_array(x) for x in operands]
    trace = tracing()
    outer = trace.batch
    shape = broadcast_shapes(*(x.extents for x in arrays_))
    batch = (*outer, *shape)
    elements = [made(spread(x, outer, shape), batch) for x in arrays_]
    trace.batch = batch
    try:
        result = fitting_call(function, *elements)
    finally:
        trace.batch = outer

    def collected(leaf: Any) -> TracedArray:
        if leaf is None:
            raise error("SR0332", user_span(), name="the mapped function", found="`None`")
        array = as_array(leaf)
        return made(spread(array, batch, array.extents), outer)

    return trees.mapped(collected, result)
