"""Python's operators on arrays -> array functions; the base class of `Array`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shaderad.arrays.syntax import SYNTAX
from shaderad.diagnostics.tracebacks import api_class

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.language.annotations import TypeObject

_Binary = Callable[[Any, Any], "Array"]


def _unary(op: str) -> Callable[[Any], Array]:
    def method(self: Any) -> Array:
        return SYNTAX.functions.unary(op, self)

    return method


def _binary(op: str) -> tuple[_Binary, _Binary]:
    """The methods of an operator for an array on its left and on its right."""

    def method(self: Any, other: Any) -> Array:
        return SYNTAX.functions.binary(op, self, other)

    def reflected(self: Any, other: Any) -> Array:
        return SYNTAX.functions.binary(op, other, self)

    return method, reflected


@api_class
class ArrayOperators:
    """The elementwise operators, and the matrix product."""

    __slots__ = ()

    __array_ufunc__ = None  # NumPy must not take over `numpy_array * array`.
    __hash__ = None  # type: ignore[assignment]

    def __constructed__(self, wanted: TypeObject, parts: tuple[Any, ...]) -> Array:
        """``float3(x, y, 1.0)``: an array of `wanted`, constructed from `parts` by element."""
        return SYNTAX.functions.constructed(wanted, parts)

    __neg__ = _unary("negate")
    __pos__ = _unary("positive")
    __abs__ = _unary("abs")
    __invert__ = _unary("bit_not")

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __matmul__, __rmatmul__ = _binary("matmul")
    __lshift__, __rlshift__ = _binary("shift_left")
    __rshift__, __rrshift__ = _binary("shift_right")
    __and__, __rand__ = _binary("bit_and")
    __or__, __ror__ = _binary("bit_or")
    __xor__, __rxor__ = _binary("bit_xor")

    __lt__, __gt__ = _binary("less")[0], _binary("greater")[0]
    __le__, __ge__ = _binary("less_equal")[0], _binary("greater_equal")[0]

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return SYNTAX.functions.binary("equal", self, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return SYNTAX.functions.binary("not_equal", self, other)
