"""Arrays of nothing but a shape: `iota`, `full`, `zeros`."""

from __future__ import annotations

from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.arrays.dtypes import element_type
from shaderad.arrays.traced_sizes import shape_of
from shaderad.functions.array_function import array_function
from shaderad.functions.elements import as_element
from shaderad.ir.arrays import ArrayType
from shaderad.rules.arrays import building as b
from shaderad.trace.primitives import made, spread

__all__ = ["full", "iota", "zeros"]


@array_function
def iota(n: Any) -> Array:
    """0, 1, .., n - 1.

    Args:
        n: A number or a size; of a shape, the position along the last axis.

    Returns:
        Ints, which carry no derivative.

    Raises:
        ShapeError: SR0370 for what is no whole number, SR0371 for a negative one.
    """
    shape = shape_of(n, "n")
    return made(b.iota(shape, len(shape) - 1), ())


@array_function
def full(shape: Any, value: Any) -> Array:
    """One value everywhere.

    Args:
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        value: A number, a vector like ``float3(0, 0, 1)``, a struct, or an array of one element. An
            array with axes is repeated: they follow those of `shape`.

    Raises:
        ShapeError: SR0370 and SR0371 for what is no extent.

    Differentiable in `value`: its cotangent is the sum of the result's.
    """
    one = as_element(value)
    return made(spread(one, one.batch, (*shape_of(shape), *one.extents)), one.batch)


@array_function
def zeros(shape: Any, dtype: Any = float) -> Array:
    """Zeros of an element type.

    Args:
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        dtype: ``float``, ``int``, ``bool``, a type of `sad`, a NumPy dtype or a struct class.

    Returns:
        Elements that carry no derivative; zeros of structs are zeros in every field.

    Raises:
        ShapeError: SR0358 for what is no element type, SR0370 and SR0371 for what is no extent.
    """
    return made(b.zeros(ArrayType(element_type(dtype), shape_of(shape))), ())
