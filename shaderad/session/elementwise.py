"""Arithmetic on arrays: operands -> one element type and one shape -> a kernel call.

Follows NumPy's broadcasting and the kernel language's types: int mixes into float, Python numbers
take the other side's type, scalars spread over vectors, and nothing else is converted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import nodes, ops, types
from shaderad.session import array_kernels
from shaderad.session.array_kernels import RESULT, Operand, operand_name, whole
from shaderad.session.arrays import Array, Shape, array
from shaderad.session.devices import check_same
from shaderad.session.launch import new_launch
from shaderad.session.tape import launched
from shaderad.session.words import uniform_words

_LARGEST_EXPONENT = 1024
"""Beyond it no float32 but those next to 1 stays finite; such powers go through logarithms."""
Host = bool | int | float


def binary(name: str, left: Any, right: Any) -> Any:
    """``left op right`` by element; `NotImplemented` where one side is no number or array."""
    first, second = _operands(left, right)
    if first is None or second is None:
        return NotImplemented
    op = ops.TABLE[name]
    if op is ops.POW and isinstance(second, int | float) and isinstance(first, Array):
        exponent = _whole_exponent(first, second)
        if exponent is not None:
            t = _number_type(op, first)
            if ops.result_type(ops.POWI, (t, types.INT)) is None:
                raise error("SR0378", op=op.name, left=t, right=types.INT)
            name = f"array_pow_{exponent}".replace("-", "m")
            return _call(name, [first], t, _power(t, exponent))
    typed = _typed(op, first, second)
    return _call(f"array_{name}", [first, second], typed.result, _applied(op, typed), typed.given)


def unary(name: str, value: Array) -> Array:
    """``op value`` by element."""
    op = ops.TABLE[name]
    t = _number_type(op, value)
    result = ops.result_type(op, (t,))
    if result is None:
        raise error("SR0378", op=name, left=t, right="nothing")
    return _call(f"array_{name}", [value], result, _applied(op, _Typed((t,), (t,), result)))


def selected(value: Array, name: str) -> Array | None:
    """Field or components `name` of every element; `None` where elements have no such part."""
    t = value.element
    if isinstance(t, types.Struct) and name in t.type_by_field:
        result = t.type_by_field[name]
    elif isinstance(t, types.Vector) and _is_swizzle(name, t.count):
        result = t.element if len(name) == 1 else types.Vector(t.element, len(name))
    else:
        return None
    return _call(f"array_select_{name}", [value], result, _selection(name, result))


_COMPONENTS = str.maketrans("rgba", "xyzw")


def _is_swizzle(name: str, count: int) -> bool:
    return 1 <= len(name) <= 4 and any(
        set(name) <= set(all_of[:count]) for all_of in ("xyzw", "rgba")
    )


@lru_cache(maxsize=128)
def _selection(name: str, result: types.Type) -> Callable[..., nodes.Expr]:
    def value(element: nodes.Expr) -> nodes.Expr:
        if isinstance(element.type, types.Struct):
            return nodes.Field(type=result, value=element, name=name)
        components = name.translate(_COMPONENTS)
        return nodes.Swizzle(type=result, value=element, components=components)

    return value


def _operands(left: Any, right: Any) -> tuple[Array | Host | None, Array | Host | None]:
    device = left.device if isinstance(left, Array) else right.device
    found: list[Array | Host | None] = []
    for given in (left, right):
        # NumPy's scalars count as Python's.
        one = cast("object", given.item() if isinstance(given, np.generic) else given)
        if isinstance(one, Array | bool | int | float):
            found.append(one)
        else:
            is_data = isinstance(one, np.ndarray | list | tuple)
            found.append(array(given, device=device) if is_data else None)
    return found[0], found[1]


# -- types ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Typed:
    """Operand types as given, as the op wants them, and its result."""

    given: tuple[types.Type, ...]
    wanted: tuple[types.Type, ...]
    result: types.Type


def _number_type(op: ops.Op, value: Array) -> types.Type:
    if types.scalar_of(value.element) is None:
        raise error("SR0378", op=op.name, left=value.element, right="nothing")
    return value.element


def _typed(op: ops.Op, left: Array | Host, right: Array | Host) -> _Typed:
    """Works out one type for both operands.

    Raises:
        ShapeError: SR0378, where the language has no such operation on these types.
    """
    a, b = _type_given(left, right), _type_given(right, left)
    scalar = _shared_scalar(a, b)
    if op is ops.DIV and scalar is not None and scalar.kind in types.INTEGER_KINDS:
        scalar = types.FLOAT
    shape = _shared_shape(a, b)
    result = None
    if scalar is not None and shape is not None:
        wanted = types.with_scalar(shape, scalar)
        result = ops.result_type(op, (wanted, wanted))
        if result is not None:
            return _Typed((a, b), (wanted, wanted), result)
    raise error("SR0378", op=op.name, left=a, right=b)


def _type_given(one: Array | Host, other: Array | Host) -> types.Type:
    """Type of an array; a Python number takes the scalar of the array it meets where it can."""
    if isinstance(one, Array):
        return one.element
    if isinstance(one, bool):
        return types.BOOL
    met = types.scalar_of(other.element) if isinstance(other, Array) else None
    if met is not None and met.kind in types.FLOAT_KINDS:
        return met
    if isinstance(one, float):
        return types.FLOAT
    return met if met is not None and met.kind in types.INTEGER_KINDS else types.INT


def _shared_scalar(a: types.Type, b: types.Type) -> types.Scalar | None:
    left, right = types.scalar_of(a), types.scalar_of(b)
    if left == right:
        return left
    return types.FLOAT if {left, right} == {types.INT, types.FLOAT} else None


def _shared_shape(a: types.Type, b: types.Type) -> types.Type | None:
    if isinstance(a, types.Scalar):
        return b
    same = isinstance(b, types.Scalar) or types.with_scalar(a, types.FLOAT) == types.with_scalar(
        b, types.FLOAT
    )
    return a if same else None


def _whole_exponent(base: Array, exponent: int | float) -> int | None:
    is_whole = float(exponent).is_integer() and abs(exponent) <= _LARGEST_EXPONENT
    if not is_whole or isinstance(exponent, bool):
        return None
    if exponent < 0 and types.is_integer(base.element):
        return None
    if isinstance(exponent, float) and types.is_integer(base.element):
        return None
    return int(exponent)


# -- values: one function a kernel, cached because kernels are cached by them ---------------------


@lru_cache(maxsize=512)
def _applied(op: ops.Op, typed: _Typed) -> Callable[..., nodes.Expr]:
    def value(*operands: nodes.Expr) -> nodes.Expr:
        args = tuple(_as_type(one, t) for one, t in zip(operands, typed.wanted, strict=True))
        return nodes.Apply(type=typed.result, op=op, args=args)

    return value


@lru_cache(maxsize=128)
def _power(t: types.Type, exponent: int) -> Callable[..., nodes.Expr]:
    def value(base: nodes.Expr) -> nodes.Expr:
        power = nodes.Apply(type=t, op=ops.POWI, args=(base, whole(abs(exponent))))
        return power if exponent >= 0 else nodes.Apply(type=t, op=ops.RCP, args=(power,))

    return value


def _as_type(value: nodes.Expr, t: types.Type) -> nodes.Expr:
    scalar = types.scalar_of(t)
    assert scalar is not None
    if types.scalar_of(value.type) != scalar:
        value = nodes.Cast(type=types.with_scalar(value.type, scalar), value=value)
    return value if value.type == t else nodes.Splat(type=t, value=value)


# -- the call ----------------------------------------------------------------------------------


def _call(
    name: str,
    operands: list[Array | Host],
    result: types.Type,
    value: Callable[..., nodes.Expr],
    given: tuple[types.Type, ...] = (),
) -> Array:
    arrays = [one for one in operands if isinstance(one, Array)]
    shown = _broadcast([one.shape for one in arrays])
    # One axis serves where nothing is repeated; a launch over several costs divisions.
    is_flat = all(one.shape == shown for one in arrays)
    dim = (arrays[0].size,) if is_flat else shown
    parameters: list[Operand] = []
    inputs: dict[str, Array] = {}
    uniforms: dict[str, bytes | Array] = {}
    for k, one in enumerate(operands):
        own = operand_name(k)
        if isinstance(one, Array):
            check_same(one.device, arrays[0].device, "an operand")
            padded = dim if is_flat else (1,) * (len(shown) - one.ndim) + one.shape
            # Axes of one element count as repeated: reads at 0 are the same for every thread.
            varies = tuple(is_flat or extent != 1 for extent in padded)
            parameters.append(Operand(one.element, varies))
            inputs[own] = one.viewed(one.element, padded)
        else:
            parameters.append(Operand(given[k], None))
            uniforms[own] = uniform_words(one, given[k], "operand")
    kernel = array_kernels.elementwise(name, tuple(parameters), len(dim), result, value)
    launch = new_launch(
        kernel,
        arrays[0].device,
        dim,
        inputs,
        uniforms,
        {RESULT: dim},
        sources={operand_name(k): one for k, one in enumerate(operands) if isinstance(one, Array)},
        shown=shown,
    )
    launched(launch)
    return launch.outputs[RESULT]


def _broadcast(shapes: list[Shape]) -> Shape:
    if len(shapes) == 1 or shapes[0] == shapes[1]:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise error("SR0379", left=shapes[0], right=shapes[1]) from None
