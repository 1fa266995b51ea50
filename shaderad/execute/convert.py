"""Arrays of one form -> another: the sums and casts that cotangents need, run on the device.

A tape records none of the launches: they run while a pullback does.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from shaderad.arrays.arrays import Array, Shape
from shaderad.arrays.tape import recorded_view
from shaderad.device.stages import KernelFacts
from shaderad.execute.conversion_kernels import RESULT, cast_kernel, sum_kernel
from shaderad.execute.kernel_forms import call_graph
from shaderad.execute.runner import evaluate
from shaderad.execute.schedule import launch_sizes
from shaderad.ir import types
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.ir import nodes
    from shaderad.ir.arrays import Graph


def in_form_of(value: Array, like: Array) -> Array:
    """`value` with the element type and shape of `like`, of which it is a cotangent or tangent."""
    return in_form(value, like.element, like.shape)


def in_form(value: Array, element: types.Type, shape: Shape) -> Array:
    """`value` as `shape` elements; floats are converted, bytes that already fit are shared."""
    if value.element == element and value.shape == shape:
        return value
    if _storage(value.element) == _storage(element):
        return value.viewed(element, shape)
    return _run(cast_kernel(value.element, element), [_flat(value)]).viewed(element, shape)


def summed(left: Array, right: Array) -> Array:
    """The sum of two arrays of one form."""
    kernel = sum_kernel(buffers.base_of(left.element))
    return _run(kernel, [_flat(left), _flat(right)]).viewed(left.element, left.shape)


def recorded_form(x: Array, element: types.Type, shape: Shape) -> Array:
    """`x` as `shape` elements of another type, which a trace follows."""
    return recorded_view(
        x,
        in_form(x, element, shape),
        lambda bar: in_form(bar, x.element, x.shape),
        lambda dot: in_form(dot, element, shape),
    )


def field_of(whole: Array, name: str) -> Array:
    """Field `name` of one struct, sharing its bytes."""
    struct = whole.element
    assert isinstance(struct, types.Struct)
    return whole.viewed(struct.type_by_field[name], (), field_offset(struct, name))


def field_offset(struct: types.Struct, name: str) -> int:
    """Bytes before field `name` of one element."""
    offset_by_field = {leaf.path[0]: leaf.offset for leaf in reversed(types.leaves(struct))}
    return offset_by_field[name]


def _storage(element: types.Type) -> object:
    return buffers.storage_dtype(element), [s.kind for s in types.scalars(element)][:1]


def _flat(value: Array) -> Array:
    """One axis of scalars or structs."""
    count = prod((*value.shape, *buffers.element_axes(value.element)))
    return value.viewed(buffers.base_of(value.element), (count,))


def _run(kernel: nodes.Kernel, operands: list[Array]) -> Array:
    dim = operands[0].shape
    shapes = dict.fromkeys((b.name for b in kernel.buffers), dim)
    sizes = launch_sizes(dim, shapes)
    (result,) = evaluate(_graph(kernel), operands, sizes, operands[0].device)
    return result


@lru_cache(maxsize=128)
def _graph(kernel: nodes.Kernel) -> Graph:
    return call_graph(kernel, KernelFacts(kernel), frozenset((RESULT,)), "unchecked", "")
