"""Sizes of traced arrays as users meet them: ``x.shape[0]``, which is known when a graph runs.

Invariant: a size answers a question only where the answer is the same for every call.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn, cast

import numpy as np

from shaderad.device.lines import user_span
from shaderad.diagnostics import Error, Span, error
from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.runtime.buffers import ELEMENT_COUNT_LIMIT


class TracedSize:
    """A whole number that one trace leaves open: arithmetic, ``dim=`` and counts take it."""

    __slots__ = ("size",)

    def __init__(self, size: sizes.Polynomial) -> None:
        self.size = size

    def __repr__(self) -> str:
        return str(self.size)

    def __hash__(self) -> int:
        return hash(self.size)

    def __add__(self, other: Any) -> Any:
        return _made(sizes.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _made(sizes.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _made(sizes.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _made(sizes.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return _made(sizes.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _made(sizes.multiply, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _made(sizes.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _made(sizes.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __neg__(self) -> Any:
        return 0 - self

    def __eq__(self, other: object) -> bool:
        return self._compared(other, operator.eq, "==")

    def __ne__(self, other: object) -> bool:
        return self._compared(other, operator.ne, "!=")

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, operator.lt, "<")

    def __le__(self, other: Any) -> bool:
        return self._compared(other, operator.le, "<=")

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, operator.gt, ">")

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, operator.ge, ">=")

    def __int__(self) -> int:
        self._refuse("`int()`")

    def __index__(self) -> int:  # noqa: PLE0305 - it raises
        self._refuse("`range()`, a list index, or any other use as a plain int")

    def __bool__(self) -> bool:  # noqa: PLE0304 - it raises
        self._refuse("a condition")

    def __float__(self) -> float:
        self._refuse("`float()`")

    def _compared(self, other: Any, compare: Any, symbol: str) -> bool:
        found = size_or_none(other)
        if found is None:
            return NotImplemented
        difference = sizes.subtract(self.size, found)
        if not isinstance(difference, int):
            self._refuse(f"`{symbol}`")
        return compare(difference, 0)

    def _refuse(self, what: str) -> NoReturn:
        raise error("SR0320", user_span(), size=self.size, what=what)


def size_or_none(given: Any) -> Size | None:
    """A size from what users write as one; `None` for anything else."""
    if isinstance(given, TracedSize):
        return given.size
    plain = cast("object", given.item() if isinstance(given, np.integer) else given)
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


def outside_limits(span: Span | None, name: str, given: Any, *, is_negative: bool) -> Error:
    """SR0371: an extent that is negative, or a launch or array of too many elements."""
    help_ = "give how many there are; 0 is allowed" if is_negative else "split the launch"
    return error("SR0371", span, name=name, found=given, limit=ELEMENT_COUNT_LIMIT, help=help_)


def size_of(given: Any, name: str) -> Size:
    """A size that may not be negative.

    Raises:
        ShapeError: SR0370 for what is no whole number, SR0371 for negative ones.
    """
    found = size_or_none(given)
    if found is None:
        raise error("SR0370", user_span(), name=name, found=repr(given))
    if isinstance(found, int) and not 0 <= found <= ELEMENT_COUNT_LIMIT:
        raise outside_limits(user_span(), name, given, is_negative=found < 0)
    return found


def shape_of(given: Any, name: str = "shape") -> Shape:
    """A shape from an int, a size, or a tuple or list of those."""
    return tuple(size_of(item, name) for item in items_of(given))


def items_of(given: Any) -> tuple[Any, ...]:
    """The entries of a tuple or list; anything else is the one entry."""
    return tuple(cast("tuple[Any, ...]", given)) if isinstance(given, tuple | list) else (given,)


def shown(size: Size) -> Any:
    """The size as users get it."""
    return size if isinstance(size, int) else TracedSize(size)


def shown_shape(shape: Shape) -> str:
    """A shape in a message."""
    inner = ", ".join(map(str, shape))
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def _made(compute: Any, left: Any, right: Any) -> Any:
    first, second = size_or_none(left), size_or_none(right)
    if first is None or second is None:
        return NotImplemented
    return shown(compute(first, second))
