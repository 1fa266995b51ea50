"""Python's operators and NumPy's methods on arrays -> array functions; the base of `Array`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from shaderad.arrays.syntax import SYNTAX
from shaderad.diagnostics.tracebacks import api_boundary, api_class
from shaderad.ir.types import Struct

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.language.annotations import TypeObject

P = ParamSpec("P")
R = TypeVar("R")

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


def _or_numpys(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, or NumPy's if NumPy calls it: ``np.sum(x)`` is ``x.sum(axis=None, out=None)``."""

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        if "out" in keywords:
            array, *rest = args
            method = getattr(np.asarray(array), function.__name__)
            return method(*rest, **keywords)
        return function(*args, **keywords)

    return called


class unless_field(Generic[P, R]):
    """A method of arrays that a field of the same name hides: ``box.min`` is the field."""

    def __init__(self, function: Callable[P, R]) -> None:
        function.__qualname__ = f"Array.{function.__name__}"  # the name in messages
        self._function = api_boundary(_or_numpys(function))
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, array: None, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, array: Any, owner: type) -> Callable[..., R]: ...
    def __get__(self, array: Any, owner: type) -> Any:
        if array is None:
            return self._function
        element = array.element
        if isinstance(element, Struct) and self._name in element.type_by_field:
            return SYNTAX.functions.attribute(array, self._name)
        return self._bound(array)

    def _bound(self, array: Any) -> Any:
        return MethodType(self._function, array)


class property_unless_field(unless_field[P, R]):
    """A property that a field of the same name hides."""

    def _bound(self, array: Any) -> Any:
        function: Callable[..., Any] = self._function
        return function(array)


@api_class
class ArrayOperators:
    """The elementwise operators, the matrix product, and methods with the names of NumPy's."""

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

    @property_unless_field
    def T(self) -> Array:
        """The axes in reverse. Vectors and matrices stay as they are: `sad.transpose` of an array
        of matrices transposes each of them.

        Raises:
            ShapeError: SR0835 for matrices with fewer than two axes.
        """
        return SYNTAX.functions.method("T", self)

    @unless_field
    def sum(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
        """``sad.sum(x, axis, keepdims=keepdims)``."""
        return SYNTAX.functions.method("sum", self, axis, keepdims=keepdims)

    @unless_field
    def mean(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
        """``sad.mean(x, axis, keepdims=keepdims)``."""
        return SYNTAX.functions.method("mean", self, axis, keepdims=keepdims)

    @unless_field
    def max(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
        """``sad.max(x, axis=axis, keepdims=keepdims)``."""
        return SYNTAX.functions.method("max", self, axis, keepdims=keepdims)

    @unless_field
    def min(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Array:
        """``sad.min(x, axis=axis, keepdims=keepdims)``."""
        return SYNTAX.functions.method("min", self, axis, keepdims=keepdims)

    @unless_field
    def reshape(self, *shape: Any) -> Array:
        """``sad.reshape(x, shape)``; extents may be arguments of their own."""
        return SYNTAX.functions.method("reshape", self, *shape)

    @unless_field
    def ravel(self) -> Array:
        """The elements along one axis, in row-major order: ``sad.reshape(x, -1)``."""
        return SYNTAX.functions.method("reshape", self, -1)

    @unless_field
    def astype(self, dtype: Any) -> Array:
        """``sad.cast(x, dtype)``."""
        return SYNTAX.functions.method("astype", self, dtype)
