"""Interval arithmetic on whole numbers; the ends of an interval are `Size`s."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from shaderad.ir import ops, sizes
from shaderad.ir.sizes import Size

# Ends with more terms than a user would write are not tracked.
_MAX_TERMS = 8


@dataclass(frozen=True)
class Interval:
    """The values of a whole number: `low` to `high`, inclusive."""

    low: Size
    high: Size
    premises: frozenset[Size] = frozenset()
    """Sizes that must be 0 or more for the bounds to hold."""

    @property
    def is_long(self) -> bool:
        ends = (end for end in (self.low, self.high) if not isinstance(end, int))
        return any(len(end.terms) > _MAX_TERMS for end in ends)


_Result = Interval | None
Rule = (
    Callable[[Interval], _Result]
    | Callable[[Interval, Interval], _Result]
    | Callable[[Interval, Interval, Interval], _Result]
)


def only(size: Size) -> Interval:
    """One number."""
    return Interval(size, size)


def hull(*parts: Interval) -> Interval:
    """The smallest interval that contains all `parts`."""
    low = reduce(sizes.minimum, (p.low for p in parts))
    return Interval(low, reduce(sizes.maximum, (p.high for p in parts)), _premises(*parts))


def within(a: Interval, limits: Interval) -> Interval:
    """`a`, on the premise that it lies within `limits`."""
    premises = {sizes.subtract(a.low, limits.low), sizes.subtract(limits.high, a.high)}
    return replace(a, premises=a.premises | premises)


def _premises(*parts: Interval) -> frozenset[Size]:
    return frozenset[Size]().union(*(p.premises for p in parts))


def _added(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.add(a.low, b.low), sizes.add(a.high, b.high), _premises(a, b))


def _times(a: Interval, factor: int) -> Interval:
    low, high = sizes.multiply(a.low, factor), sizes.multiply(a.high, factor)
    return Interval(low, high, a.premises) if factor >= 0 else Interval(high, low, a.premises)


def _product(a: Interval, b: Interval) -> Interval:
    """The product with a constant, or of two factors on the premise that they are 0 or more."""
    for factor, other in ((a, b), (b, a)):
        if isinstance(factor.low, int) and factor.low == factor.high:
            return replace(_times(other, factor.low), premises=_premises(a, b))
    low, high = sizes.multiply(a.low, b.low), sizes.multiply(a.high, b.high)
    return Interval(low, high, _premises(a, b) | {a.low, b.low})


def _smaller(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.minimum(a.low, b.low), sizes.minimum(a.high, b.high), _premises(a, b))


def _larger(a: Interval, b: Interval) -> Interval:
    return Interval(sizes.maximum(a.low, b.low), sizes.maximum(a.high, b.high), _premises(a, b))


def _quotient(a: Interval, b: Interval) -> Interval | None:
    """The quotient by a positive constant, rounded down."""
    by = b.low
    if not isinstance(by, int) or by != b.high or by <= 0:
        return None
    low, high = sizes.floor_divide(a.low, by), sizes.floor_divide(a.high, by)
    return Interval(low, high, _premises(a, b))


def _remainder(_: Interval, b: Interval) -> Interval:
    """The remainder of a division that rounds down, on the premise that the divisor is positive."""
    return Interval(0, sizes.subtract(b.high, 1), b.premises | {sizes.subtract(b.low, 1)})


def _masked(a: Interval, b: Interval) -> Interval | None:
    """``a & b`` where one of them is 0 or more."""
    ends = [x.high for x in (a, b) if isinstance(x.low, int) and x.low >= 0]
    masks = [end for end in ends if isinstance(end, int)]
    return Interval(0, min(masks), _premises(a, b)) if masks else None


MODULAR: dict[ops.Op, Rule] = {
    ops.ADD: _added,
    ops.SUB: lambda a, b: _added(a, _times(b, -1)),
    ops.NEG: lambda a: _times(a, -1),
    ops.MUL: _product,
    ops.MAD: lambda a, b, c: _added(_product(a, b), c),
}
"""Rules that hold modulo 2^32, where operands have wrapped too."""
EXACT: dict[ops.Op, Rule] = {
    ops.MIN: _smaller,
    ops.MAX: _larger,
    ops.CLAMP: lambda x, low, high: _smaller(_larger(x, low), high),
    ops.FLOOR_DIV: _quotient,
    ops.MOD: _remainder,
    ops.BIT_AND: _masked,
}
"""Rules that hold for operands that have not wrapped."""
