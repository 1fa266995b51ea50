"""Symbolic sizes: the extents ``x.shape[0]`` of traced arrays, known when a graph runs.

Invariant: a comparison or conversion of a size succeeds only if its result is the same for every
call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, NoReturn, cast

import numpy as np

from shaderad.arrays.syntax import SYNTAX
from shaderad.device.lines import user_span
from shaderad.diagnostics import Error, Span, error, text_of
from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.language.intrinsics import is_device_array
from shaderad.runtime.buffers import ELEMENT_COUNT_LIMIT

_Binary = Callable[[Any, Any], Any]


def _arithmetic(name: str, compute: Callable[[Size, Size], Size | None]) -> tuple[_Binary, _Binary]:
    """The methods of an operator for a size on its left and on its right.

    Args:
        name: Its name in ``ir/ops.py``; with a float the result is an array without axes.
        compute: Its result for two sizes; `None` if that is not a size.
    """

    def method(self: Any, other: Any) -> Any:
        left, right = size_or_none(self), size_or_none(other)
        size = None if left is None or right is None else compute(left, right)
        if size is not None:
            return shown(size)
        is_number = all(isinstance(x, TracedSize | int | float | np.number) for x in (self, other))
        return SYNTAX.functions.binary(name, self, other) if is_number else NotImplemented

    return method, lambda self, other: method(other, self)


def _no_size(_: Size, __: Size) -> None:
    """The quotient of two sizes, which is a float."""


def _remainder(left: Size, right: Size) -> Size:
    whole = sizes.multiply(sizes.floor_divide(left, right), right)
    return sizes.subtract(left, whole)


def _power(base: Size, exponent: Size) -> Size | None:
    """``base ** exponent``; `None` if that is not a size in every call."""
    if not isinstance(exponent, int) or exponent < 0:
        return None
    return reduce(sizes.multiply, [base] * exponent, 1)


def _comparison(compare: Callable[[Any, Any], bool], symbol: str) -> Callable[[Any, Any], bool]:
    """A comparison; a float is first rounded to the whole number that gives the same result."""

    def method(self: TracedSize, other: Any) -> bool:
        if isinstance(other, np.floating):
            other = float(cast("Any", other))
        if isinstance(other, float):
            if not math.isfinite(other) or (symbol in ("==", "!=") and not other.is_integer()):
                return compare(0, other)
            other = math.ceil(other) if symbol in ("<", ">=") else math.floor(other)
        size = size_or_none(other)
        if size is None:
            return NotImplemented
        difference = sizes.subtract(self.size, size)
        if not isinstance(difference, int):
            self.refuse(f"`{symbol}`")
        return compare(difference, 0)

    return method


class TracedSize:
    """A symbolic whole number; arithmetic, ``dim=`` and counts accept it."""

    __slots__ = ("size",)

    is_symbolic_size = True

    def __init__(self, size: sizes.Polynomial) -> None:
        self.size = size

    def __repr__(self) -> str:
        return str(self.size)

    def __hash__(self) -> int:
        return hash(self.size)

    __array_ufunc__ = None  # NumPy must not take over `numpy_number * size`.

    __add__, __radd__ = _arithmetic("add", sizes.add)
    __sub__, __rsub__ = _arithmetic("subtract", sizes.subtract)
    __mul__, __rmul__ = _arithmetic("mul", sizes.multiply)
    __floordiv__, __rfloordiv__ = _arithmetic("floor_divide", sizes.floor_divide)
    __truediv__, __rtruediv__ = _arithmetic("divide", _no_size)
    __mod__, __rmod__ = _arithmetic("mod", _remainder)
    __pow__, __rpow__ = _arithmetic("pow", _power)

    def __constructed__(self, wanted: Any, parts: tuple[Any, ...]) -> Any:
        """``float3(x.shape[0], 0.0, 0.0)`` in a traced function."""
        return SYNTAX.functions.constructed(wanted, parts)

    def __neg__(self) -> Any:
        return 0 - self

    __eq__, __ne__ = _comparison(operator.eq, "=="), _comparison(operator.ne, "!=")
    __lt__, __gt__ = _comparison(operator.lt, "<"), _comparison(operator.gt, ">")
    __le__, __ge__ = _comparison(operator.le, "<="), _comparison(operator.ge, ">=")

    def __int__(self) -> int:
        self.refuse("`int()`")

    def __index__(self) -> int:  # noqa: PLE0305 - it raises
        self.refuse("`range()`, a list index, or any other use as a plain int")

    def __bool__(self) -> bool:  # noqa: PLE0304 - it raises
        self.refuse("a condition")

    def __float__(self) -> float:
        self.refuse("`float()`")

    def refuse(self, what: str) -> NoReturn:
        """Raises SR0320, because the result of `what` depends on the call."""
        raise error("SR0320", user_span(), size=self.size, what=what)


def size_or_none(value: Any) -> Size | None:
    """The size that a whole number or `TracedSize` stands for; `None` for anything else."""
    if isinstance(value, TracedSize):
        return value.size
    plain = cast("object", value.item() if isinstance(value, np.integer) else value)
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


def outside_limits(span: Span | None, name: str, extent: Any, *, is_negative: bool) -> Error:
    """SR0371: an extent that is negative, or a launch or array of too many elements."""
    help_ = "give how many there are; 0 is allowed" if is_negative else "split the launch"
    return error("SR0371", span, name=name, found=extent, limit=ELEMENT_COUNT_LIMIT, help=help_)


def no_whole_number(span: Span | None, name: str, value: object) -> Error:
    """SR0370: a size, count or shift that is not a whole number."""
    is_count = name in ("count", "lower", "upper", "length")
    help_ = "write an int or a tuple of ints; `int(x)` converts"
    if is_count:
        help_ = "write an int, as in `sad.fori_loop(lower, upper, body, init)`; `int(x)` converts"
    if is_device_array(value):
        help_ = (
            "a size is known before a graph runs: write `int(x)` outside of traced functions; "
            "inside of one, use sizes such as `x.shape[0]`, or a fixed size and a mask"
        )
        if is_count:
            help_ = (
                "a count is known before a graph runs: capture it as a Python number, or use a "
                "size such as `x.shape[0]`; `sad.while_loop` with a `limit` takes any count"
            )
    return error("SR0370", span, name=name, found=text_of(value), help=help_)


def size_of(value: Any, name: str) -> Size:
    """The size that `value` stands for, which may not be negative.

    Raises:
        ShapeError: SR0370 for anything but a whole number, SR0371 for negative or too large ones.
    """
    size = size_or_none(value)
    if size is None:
        raise no_whole_number(user_span(), name, value)
    if isinstance(size, int) and not 0 <= size <= ELEMENT_COUNT_LIMIT:
        raise outside_limits(user_span(), name, value, is_negative=size < 0)
    return size


def shape_of(shape: Any, name: str = "shape") -> Shape:
    """The shape that an int, a size, or a tuple or list of those stands for."""
    return tuple(size_of(item, name) for item in items_of(shape))


def normalised_shape(extents: Any, name: str) -> tuple[int, ...]:
    """The shape that `extents`, an int or a sequence of ints, stands for.

    Raises:
        ShapeError: SR0370 for anything but whole numbers, SR0371 for negative or too large ones.
    """
    shape: list[int] = []
    for item in items_of(extents):
        try:
            extent = operator.index(item)
        except TypeError:
            extent = None
        if extent is None or isinstance(item, bool):
            raise no_whole_number(None, name, item)
        shape.append(extent)
    total = 1
    for extent in shape:
        total *= max(extent, 0)
        if extent < 0 or max(extent, total) > ELEMENT_COUNT_LIMIT:
            raise outside_limits(None, name, extents, is_negative=extent < 0)
    return tuple(shape)


def items_of(value: Any) -> tuple[Any, ...]:
    """The items of a tuple or list; any other value is the only item."""
    return tuple(cast("tuple[Any, ...]", value)) if isinstance(value, tuple | list) else (value,)


def shown(size: Size) -> Any:
    """The size as users see it: an int, or a `TracedSize`."""
    return size if isinstance(size, int) else TracedSize(size)


def shown_shape(shape: Shape) -> str:
    """A shape as text for messages."""
    inner = ", ".join(map(str, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
