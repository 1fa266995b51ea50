"""Values that behave in Python as they do in a kernel: vectors with swizzles, local arrays, pairs.

Scalars are NumPy's, so that floats round and ints wrap as on a device. Invariant: what is assigned
or passed is a copy (`copied`); only reads give the thing itself, so that ``b[i].x = 1.0`` writes
into ``b``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.frontend.annotations import NUMPY_BY_KIND, shape_of
from shaderad.frontend.structs import info_of
from shaderad.ir import types
from shaderad.ir.shown import is_printable, shown, shown_array
from shaderad.ir.types import Type

_LETTERS = ("xyzw", "rgba")
Classes = Mapping[types.Struct, type]
"""The Python classes of structs; a derivative's struct has none."""


def checked(index: Any, length: int, name: str) -> int:
    """An index as Python's int.

    Raises:
        BoundsError: SR0675 where it is out of range; negative is.
    """
    if not 0 <= index < length:
        raise error("SR0675", name=name, index=index, length=length)
    return int(index)


class Vector(np.ndarray[Any, Any]):
    """``float3`` and the like: an array with components."""

    def __getattr__(self, name: str) -> Any:
        columns = _columns(name, len(self))
        if columns is None:
            raise AttributeError(f"{type(self).__name__} has no component {name}")
        return super().__getitem__(columns[0] if len(columns) == 1 else columns)

    def __setattr__(self, name: str, value: Any) -> None:
        columns = _columns(name, len(self))
        if columns is None:
            super().__setattr__(name, value)
        else:
            super().__setitem__(columns[0] if len(columns) == 1 else columns, value)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_inside(index, len(self), "the vector"))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_inside(index, len(self), "the vector"), value)

    def __repr__(self) -> str:
        return shown_array(np.asarray(self), _spelled(self))

    __str__ = __repr__


class Matrix(np.ndarray[Any, Any]):
    """``float3x3`` and the like; its rows are vectors."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(_inside(index, len(self), "the matrix"))
        return found.view(Vector) if found.ndim == 1 else found

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_inside(index, len(self), "the matrix"), value)

    def __repr__(self) -> str:
        return shown_array(np.asarray(self), _spelled(self))

    __str__ = __repr__


def _inside(index: Any, length: int, name: str) -> Any:
    """A number checked; NumPy itself also asks for slices."""
    is_number = isinstance(index, int | np.integer)
    return checked(index, length, name) if is_number else index


def _spelled(value: np.ndarray[Any, Any]) -> str:
    """The type as users write it."""
    kind = next(k for k, t in NUMPY_BY_KIND.items() if value.dtype == t)
    return kind.value + "x".join(map(str, value.shape))


def _columns(name: str, count: int) -> list[int] | None:
    """Where the letters of a swizzle stand; `None` for other names."""
    for letters in _LETTERS:
        if 1 <= len(name) <= 4 and set(name) <= set(letters[:count]):
            return [letters.index(c) for c in name]
    return None


class LocalArray(list[Any]):
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


class Pair:
    """``sad.DifferentialPair[T]``: a primal ``p`` and a derivative ``d``."""

    def __init__(self, p: Any, d: Any) -> None:
        self.p = p
        self.d = d

    def __repr__(self) -> str:
        return f"Pair(p={self.p!r}, d={self.d!r})"


class Shown:
    """A value as ``print`` and f-strings show it, in a kernel and here."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return _text(self._value, str)

    def __repr__(self) -> str:
        return _text(self._value, repr)

    def __format__(self, spec: str) -> str:
        value = self._value
        if spec and isinstance(value, np.generic | Vector | Matrix):
            return _text(value, str, spec)
        return format(value, spec) if spec else str(self)


def _text(value: Any, otherwise: Callable[[Any], str], spec: str = "") -> str:
    if isinstance(value, Vector | Matrix):
        return shown_array(np.asarray(value), _spelled(value), spec)
    if isinstance(value, np.generic):
        return shown(value, types.FLOAT, spec)
    if isinstance(value, LocalArray):
        return shown(value, types.LocalArray(value.element, len(value)))
    if isinstance(value, tuple):
        parts = [_text(one, otherwise) for one in cast("tuple[Any, ...]", value)]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    info = None if isinstance(value, type) else info_of(value)
    if info is None or not is_printable(info.ir_type):
        return otherwise(value)
    return shown(value, info.ir_type)


def in_kernel_form(value: Any) -> Any:
    """What NumPy or Python computed, as the kernel language has it: arrays as vectors, 32 bits."""
    if isinstance(value, np.ndarray | np.generic):
        found: Any = np.asarray(cast("Any", value))
        if found.ndim:
            return found.view(Vector if found.ndim == 1 else Matrix)
        return bool(found) if found.dtype.kind == "b" else found[()]
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return np.int32(value) if -(2**31) <= value < 2**31 else value
    return np.float32(value) if isinstance(value, float) else value


def copied(value: Any) -> Any:
    """The value that an assignment binds."""
    if isinstance(value, np.ndarray):
        return in_kernel_form(value.copy())
    if isinstance(value, LocalArray):
        return LocalArray([copied(one) for one in value], value.element)
    if isinstance(value, tuple):
        return tuple(copied(one) for one in cast("tuple[Any, ...]", value))
    if isinstance(value, Pair):
        return Pair(copied(value.p), copied(value.d))
    info = None if isinstance(value, type) else info_of(value)
    if info is None:
        return in_kernel_form(value)
    made = copy.copy(value)
    for name in info.annotations:
        setattr(made, name, copied(getattr(made, name)))
    return made


def fitted(value: Any, t: Type) -> Any:
    """A copy of a value as type `t` holds it."""
    scalar = types.scalar_of(t)
    if scalar is None:
        return copied(value)
    with np.errstate(all="ignore"):
        data = np.asarray(value).astype(NUMPY_BY_KIND[scalar.kind])
    return in_kernel_form(np.broadcast_to(data, shape_of(t)).copy())


def zero(t: Type, classes: Classes, fill: Any = 0) -> Any:
    """A value of type `t` with the same number everywhere."""
    if isinstance(t, types.LocalArray):
        return LocalArray([zero(t.element, classes, fill) for _ in range(t.count)], t.element)
    if isinstance(t, types.Struct):
        return classes.get(t, SimpleNamespace)(**{n: zero(f, classes, fill) for n, f in t.fields})
    return fitted(fill, t)


def from_numpy(data: Any, t: Type, classes: Classes) -> Any:
    """One element of a host array, or a host value, as a kernel reads it."""
    if isinstance(t, types.LocalArray):
        elements = [from_numpy(_at(data, k), t.element, classes) for k in range(t.count)]
        return LocalArray(elements, t.element)
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
