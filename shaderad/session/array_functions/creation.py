"""Arrays of nothing but a shape: `iota`, `full`, `zeros`."""

from __future__ import annotations

from typing import Any

from shaderad.ir.arrays import ArrayType
from shaderad.rules.arrays import building as b
from shaderad.session.array_functions.array_function import array_function
from shaderad.session.array_functions.elements import as_element
from shaderad.session.array_functions.primitives import made, spread
from shaderad.session.arrays import Array
from shaderad.session.dtypes import element_type
from shaderad.session.traced_sizes import shape_of

__all__ = ["full", "iota", "zeros"]


@array_function
def iota(n: Any) -> Array:
    """0, 1, .., n - 1."""
    shape = shape_of(n, "n")
    return made(b.iota(shape, len(shape) - 1), ())


@array_function
def full(shape: Any, value: Any) -> Array:
    """`value` everywhere: a number, a vector like ``float3(0, 0, 1)``, an array of one element."""
    one = as_element(value)
    return made(spread(one, one.batch, (*shape_of(shape), *one.extents)), one.batch)


@array_function
def zeros(shape: Any, dtype: Any = float) -> Array:
    """Zeros of an element type."""
    return made(b.zeros(ArrayType(element_type(dtype), shape_of(shape))), ())
