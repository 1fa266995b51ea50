"""Where whole numbers lie: from one `Size` to another, and what operations make of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from shaderad.ir import ops, sizes
from shaderad.ir.sizes import Size

# Ends with more terms than a user would write are given up.
_LONGEST = 8


@dataclass(frozen=True)
class Interval:
    """All that a whole number may be: `low` to `high`, where all of `asked` are 0 or more."""

    low: Size
    high: Size
    asked: frozenset[Size] = frozenset()

    @property
    def is_long(self) -> bool:
        ends = (end for end in (self.low, self.high) if not isinstance(end, int))
        return any(len(end.terms) > _LONGEST for end in ends)


Rule = Callable[..., Interval]


def only(size: Size) -> Interval:
    """One number."""
    return Interval(size, size)


def hull(*parts: Interval) -> Interval:
    """All that is in one of the `parts`, and what lies between them."""
    low = reduce(sizes.minimum, (p.low for p in parts))
    return Interval(low, reduce(sizes.maximum, (p.high for p in parts)), _asked(*parts))


def within(a: Interval, limits: Interval) -> Interval:
    """`a`, where it lies within `limits`."""
    asked = {sizes.subtract(a.low, limits.low), sizes.subtract(limits.high, a.high)}
    return replace(a, asked=a.asked | asked)


def _asked(*parts: Interval) -> frozenset[Size]:
    return frozenset[Size]().union(*(p.asked for p in parts))


def _added(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.add(a.low, b.low), sizes.add(a.high, b.high), _asked(a, b))


def _times(a: Interval, factor: int) -> Interval:
    low, high = sizes.multiply(a.low, factor), sizes.multiply(a.high, factor)
    return Interval(low, high, a.asked) if factor >= 0 else Interval(high, low, a.asked)


def _negative(a: Interval) -> Interval:
    return _times(a, -1)


def _difference(a: Interval, b: Interval) -> Interval:
    return _added(a, _negative(b))


def _product(a: Interval, b: Interval) -> Interval:
    """Of a constant, or of two numbers that are 0 or more."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one.low, int) and one.low == one.high:
            return replace(_times(other, one.low), asked=_asked(a, b))
    low, high = sizes.multiply(a.low, b.low), sizes.multiply(a.high, b.high)
    return Interval(low, high, _asked(a, b) | {a.low, b.low})


def _multiplied_and_added(a: Interval, b: Interval, c: Interval) -> Interval:
    return _added(_product(a, b), c)


def _smaller(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.minimum(a.low, b.low), sizes.minimum(a.high, b.high), _asked(a, b))


def _larger(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.maximum(a.low, b.low), sizes.maximum(a.high, b.high), _asked(a, b))


def _clamped(x: Interval, low: Interval, high: Interval) -> Interval:
    return _smaller(_larger(x, low), high)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    """Of a positive constant, rounded down."""
    by = b.low
    if not isinstance(by, int) or by != b.high or by <= 0:
        return None
    return Interval(sizes.floor_divide(a.low, by), sizes.floor_divide(a.high, by), a.asked)


def _remainder(_: Interval, b: Interval) -> Interval:
    """Of a division by a positive number, rounded down."""
    return Interval(0, sizes.subtract(b.high, 1), b.asked | {sizes.subtract(b.low, 1)})


def _masked(a: Interval, b: Interval) -> Interval | None:
    """Of a number that is 0 or more."""
    ends = [x.high for x in (a, b) if isinstance(x.low, int) and x.low >= 0]
    masks = [end for end in ends if isinstance(end, int)]
    return Interval(0, min(masks)) if masks else None


MODULAR: dict[ops.Op, Rule] = {
    ops.ADD: _added,
    ops.SUB: _difference,
    ops.NEG: _negative,
    ops.MUL: _product,
    ops.MAD: _multiplied_and_added,
}
"""What may be found modulo 2^32."""
OF_EXACT: dict[ops.Op, Callable[..., Interval | None]] = {
    ops.MIN: _smaller,
    ops.MAX: _larger,
    ops.CLAMP: _clamped,
    ops.FLOOR_DIV: _quotient,
    ops.MOD: _remainder,
    ops.BIT_AND: _masked,
}
"""What is found of numbers that have not wrapped."""
