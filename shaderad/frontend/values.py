"""What an expression can stand for while a body is read: typed IR, or something that only names
exist for at compile time (a constant, an array parameter, a function).

Invariant: only `Expr` ends up in the IR; every other value is used up by the operation around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from shaderad.diagnostics import Span
from shaderad.ir.nodes import NO_SPAN, Expr, Load
from shaderad.ir.types import BufferType, Struct, Type


@dataclass(frozen=True)
class Known:
    """A number of the Python program: literal, captured, `sad.Const`, or folded from such.

    It is weak: it takes the type of what it meets. Alone it is an int, float or bool.
    """

    value: int | float | bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True)
class Member(Known):
    """A member of an enum: its number, which Python also spells ``.value``."""

    enum: type[Enum] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class NumberArgument(Known):
    """A number that another call may replace: it becomes a variable of the type it takes."""

    name: str = ""


@dataclass(frozen=True)
class Sequence:
    """A tuple whose elements are known one by one: ``(a, b)``, ``x.shape``, a captured tuple."""

    parts: tuple[Value, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True)
class Host:
    """A Python object that is no number: a module, type, function, enum class."""

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
    """A struct parameter that holds arrays: its fields, each a value of its own."""

    type: Struct
    parts: tuple[tuple[str, Value], ...]
    part: str = ""

    def get(self, name: str) -> Value | None:
        return dict(self.parts).get(name)


@dataclass(frozen=True)
class BoundMethod:
    """``value.method`` before it is called; `function` is the host's function object."""

    owner: Value
    function: object


@dataclass(frozen=True)
class Derivative:
    """``sad.fwd_diff(f)`` or ``sad.bwd_diff(f)`` before it is called."""

    function: object
    is_forward: bool


@dataclass(frozen=True, kw_only=True)
class TargetElement(Load):
    """An array element on the left-hand side; never part of the IR."""

    array: ArrayRef
    is_unique: bool = False


@dataclass(frozen=True)
class Twin:
    """``p.d`` of what holds pointers: the same place, in the memory of gradients."""

    primal: Expr
    """The value itself; its pointers lead to the gradients, too."""
    derivative: Expr | None
    """The place of the floats that the value holds on its own."""


Value = Expr | Known | Sequence | Host | ArrayRef | StructRef | BoundMethod | Derivative | Twin


def describe(value: Value) -> str:
    """The value as messages call it."""
    if isinstance(value, Expr):
        return f"`{value.type}`"
    if isinstance(value, Known):
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


def type_of(value: Value) -> Type | None:
    """The IR type of a value that has one on its own."""
    return value.type if isinstance(value, Expr | ArrayRef | StructRef) else None
