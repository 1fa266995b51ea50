"""Vector and matrix elements <-> their components, as trailing axes or as separate arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from shaderad.frontend import conversions
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.types import Matrix, Type, Vector
from shaderad.runtime.buffers import element_axes
from shaderad.trace.primitives import elementwise, made, repeats_to
from shaderad.trace.traced import TracedArray


def packed(x: TracedArray, element: Type) -> TracedArray:
    """`x` with trailing axes of scalars as vectors or matrices; `x` itself if they do not fit."""
    axes = element_axes(element)
    rank = len(x.extents) - len(axes)
    if rank < 0 or not repeats_to(axes, x.extents[rank:]):
        return x
    parts = [_scalar_of_axes(x, rank, index) for index in product(*map(range, axes))]
    return composed(element, parts)


def composed(element: Type, parts: Sequence[TracedArray]) -> TracedArray:
    """An array of vectors or matrices, from one array for each component."""
    return elementwise(
        lambda span, of: c.of_components(
            element, [conversions.expr(component, span) for component in of]
        ),
        *parts,
    )


def _scalar_of_axes(x: TracedArray, rank: int, index: tuple[int, ...]) -> TracedArray:
    """The scalar at `index` of the axes from `rank` on."""
    value = x.value
    for offset, position in enumerate(index):
        value = b.piece(value, rank + offset, position, 1)
    return made(b.reshape(value, x.extents[:rank]))


def spelled_out(x: TracedArray) -> TracedArray:
    """Vectors and matrices as trailing axes of scalars."""
    axes = element_axes(x.element)
    if not axes:
        return x
    shape = x.value.shape
    parts = [_component(x, index).value for index in product(*map(range, axes))]
    whole = b.concatenate([b.reshape(part, (*shape, 1)) for part in parts], len(shape))
    return made(b.reshape(whole, (*shape, *axes)))


def _component(x: TracedArray, index: tuple[int, ...]) -> TracedArray:
    def make(_: Any, of: Sequence[Any]) -> nodes.Expr:
        value: nodes.Expr = of[0]
        for k in index:
            inner = value.type
            assert isinstance(inner, Vector | Matrix)
            t = inner.row if isinstance(inner, Matrix) else inner.element
            value = nodes.Element(type=t, value=value, index=c.whole(k))
        return value

    return elementwise(make, x)
