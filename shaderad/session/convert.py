"""Arrays of one form -> another: the sums and casts that cotangents need, run on the device.

Nothing here is recorded by a trace: these run while a pullback does.
"""

from __future__ import annotations

from math import prod

from shaderad.ir import nodes, ops, types
from shaderad.runtime import buffers
from shaderad.session import array_kernels
from shaderad.session.array_kernels import RESULT, Operand, operand_name
from shaderad.session.arrays import Array, Shape
from shaderad.session.launch import new_launch


def in_form_of(value: Array, like: Array) -> Array:
    """`value` with the element type and shape of `like`, of which it is a cotangent or tangent."""
    return in_form(value, like.element, like.shape)


def in_form(value: Array, element: types.Type, shape: Shape) -> Array:
    """`value` as `shape` elements; floats are converted, bytes that already fit are shared."""
    if value.element == element and value.shape == shape:
        return value
    if _storage(value.element) == _storage(element):
        return value.viewed(element, shape)
    kernel = cast_kernel(value.element, element)
    return _run(kernel, [_flat(value)]).viewed(element, shape)


def cast_kernel(found: types.Type, wanted: types.Type) -> nodes.Kernel:
    """Converts scalars or structs, of which elements of `found` consist, to those of `wanted`."""
    source, target = buffers.base_of(found), buffers.base_of(wanted)
    if isinstance(target, types.Struct):
        assert isinstance(source, types.Struct)
        return array_kernels.by_leaf("array_cast", (source,), target, _cast)
    assert isinstance(target, types.Scalar)
    operand = Operand(source, (True,))
    return array_kernels.elementwise("array_cast", (operand,), 1, target, _CAST_BY_TYPE[target])


def summed(left: Array, right: Array) -> Array:
    """The sum of two arrays of one form."""
    base = buffers.base_of(left.element)
    if isinstance(base, types.Struct):
        kernel = array_kernels.by_leaf("array_add", (base, base), base, _add)
    else:
        operand = Operand(base, (True,))
        kernel = array_kernels.elementwise("array_add", (operand, operand), 1, base, _add_scalars)
    return _run(kernel, [_flat(left), _flat(right)]).viewed(left.element, left.shape)


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


def _cast(scalar: types.Scalar, value: nodes.Expr) -> nodes.Expr:
    return value if value.type == scalar else nodes.Cast(type=scalar, value=value)


def _add(scalar: types.Scalar, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    return nodes.Apply(type=scalar, op=ops.ADD, args=(left, right))


def _add_scalars(left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    return nodes.Apply(type=left.type, op=ops.ADD, args=(left, right))


def _to_float(value: nodes.Expr) -> nodes.Expr:
    return nodes.Cast(type=types.FLOAT, value=value)


def _to_half(value: nodes.Expr) -> nodes.Expr:
    return nodes.Cast(type=types.HALF, value=value)


def _to_double(value: nodes.Expr) -> nodes.Expr:
    return nodes.Cast(type=types.DOUBLE, value=value)


_CAST_BY_TYPE = {types.FLOAT: _to_float, types.HALF: _to_half, types.DOUBLE: _to_double}
