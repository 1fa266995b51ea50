"""Python values that behave as in a kernel: vectors with swizzles, local arrays, pairs.

Scalars are those of NumPy, so that floats round and ints wrap as on a device. Invariant:
assignments and calls copy (`copied`); reads do not, so that ``b[i].x = 1.0`` writes into ``b``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.ir.shown import is_printable, shown, shown_array
from shaderad.ir.types import Type
from shaderad.language.annotations import NUMPY_BY_KIND, shape_of
from shaderad.language.structs import info_of

_LETTERS = ("xyzw", "rgba")
Classes = Mapping[types.Struct, type]
"""Python class by struct; structs of derivatives have none."""


def checked(index: Any, length: int, name: str) -> int:
    """An index as Python's int.

    Raises:
        BoundsError: SR0675 if it is negative or not below `length`.
    """
    if not 0 <= index < length:
        raise error("SR0675", name=name, index=index, length=length)
    return int(index)


class _Components(np.ndarray[Any, Any]):
    """A vector or matrix: checks indices, and prints as on a device."""

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(self._checked(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(self._checked(index), value)

    def _checked(self, index: Any) -> Any:
        """`index`, checked if it is a number, because NumPy itself also passes slices."""
        is_number = isinstance(index, int | np.integer)
        name = "the vector" if self.ndim == 1 else "the matrix"
        return checked(index, len(self), name) if is_number else index

    def __repr__(self) -> str:
        return shown_array(np.asarray(self), _spelled(self))

    __str__ = __repr__


class VectorValue(_Components):
    """``float3`` and the like: an array with components."""

    def __getattr__(self, name: str) -> Any:
        columns = _columns(name, len(self))
        if columns is None:
            raise AttributeError(f"Vector has no component {name}")
        return super().__getitem__(columns)

    def __setattr__(self, name: str, value: Any) -> None:
        columns = _columns(name, len(self))
        if columns is None:
            super().__setattr__(name, value)
        else:
            super().__setitem__(columns, value)


class MatrixValue(_Components):
    """``float3x3`` and the like; its rows are vectors."""

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        return part.view(VectorValue) if part.ndim == 1 else part


def _spelled(value: np.ndarray[Any, Any]) -> str:
    """The name of the type of a vector or matrix, such as ``float3``."""
    kind = next(k for k, t in NUMPY_BY_KIND.items() if value.dtype == t)
    return kind.value + "x".join(map(str, value.shape))


def _columns(name: str, count: int) -> list[int] | int | None:
    """The component numbers of a swizzle, as an int if it has one; `None` for other names."""
    for letters in _LETTERS:
        if 1 <= len(name) <= 4 and set(name) <= set(letters[:count]):
            columns = [letters.index(c) for c in name]
            return columns if len(columns) > 1 else columns[0]
    return None


class LocalArrayValue(list[Any]):
    """``sad.LocalArray[T, N]``."""

    def __init__(self, elements: Sequence[Any], element: Type) -> None:
        super().__init__(elements)
        self.element = element

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(checked(index, len(self), "the local array"))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(
            checked(index, len(self), "the local array"), fitted(value, self.element)
        )


class PairValue:
    """``sad.DifferentialPair[T]``: a primal ``p`` and a derivative ``d``."""

    def __init__(self, p: Any, d: Any) -> None:
        self.p = p
        self.d = d

    def __repr__(self) -> str:
        return f"Pair(p={self.p!r}, d={self.d!r})"


class Shown:
    """A value that ``print`` and f-strings format as in a kernel."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return _text(self._value, str)

    def __repr__(self) -> str:
        return _text(self._value, repr)

    def __format__(self, spec: str) -> str:
        value = self._value
        if spec and isinstance(value, np.generic | VectorValue | MatrixValue):
            return _text(value, str, spec)
        return format(value, spec) if spec else str(self)


def _text(value: Any, otherwise: Callable[[Any], str], spec: str = "") -> str:
    if isinstance(value, VectorValue | MatrixValue):
        return shown_array(np.asarray(value), _spelled(value), spec)
    if isinstance(value, np.generic):
        return shown(value, types.FLOAT, spec)
    if isinstance(value, LocalArrayValue):
        return shown(value, types.LocalArray(value.element, len(value)))
    if isinstance(value, tuple):
        parts = [_text(item, otherwise) for item in cast("tuple[Any, ...]", value)]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    info = None if isinstance(value, type) else info_of(value)
    if info is None or not is_printable(info.ir_type):
        return otherwise(value)
    return shown(value, info.ir_type)


def in_kernel_form(value: Any) -> Any:
    """A value of NumPy or Python in its form in kernels: vectors, and numbers of 32 bits."""
    if isinstance(value, np.ndarray | np.generic):
        data: Any = np.asarray(cast("Any", value))
        if data.ndim:
            return data.view(VectorValue if data.ndim == 1 else MatrixValue)
        return bool(data) if data.dtype.kind == "b" else data[()]
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return np.int32(value) if -(2**31) <= value < 2**31 else value
    return np.float32(value) if isinstance(value, float) else value


def copied(value: Any) -> Any:
    """The value that an assignment binds."""
    if isinstance(value, np.ndarray):
        return in_kernel_form(value.copy())
    if isinstance(value, LocalArrayValue):
        return LocalArrayValue([copied(item) for item in value], value.element)
    if isinstance(value, tuple):
        return tuple(copied(item) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, PairValue):
        return PairValue(copied(value.p), copied(value.d))
    info = None if isinstance(value, type) else info_of(value)
    if info is None:
        return in_kernel_form(value)
    struct = copy.copy(value)
    for name in info.annotations:
        setattr(struct, name, copied(getattr(struct, name)))
    return struct


def fitted(value: Any, t: Type) -> Any:
    """A copy of a value converted to type `t`."""
    scalar = types.scalar_of(t)
    if scalar is None:
        return copied(value)
    with np.errstate(all="ignore"):
        data = np.asarray(value).astype(NUMPY_BY_KIND[scalar.kind])
    return in_kernel_form(np.broadcast_to(data, shape_of(t)).copy())


def zero(t: Type, classes: Classes, fill: Any = 0) -> Any:
    """A value of type `t` with the number `fill` everywhere."""
    if isinstance(t, types.LocalArray):
        elements = [zero(t.element, classes, fill) for _ in range(t.count)]
        return LocalArrayValue(elements, t.element)
    if isinstance(t, types.Struct):
        return classes.get(t, SimpleNamespace)(**{n: zero(f, classes, fill) for n, f in t.fields})
    return fitted(fill, t)


def from_numpy(data: Any, t: Type, classes: Classes) -> Any:
    """The value of type `t` that a kernel reads from `data`, an array element or host value."""
    if isinstance(t, types.LocalArray):
        elements = [from_numpy(_at(data, k), t.element, classes) for k in range(t.count)]
        return LocalArrayValue(elements, t.element)
    if isinstance(t, types.Tuple):
        return tuple(from_numpy(data[str(k)], e, classes) for k, e in enumerate(t.elements))
    if isinstance(t, types.Struct):
        fields = {name: from_numpy(_field(data, name), f, classes) for name, f in t.fields}
        return classes.get(t, SimpleNamespace)(**fields)
    return fitted(data, t)


def _at(data: Any, k: int) -> Any:
    if isinstance(data, dict):
        return {name: _at(part, k) for name, part in cast("dict[str, Any]", data).items()}
    return data[k]


def _field(data: Any, name: str) -> Any:
    if isinstance(data, dict | np.ndarray | np.void):
        return cast("Any", data)[name]
    return getattr(data, name)
