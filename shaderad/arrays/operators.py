"""Python's operators on arrays -> element-wise kernels; the mixed-in half of `Array`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaderad.diagnostics.tracebacks import api_class
from shaderad.ir import ops

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.language.annotations import TypeObject


@api_class
class ArrayOperators:
    """Every operator that works element by element."""

    __slots__ = ()

    __array_ufunc__ = None  # NumPy must not take over `numpy_array * array`.
    __hash__ = None  # type: ignore[assignment]

    def __constructed__(self, wanted: TypeObject, parts: tuple[Any, ...]) -> Array:
        """``float3(x, y, 1.0)``: a `wanted` from `parts` for each element."""
        from shaderad.functions import elements
        from shaderad.functions.run_operator import run_operator

        return run_operator(elements.constructed, wanted, parts)

    def __neg__(self) -> Array:
        return _unary("negate", self)

    def __pos__(self) -> Array:
        return _unary("positive", self)

    def __abs__(self) -> Array:
        return _unary("abs", self)

    def __invert__(self) -> Array:
        return _unary("bit_not", self)

    def __add__(self, other: Any) -> Array:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Array:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Array:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Array:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Array:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Array:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Array:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Array:
        return _binary("divide", other, self)

    def __floordiv__(self, other: Any) -> Array:
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Array:
        return _binary("floor_divide", other, self)

    def __mod__(self, other: Any) -> Array:
        return _binary("mod", self, other)

    def __rmod__(self, other: Any) -> Array:
        return _binary("mod", other, self)

    def __pow__(self, other: Any) -> Array:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Array:
        return _binary("pow", other, self)

    def __matmul__(self, other: Any) -> Array:
        return _binary("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Array:
        return _binary("matmul", other, self)

    def __lshift__(self, other: Any) -> Array:
        return _binary("shift_left", self, other)

    def __rlshift__(self, other: Any) -> Array:
        return _binary("shift_left", other, self)

    def __rshift__(self, other: Any) -> Array:
        return _binary("shift_right", self, other)

    def __rrshift__(self, other: Any) -> Array:
        return _binary("shift_right", other, self)

    def __and__(self, other: Any) -> Array:
        return _binary("bit_and", self, other)

    def __rand__(self, other: Any) -> Array:
        return _binary("bit_and", other, self)

    def __or__(self, other: Any) -> Array:
        return _binary("bit_or", self, other)

    def __ror__(self, other: Any) -> Array:
        return _binary("bit_or", other, self)

    def __xor__(self, other: Any) -> Array:
        return _binary("bit_xor", self, other)

    def __rxor__(self, other: Any) -> Array:
        return _binary("bit_xor", other, self)

    def __lt__(self, other: Any) -> Array:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Array:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Array:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Array:
        return _binary("greater_equal", self, other)

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return _binary("equal", self, other)

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return _binary("not_equal", self, other)


def _binary(op: str, left: Any, right: Any) -> Any:
    from shaderad.functions import linalg
    from shaderad.functions.run_operator import run_elementwise, run_operator

    if not linalg.is_operand(left) or not linalg.is_operand(right):
        return NotImplemented
    # A power by a whole number is a product.
    is_open = op not in (ops.POW.name, ops.MATMUL.name)
    return (run_elementwise if is_open else run_operator)(linalg.operated, op, left, right)


def _unary(op: str, value: Any) -> Any:
    from shaderad.functions import elements
    from shaderad.functions.run_operator import run_operator

    return run_operator(elements.unary, op, value)
