"""The values of expressions while a body is read: typed IR, or a compile-time value such as a
number, an array parameter or a function.

Invariant: only `Expr` enters the IR; other values are consumed by the operation around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from shaderad.diagnostics import Span
from shaderad.ir.nodes import NO_SPAN, Expr, Load
from shaderad.ir.types import BufferType, Struct


@dataclass(frozen=True)
class PythonNumber:
    """A number of the Python program: literal, captured, `sad.Const`, or folded from others.

    It converts to the type of the other operand; alone it is an int, float or bool.
    """

    value: int | float | bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True)
class EnumMember(PythonNumber):
    """A member of an enum: its number, which Python also spells ``.value``."""

    enum: type[Enum] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class NumberArgument(PythonNumber):
    """A number that another call may replace: it becomes a variable of the type it takes."""

    name: str = ""


@dataclass(frozen=True)
class Sequence:
    """A tuple of separate values: ``(a, b)``, ``x.shape``, a captured tuple."""

    parts: tuple[Value, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True)
class Host:
    """A captured Python object: a module, type, function, enum class."""

    object: object
    name: str


@dataclass(frozen=True)
class ArrayRef:
    """An array parameter. `part` is ``pair`` for a `DifferentialPair`, then ``p`` or ``d``."""

    buffer: str
    type: BufferType
    part: str = ""


@dataclass(frozen=True)
class StructRef:
    """A struct parameter that holds arrays, as the values of its fields."""

    type: Struct
    parts: tuple[tuple[str, Value], ...]
    part: str = ""

    def get(self, name: str) -> Value | None:
        return dict(self.parts).get(name)


@dataclass(frozen=True)
class BoundMethod:
    """``value.method`` before its call; `function` is a `UserFunction`."""

    owner: Value
    function: object


@dataclass(frozen=True)
class Derivative:
    """``sad.fwd_diff(f)`` or ``sad.bwd_diff(f)`` before its call; `function` as above."""

    function: object
    is_forward: bool


@dataclass(frozen=True, kw_only=True)
class TargetElement(Load):
    """An array element on the left-hand side; never part of the IR."""

    array: ArrayRef
    is_unique: bool = False


@dataclass(frozen=True)
class Twin:
    """``p.d`` of a value that holds pointers: the same place among gradients."""

    primal: Expr
    """The value; its pointers locate the gradients, too."""
    derivative: Expr | None
    """The derivative of the floats that the value itself holds."""


Value = (
    Expr | PythonNumber | Sequence | Host | ArrayRef | StructRef | BoundMethod | Derivative | Twin
)


def describe(value: Value) -> str:
    """The description of a value in messages."""
    if isinstance(value, Expr):
        return f"`{value.type}`"
    if isinstance(value, PythonNumber):
        return f"`{value.value!r}`"
    if isinstance(value, Sequence):
        return "a tuple"
    if isinstance(value, ArrayRef):
        return f"the array `{value.buffer}`"
    if isinstance(value, StructRef):
        return f"the struct `{value.type}`, which holds arrays"
    if isinstance(value, Host):
        return f"`{value.name}`"
    if isinstance(value, Twin):
        return f"the gradient side of `{value.primal.type}`"
    return "a function"
