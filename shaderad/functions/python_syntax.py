"""Python's syntax on arrays -> array functions: what `ArrayOperators` declares and calls."""

from __future__ import annotations

from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.foreign_names import remedy_for_attribute
from shaderad.functions import elements, linalg
from shaderad.functions.run_operator import run_elementwise, run_operator
from shaderad.functions.subscripts import sliced
from shaderad.ir import ops
from shaderad.ir.types import Type
from shaderad.language.annotations import TypeObject


def unary(op: str, x: Array) -> Array:
    return run_operator(elements.unary, op, x)


def binary(op: str, left: Any, right: Any) -> Any:
    """``left op right``; `NotImplemented` where arrays have no such operator with an operand."""
    if not linalg.is_operand(left) or not linalg.is_operand(right):
        return NotImplemented
    # A power by a whole number is a product: its graph depends on the number.
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
        LanguageError: SR0290, where elements have no such part, with the function that stands for
            a method of other libraries.
    """
    part = _part(x, name)
    if part is not None:
        return part
    from shaderad.functions import public

    remedy = remedy_for_attribute(name, {*ops.PUBLIC, *vars(public)})
    raise error("SR0290", user_span(), element=x.element, name=name, remedy=remedy)


def _part(x: Array, name: str) -> Array | None:
    """Field or components `name` of every element; `None` where elements have no such part."""
    return run_operator(elements.selected, x, name) if elements.has_part(x.element, name) else None
