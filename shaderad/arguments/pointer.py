"""Pointers as arguments, and arrays of structs that hold them: containers of what they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaderad.arguments.kinds import ArgumentPart, ArgumentParts, register
from shaderad.arguments.number import NumberKind
from shaderad.arrays.pointers import HostPointer, Pointers
from shaderad.ir.types import Access, BufferType, Pointer

if TYPE_CHECKING:
    from shaderad.ir.types import Type


class PointerKind(NumberKind):
    """Pointers. `calls.pools` lays out the arrays behind them, and binds a number for each."""

    def parts(self, value: Any, t: Type) -> ArgumentParts | None:
        assert isinstance(t, Pointer)
        if not isinstance(value, HostPointer):
            return None
        target = BufferType(Access.IN, t.element, 1)
        return ArgumentParts(Pointers, None, [ArgumentPart((), value.target, target)])


register(PointerKind(), Pointer)
