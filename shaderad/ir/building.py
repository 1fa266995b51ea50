"""Constructors of array nodes: array functions, derivative rules and plans are written with them.

An identity makes no node: a reshape to the same shape returns the value itself. A transposition
that moves only axes of 1 is a reshape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import copysign

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Reducer, Value, operand_name
from shaderad.ir.dags import substitute, variables
from shaderad.ir.nodes import Call, Expr, Function
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Struct, Type, is_differentiable


def has_derivative(value: Value) -> bool:
    return is_differentiable(value.element)


# -- elementwise ------------------------------------------------------------------------------


def elementwise(expr: Expr, value_by_name: Mapping[str, Value], shape: Shape) -> Value:
    """`expr` for each element of the values that its variables name, all of one `shape`."""
    used = variables(expr)
    operands = {name: value for name, value in value_by_name.items() if name in used}
    names = {
        name: c.variable(operand_name(k), value.element)
        for k, (name, value) in enumerate(operands.items())
    }
    renamed = substitute(expr, names)
    values = tuple(operands.values())
    if len(values) == 1 and renamed is next(iter(names.values())):
        return values[0]
    return arrays.Elementwise(operands=values, expr=renamed, shape=shape).result


def composed(compose: Callable[[Sequence[Expr]], Expr], values: Sequence[Value]) -> Value:
    """``compose(x)`` for the elements `x` of `values` at each position; all have one shape."""
    elements = [c.variable(operand_name(k), v.element) for k, v in enumerate(values)]
    value_by_name = {x.name: v for x, v in zip(elements, values, strict=True)}
    return elementwise(compose(elements), value_by_name, values[0].shape)


def full(shape: Shape, expr: Expr) -> Value:
    """`expr`, which has no variables, in every element."""
    return arrays.Elementwise(operands=(), expr=expr, shape=shape).result


def zeros(t: ArrayType) -> Value:
    return full(t.shape, c.zero(t.element))


def is_zero(value: Value) -> bool:
    """True if all elements are 0, by construction, and none is -0."""
    node = value.producer
    while isinstance(node, arrays.Broadcast | arrays.Reshape):
        node = node.operands[0].producer
    if not isinstance(node, arrays.Elementwise) or node.operands:
        return False
    e = node.expr.value if isinstance(node.expr, nodes.Splat) else node.expr
    is_number = isinstance(e, nodes.Const) and not e.value and copysign(1, e.value) > 0
    return isinstance(e, nodes.Zero) or is_number


def or_zeros(derivative: Value | None, like: Value) -> Value:
    return zeros(like.type) if derivative is None else derivative


def add(a: Value, b: Value) -> Value:
    """The sum of two tangents or cotangents."""
    return composed(lambda x: c.added(*x), (a, b))


def applied(op: ops.Op, *values: Value) -> Value:
    """`op` by component on values of one shape."""
    return composed(lambda x: c.apply(op, *x), values)


def plus(value: Value, number: int) -> Value:
    """An int array plus a number."""
    return composed(lambda x: c.apply(ops.ADD, *x, c.whole(number)), [value])


def where(condition: Value, a: Value, b: Value) -> Value:
    """``a`` where the condition holds, else ``b``."""
    return composed(lambda x: c.select(*x), (condition, a, b))


def field(value: Value, name: str) -> Value:
    return composed(lambda x: c.field(x[0], name), [value])


def struct(t: Struct, parts: Sequence[Value]) -> Value:
    """Structs whose fields are `parts`."""
    return composed(lambda x: c.construct(t, x), parts)


def type_name(t: Type) -> str:
    """The name of a type, as part of an identifier."""
    return "".join(letter if letter.isalnum() else "_" for letter in str(t))


def combined(op: Reducer, a: Expr, b: Expr) -> Expr:
    """``a op b``."""
    if isinstance(op, Function):
        return Call(type=op.result, function=op, args=(a, b))
    if isinstance(a.type, Struct):
        return c.construct(
            a.type, [combined(op, c.field(a, n), c.field(b, n)) for n, _ in a.type.fields]
        )
    return c.apply(op, a, b)


# -- layout -----------------------------------------------------------------------------------


def iota(shape: Shape, axis: int) -> Value:
    return arrays.Iota(operands=(), shape=shape, axis=axis).result


def broadcast(x: Value, shape: Shape, axes: Sequence[int]) -> Value:
    if x.shape == shape:
        return x
    return arrays.Broadcast(operands=(x,), shape=shape, axes=tuple(axes)).result


def along_last(x: Value, extent: Size) -> Value:
    """`x` repeated along a new last axis."""
    return broadcast(x, (*x.shape, extent), range(len(x.shape)))


def reshape(x: Value, shape: Shape) -> Value:
    return x if x.shape == shape else arrays.Reshape(operands=(x,), shape=shape).result


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    in_order = [k for k in permutation if x.shape[k] != 1]
    if in_order == sorted(in_order):
        return reshape(x, tuple(x.shape[k] for k in permutation))
    return arrays.Transpose(operands=(x,), permutation=tuple(permutation)).result


def piece(x: Value, axis: int, start: Size, extent: Size, step: int = 1) -> Value:
    """`extent` positions of one axis: ``x[start : start + step * extent : step]``."""
    if x.shape[axis] == extent and start == 0 and step == 1:
        return x
    starts: list[Size] = [0] * len(x.shape)
    steps = [1] * len(x.shape)
    shape = [*x.shape]
    starts[axis], steps[axis], shape[axis] = start, step, extent
    node = arrays.Slice(operands=(x,), starts=tuple(starts), steps=tuple(steps), shape=tuple(shape))
    return node.result


def roll(x: Value, axis: int, start: Size) -> Value:
    """``result[i] = x[(i + start) mod n]`` along one axis."""
    return x if start == 0 else arrays.Roll(operands=(x,), axis=axis, start=start).result


def reverse(x: Value) -> Value:
    """`x` with its last axis reversed."""
    count = x.shape[-1]
    return piece(x, len(x.shape) - 1, sizes.subtract(count, 1), count, -1)


def concatenate(parts: Sequence[Value], axis: int) -> Value:
    return arrays.Concatenate(operands=tuple(parts), axis=axis).result


def shift_right(x: Value, fill: Expr) -> Value:
    """``result[..., i] = x[..., i - 1]``, and `fill` at 0; also for empty rows."""
    axis = len(x.shape) - 1
    joined = concatenate((full((*x.shape[:-1], 1), fill), x), axis)
    return piece(joined, axis, 0, x.shape[-1])


def shift_left(x: Value, fill: Expr) -> Value:
    """``result[..., i] = x[..., i + 1]``, and `fill` at the end."""
    axis = len(x.shape) - 1
    joined = concatenate((x, full((*x.shape[:-1], 1), fill)), axis)
    return piece(joined, axis, 1, x.shape[-1])


# -- sums -------------------------------------------------------------------------------------


def reduce(op: Reducer, x: Value, init: Value | None = None) -> Value:
    operands = (x,) if init is None else (x, init)
    return arrays.Reduce(operands=operands, op=op).result


def scan(op: Reducer, x: Value) -> Value:
    return arrays.Scan(operands=(x,), op=op).result


def reverse_scan(op: Reducer, x: Value) -> Value:
    """``result[..., i] = x[..., n - 1] op ... op x[..., i]``."""
    return reverse(scan(op, reverse(x)))


def sum_over(x: Value, axes: Sequence[int]) -> Value:
    """The sum over `axes`, which are removed."""
    if not axes:
        return x
    kept = [k for k in range(len(x.shape)) if k not in axes]
    shape = tuple(x.shape[k] for k in kept)
    extent = sizes.product(tuple(x.shape[k] for k in axes))
    rows = reshape(transpose(x, [*kept, *axes]), (*shape, extent))
    return reduce(ops.ADD, rows)
