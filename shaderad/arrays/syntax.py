"""Python's syntax on arrays and sizes -> array functions.

Array functions use arrays and stand in a higher room. This file declares the functions that the
syntax needs, and `shaderad/__init__.py` supplies them. Invariant: nothing here depends on `Array`,
so rooms below arrays can use it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from shaderad.language.supplied import Supplied

if TYPE_CHECKING:
    from shaderad.ir.types import Type
    from shaderad.language.annotations import TypeObject
    from shaderad.language.host import UserFunction


class PythonSyntax(Protocol):
    """Python's syntax on arrays and sizes, as array functions; all results hold arrays."""

    def unary(self, op: str, x: Any) -> Any:
        """``op x``, for an operator named as in ``ir/ops.py``."""
        ...

    def binary(self, op: str, left: Any, right: Any) -> Any:
        """``left op right``, or `NotImplemented`."""
        ...

    def constructed(self, wanted: TypeObject, parts: tuple[Any, ...]) -> Any:
        """``float3(x, y, z)``: an array of `wanted`, constructed from `parts` by element."""
        ...

    def composed(self, parts: Any, wanted: Type, name: str) -> Any:
        """One value of type `wanted` from a tuple, list or struct of arrays and numbers."""
        ...

    def subscripted(self, x: Any, key: Any) -> Any:
        """``x[key]``."""
        ...

    def attribute(self, x: Any, name: str) -> Any:
        """``x.name``, for a field or components of every element."""
        ...

    def method(self, name: str, x: Any, *args: Any, **keywords: Any) -> Any:
        """``x.name(*args, **keywords)``, for a method of NumPy's arrays."""
        ...

    def called(self, function: UserFunction, *operands: Any) -> Any:
        """``function(*operands)``, for a ``@sad.function`` of one element."""
        ...


SYNTAX: Supplied[PythonSyntax] = Supplied()
