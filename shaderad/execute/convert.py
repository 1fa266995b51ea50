"""Arrays of one form -> another: the sums and casts that cotangents need, run on the device.

Nothing here is recorded by a tape: these run while a pullback does.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from shaderad.arrays.arrays import Array, Shape
from shaderad.execute.launch import new_launch
from shaderad.ir import nodes, types
from shaderad.ir.arrays import operand_name
from shaderad.ir.types import Access, BufferType
from shaderad.rules.local_arrays import added, float_scalars, from_float_scalars
from shaderad.runtime import buffers

RESULT = "result"


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
    kernel = _sum_kernel(buffers.base_of(left.element))
    return _run(kernel, [_flat(left), _flat(right)]).viewed(left.element, left.shape)


def cast_kernel(source: types.Type, target: types.Type) -> nodes.Kernel:
    """Converts the scalars or structs of which elements of `source` consist to those of `target`.

    What is no float is 0.
    """
    return _cast_kernel(buffers.base_of(source), buffers.base_of(target))


@lru_cache(maxsize=128)
def _cast_kernel(source: types.Type, target: types.Type) -> nodes.Kernel:
    (x,) = _loads(source, 1)
    return _kernel("array_cast", source, 1, from_float_scalars(target, float_scalars(x)))


@lru_cache(maxsize=128)
def _sum_kernel(t: types.Type) -> nodes.Kernel:
    return _kernel("array_add", t, 2, added(*_loads(t, 2)))


_INDEX = nodes.Var(type=types.INT, name="i")


def _loads(t: types.Type, count: int) -> list[nodes.Expr]:
    names = map(operand_name, range(count))
    return [nodes.Load(type=t, buffer=name, indices=(_INDEX,)) for name in names]


def _kernel(name: str, operand: types.Type, count: int, value: nodes.Expr) -> nodes.Kernel:
    """``result[i] = value``, which reads `count` arrays of elements `operand` at ``i``."""
    operands = dict.fromkeys(map(operand_name, range(count)), BufferType(Access.IN, operand, 1))
    type_by_name = {**operands, RESULT: BufferType(Access.OUT, value.type, 1)}
    return nodes.Kernel(
        name=name,
        index_names=(_INDEX.name,),
        parameters=tuple(nodes.KernelParameter(name=n, type=t) for n, t in type_by_name.items()),
        buffers=tuple(nodes.Buffer(name=n, path=(n,), type=t) for n, t in type_by_name.items()),
        uniforms=(),
        body=(nodes.Store(buffer=RESULT, indices=(_INDEX,), value=value),),
        local_types={},
    )


def _storage(element: types.Type) -> object:
    return buffers.storage_dtype(element), [s.kind for s in types.scalars(element)][:1]


def _flat(value: Array) -> Array:
    """One axis of scalars or structs."""
    count = prod((*value.shape, *buffers.element_axes(value.element)))
    return value.viewed(buffers.base_of(value.element), (count,))


def _run(kernel: nodes.Kernel, operands: list[Array]) -> Array:
    dim = operands[0].shape
    inputs = {operand_name(k): one for k, one in enumerate(operands)}
    launch = new_launch(kernel, operands[0].device, dim, inputs, {}, {RESULT: dim}, sources={})
    launch.run()
    return launch.outputs[RESULT]
