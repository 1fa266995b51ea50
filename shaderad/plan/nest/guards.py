"""Elements that are 0 out of range: what they read is loaded where that is in range, else it is 0.

So such a read is a register like any other, which several elements can use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import composing as c
from shaderad.ir.nodes import Expr
from shaderad.plan.elements import Elements, Read, Request, Steps, Test, choice
from shaderad.plan.kernels import IsStored
from shaderad.plan.positions import Positions

Guard = tuple[Test, ...]
"""Tests that must hold where an element is loaded; it is 0 elsewhere."""


IsZero = Callable[[Expr, Guard], bool]
"""True for what was read, if it is 0 where one of these tests does not hold."""


class GuardedElements(Elements):
    """Elements whose reads have guards: `guard` is that of a read while it is made.

    Args:
        positions: Of the kernel.
        is_stored: True for values that it reads.
        read: Reads one element.
        is_zero: Tells what it reads as 0.
    """

    def __init__(
        self, positions: Positions, is_stored: IsStored, read: Read, is_zero: IsZero
    ) -> None:
        super().__init__(positions, is_stored, read)
        self._is_zero = is_zero

    def where(self, tests: Sequence[Test], request: Request) -> Steps:
        conditions = [self.positions.test(*test) for test in tests]
        zero, outer = c.zero(request[0].element), self.guard
        if any(c.number_of(condition) == 0 for condition in conditions):
            return zero
        pairs = zip(tests, conditions, strict=True)
        self.guard = (*outer, *(test for test, held in pairs if c.number_of(held) is None))
        element = yield request
        is_zero_outside = self._is_zero(element, self.guard)
        self.guard = outer
        return element if is_zero_outside else choice(conditions, element, zero)
