"""Python's syntax on arrays -> array functions: what `ArrayOperators` declares and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.calls.run_operator import run_elementwise, run_operator
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.foreign_names import remedy_for_attribute
from shaderad.functions import layout, linalg, reductions
from shaderad.functions.elements import cast
from shaderad.functions.kernel_names import intrinsic
from shaderad.functions.subscripts import sliced
from shaderad.ir import ops
from shaderad.ir.types import Matrix, Type
from shaderad.language.annotations import TypeObject
from shaderad.language.host import UserFunction
from shaderad.trace import elements
from shaderad.trace.primitives import known_shape, traced


def unary(op: str, x: Array) -> Array:
    return run_operator(elements.unary, op, x)


def binary(op: str, left: Any, right: Any) -> Any:
    """``left op right``; `NotImplemented` if arrays do not support an operand."""
    if not linalg.is_operand(left) or not linalg.is_operand(right):
        return NotImplemented
    # A power with a whole exponent becomes a product, so its graph depends on the number.
    is_open = op not in (ops.POW.name, ops.MATMUL.name)
    return (run_elementwise if is_open else run_operator)(linalg.operated, op, left, right)


def constructed(wanted: TypeObject, parts: tuple[Any, ...]) -> Array:
    return run_operator(elements.constructed, wanted, parts)


def composed(parts: Any, wanted: Type, name: str) -> Array:
    return run_operator(elements.conform, parts, wanted, name)


def subscripted(x: Array, key: Any) -> Array:
    part = _part(x, key) if isinstance(key, str) else None
    return sliced(x, key) if part is None else part


def attribute(x: Array, name: str) -> Array:
    """Field or components `name` of every element.

    Raises:
        LanguageError: SR0290 if elements have no such part; for a method of another library, it
            names the equivalent function.
    """
    part = _part(x, name)
    if part is not None:
        return part
    from shaderad.functions import public

    remedy = remedy_for_attribute(name, {*ops.PUBLIC, *vars(public)})
    raise error("SR0290", user_span(), element=x.element, name=name, remedy=remedy)


def method(name: str, x: Array, *args: Any, **keywords: Any) -> Array:
    """``x.name(*args, **keywords)``, for a method of NumPy's arrays."""
    return _METHODS[name](x, *args, **keywords)


def called(function: UserFunction, *operands: Any) -> Any:
    """``function(*operands)``, for a ``@sad.function`` of one element."""
    from shaderad.functions.mapping import map as map_over

    return map_over(function, *operands)


def _extreme(op: ops.Op) -> Callable[..., Array]:
    def over_axes(x: Array, axis: Any, **keywords: Any) -> Array:
        return intrinsic(op, (x,), {"axis": axis, **keywords})

    return over_axes


@array_function
def _axes_reversed(x: Array) -> Array:
    operand = traced(x)
    if isinstance(operand.element, Matrix) and len(operand.extents) < 2:
        raise error("SR0835", user_span(), element=x.element, shape=known_shape(operand.extents))
    return layout.transpose(operand)


def _reshaped(x: Array, *shape: Any) -> Array:
    return layout.reshape(x, shape[0] if len(shape) == 1 else shape)


_METHODS: dict[str, Callable[..., Array]] = {
    "T": _axes_reversed,
    "sum": reductions.sum,
    "mean": reductions.mean,
    "max": _extreme(ops.MAX),
    "min": _extreme(ops.MIN),
    "reshape": _reshaped,
    "astype": cast,
}


def _part(x: Array, name: str) -> Array | None:
    """The field or components `name` of every element; `None` if there is no such part."""
    return run_operator(elements.selected, x, name) if elements.has_part(x.element, name) else None
