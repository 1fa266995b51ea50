"""The values of expressions while a body is read, and the record of what it reads from outside.

A value is typed IR, or known while compiling: a number, an array parameter, a function. Invariants:
only `Expr` enters the IR, other values are consumed by the operation around them; a compiled kernel
is valid exactly while every recorded read gives the same value.
"""

from __future__ import annotations

import builtins
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from shaderad.diagnostics import Span, error
from shaderad.ir.composing import of_components
from shaderad.ir.nodes import NO_SPAN, Const, Expr, Load
from shaderad.ir.types import BufferType, Matrix, ResourceType, SamplerType, Struct, Type, Vector
from shaderad.language.annotations import HostVector

if TYPE_CHECKING:
    from shaderad.language.host import UserFunction


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
    """A number that another call may replace, so it becomes a variable of the type it takes."""

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
class CapturedStruct(Host):
    """A captured instance of a struct class; where a value is needed, its fields are constants."""

    constant: Callable[[Span], Expr] = field(compare=False)


@dataclass(frozen=True)
class ArrayRef:
    """An array parameter. `part` is ``pair`` for a `DifferentialPair`, then ``p`` or ``d``."""

    buffer: str
    type: BufferType
    part: str = ""


@dataclass(frozen=True)
class ResourceRef:
    """A texture or sampler: its content as an array, and its number."""

    content: ArrayRef
    number: Expr

    @property
    def type(self) -> ResourceType:
        assert isinstance(self.content.type, ResourceType)
        return self.content.type


@dataclass(frozen=True)
class TextureMethod:
    """``texture.sample`` before its call."""

    owner: ResourceRef
    name: str


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
    """``value.method`` before its call."""

    owner: Value
    function: UserFunction


@dataclass(frozen=True)
class Derivative:
    """``sad.fwd_diff(f)`` or ``sad.bwd_diff(f)`` before its call."""

    function: UserFunction
    is_forward: bool

    @property
    def name(self) -> str:
        return "fwd_diff" if self.is_forward else "bwd_diff"


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
    Expr
    | PythonNumber
    | Sequence
    | Host
    | ArrayRef
    | ResourceRef
    | TextureMethod
    | StructRef
    | BoundMethod
    | Derivative
    | Twin
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
    if isinstance(value, ResourceRef):
        noun = "sampler" if isinstance(value.type, SamplerType) else "texture"
        return f"the {noun} `{value.content.buffer}`"
    if isinstance(value, StructRef):
        return f"the struct `{value.type}`, which holds arrays"
    if isinstance(value, Host):
        return f"`{value.name}`"
    if isinstance(value, Twin):
        return f"the gradient side of `{value.primal.type}`"
    return "a function"


MISSING = object()
# Several variants, because captured values may alternate; few, because old ones may never return.
_MAX_VARIANTS = 8
_T = TypeVar("_T")
_PLAIN = frozenset({
    bool, int, float, complex, str, bytes, range, date, datetime, time, timedelta, Decimal,
    Fraction, PurePosixPath, PureWindowsPath, PosixPath, WindowsPath,
})  # fmt: skip
"""Types whose values are the same if they have the same text."""
_NUMPY_NUMBERS: tuple[type, ...] = (np.bool_, np.integer, np.floating)
_MEANINGLESS: tuple[type, ...] = (str, bytes, list, dict, set, complex, type(None))


class Captures:
    """The reads of captured names and attributes while one kernel was compiled."""

    def __init__(self) -> None:
        self._reads: dict[tuple[int, str], tuple[Callable[[], object], object, object]] = {}
        """For each read: a function that repeats it, its value, and content that may change."""

    def name(self, function: FunctionType, name: str) -> object:
        """The value of `name` in `function`: closure, globals, builtins; else `MISSING`."""
        code = function.__code__
        if name in code.co_freevars:
            cell = (function.__closure__ or ())[code.co_freevars.index(name)]
            return self._record((id(cell), name), partial(getattr, cell, "cell_contents", MISSING))
        space = function.__globals__
        value = self._record((id(space), name), partial(space.get, name, MISSING))
        return getattr(builtins, name, MISSING) if value is MISSING else value

    def attribute(self, owner: object, name: str) -> object:
        """``owner.name`` of a module, class or enum; else `MISSING`."""
        return self._record((id(owner), name), partial(getattr, owner, name, MISSING))

    def are_current(self) -> bool:
        """True if every read gives the same value as before."""
        for read, value, content in self._reads.values():
            now = read()
            if content is not None:
                if _content(now) != content:
                    return False
            elif now is not value and not is_same_constant(now, value):
                return False
        return True

    def _record(self, key: tuple[int, str], read: Callable[[], object]) -> object:
        value = read()
        self._reads[key] = (read, value, _content(value) if _may_change(value) else None)
        return value


class Variants(Generic[_T]):
    """The compiled forms of one function by its constants, most recently used first."""

    def __init__(self) -> None:
        self._variants_by_key: dict[tuple[str, ...], list[tuple[_T, Captures]]] = {}

    def of(self, constants: Mapping[str, object], fresh: Callable[[], tuple[_T, Captures]]) -> _T:
        """The variant for these constants and the current captures; `fresh` makes a new one."""
        key = tuple([f"{n}={type(v).__name__}:{v!r}" for n, v in sorted(constants.items())])
        variants = self._variants_by_key.setdefault(key, [])
        if variants and variants[0][1].are_current():
            return variants[0][0]
        position = next((k for k, (_, c) in enumerate(variants) if c.are_current()), None)
        variant = fresh() if position is None else variants.pop(position)
        variants[:] = [variant, *variants[: _MAX_VARIANTS - 1]]
        return variant[0]


def is_same_constant(now: object, before: object) -> bool:
    """True if two values are indistinguishable: one object, or equal numbers, texts or tuples."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if type(now) is tuple:
        parts, others = cast("tuple[object, ...]", now), cast("tuple[object, ...]", before)
        return len(parts) == len(others) and all(map(is_same_constant, parts, others))
    # By text, because 0.0 == -0.0 and nan != nan.
    return _is_plain(now) and repr(now) == repr(before)


def _is_plain(value: object) -> bool:
    return type(value) in _PLAIN or isinstance(value, _NUMPY_NUMBERS)


def _may_change(value: object) -> bool:
    """True if the numbers of a captured object may change in place."""
    if isinstance(value, tuple):
        return any(map(_may_change, cast("tuple[object, ...]", value)))
    return isinstance(value, np.ndarray | list)


def _content(value: object) -> object:
    if isinstance(value, tuple | list):
        return isinstance(value, list), [_content(part) for part in cast("list[object]", value)]
    if isinstance(value, np.ndarray):
        numbers = cast("np.ndarray[Any, Any]", value)
        return numbers.dtype.str, numbers.shape, numbers.tobytes()
    return repr(value) if _is_plain(value) else id(value)


def constants_of(value: HostVector, t: Type, span: Span) -> Expr:
    """A vector or matrix of the host as an expression of constants."""
    assert isinstance(t, Vector | Matrix)
    parts = [Const(type=t.element, value=x, span=span) for x in value.ravel().tolist()]
    return replace(of_components(t, parts), span=span)


def to_value(captured: object, name: str, span: Span) -> Value:
    """A captured object as a value of the kernel language."""
    number = known_number(captured, span)
    if number is not None:
        return number
    if isinstance(captured, enum.Enum):
        return to_value(captured.value, name, span)
    if isinstance(captured, tuple):
        parts = cast("tuple[object, ...]", captured)
        return Sequence(tuple(to_value(p, name, span) for p in parts), span)
    if isinstance(captured, HostVector) and captured.element is not None:
        return constants_of(captured, captured.element, span)
    if isinstance(captured, np.ndarray) or hasattr(type(captured), "__array__"):
        raise error("SR0212", span, name=name)
    if isinstance(captured, _MEANINGLESS):
        raise error("SR0213", span, name=name, found=f"a {type(captured).__name__}")
    return Host(captured, name)


def known_number(captured: object, span: Span) -> PythonNumber | None:
    """A number, or a member of an enum of numbers, as a value; `None` for other objects."""
    if isinstance(captured, enum.Enum):
        inner = known_number(captured.value, span)
        return None if inner is None else EnumMember(inner.value, span, type(captured))
    for plain in (bool, int, float):
        if isinstance(captured, plain):  # `np.float64` is a subclass of `float`.
            return PythonNumber(plain(captured), span)
    if isinstance(captured, _NUMPY_NUMBERS):
        return PythonNumber(cast("np.generic", captured).item(), span)
    return None
