"""Ranges of floats, which show that a conversion to an integer needs no saturation."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, inf, isfinite

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT, UINT, Type, is_integer, scalar_of

_INTEGERS = {INT: (-(2**31), 2**31 - 128), UINT: (0, 2**32 - 256)}
"""The floats that are in range after truncation."""
_VALUES = {INT: (-(2**31), 2**31), UINT: (0, 2**32)}
"""The floats that are made from integers."""
_ROUNDINGS = (ops.FLOOR, ops.CEIL, ops.ROUND, ops.TRUNC)

Range = tuple[float, float]


def fits(e: Expr, t: Type) -> bool:
    """True if every component of `e` is known to be in the range of the integer type `t`."""
    scalar, ends = scalar_of(t), _range(e)
    if scalar not in _INTEGERS or ends is None:
        return False
    low, high = _INTEGERS[scalar]
    return low <= ends[0] and ends[1] <= high


def _range(e: Expr) -> Range | None:
    """Bounds of a value that is never NaN; `None` if it may be NaN."""
    match e:
        case nodes.Const():
            value = float(e.value)
            return (value, value) if isfinite(value) else None
        case nodes.Splat():
            return _range(e.value)
        case nodes.Cast() if is_integer(e.value.type):
            scalar = scalar_of(e.value.type)
            return None if scalar is None else _VALUES.get(scalar)
        case nodes.Apply(op=ops.SATURATE):
            return 0.0, 1.0
        case nodes.Apply(op=ops.CLAMP, args=(x, low, high)):
            return _smaller(_larger(_range(x), _range(low)), _range(high))
        case nodes.Apply(op=ops.MAX, args=(a, b)):
            return _larger(_range(a), _range(b))
        case nodes.Apply(op=ops.MIN, args=(a, b)):
            return _smaller(_range(a), _range(b))
        case nodes.Apply() if e.op in _ROUNDINGS:
            ends = _range(e.args[0])
            return None if ends is None else (_rounded(floor, ends[0]), _rounded(ceil, ends[1]))
        case _:
            return None


def _rounded(rounding: Callable[[float], int], bound: float) -> float:
    return float(rounding(bound)) if isfinite(bound) else bound


# NaN never wins: of a NaN and a number, `min` and `max` return the number.


def _larger(a: Range | None, b: Range | None) -> Range | None:
    ranges = [x for x in (a, b) if x is not None]
    if not ranges:
        return None
    high = max(x[1] for x in ranges) if len(ranges) == 2 else inf
    return max(x[0] for x in ranges), high


def _smaller(a: Range | None, b: Range | None) -> Range | None:
    ranges = [x for x in (a, b) if x is not None]
    if not ranges:
        return None
    low = min(x[0] for x in ranges) if len(ranges) == 2 else -inf
    return low, min(x[1] for x in ranges)
