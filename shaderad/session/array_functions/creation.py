"""Arrays of nothing but a shape: `iota`, `full`, `zeros`."""

from __future__ import annotations

from typing import Any

from shaderad.ir import arrays
from shaderad.ir.sizes import Shape
from shaderad.ir.types import FLOAT, Type
from shaderad.rules.arrays import building as b
from shaderad.session.array_functions.elements import as_element, conform
from shaderad.session.array_functions.primitives import made, spread


def iota(shape: Shape) -> Any:
    """0, 1, .. along the last axis."""
    return made(b.iota(shape, len(shape) - 1), ())


def full(shape: Shape, value: Any, element: Type | None = None) -> Any:
    """`value` everywhere; a number takes `element`, or its own type."""
    one = as_element(value) if element is None else conform(value, element, "value")
    return made(spread(one, one.batch, (*shape, *one.extents)), one.batch)


def zeros(shape: Shape, element: Type = FLOAT) -> Any:
    return made(b.zeros(arrays.ArrayType(element, shape)), ())
