"""The arrays of a kernel as one thread sees them.

In arrays hold the caller's data; written arrays start as on a device and hold the writes of this
thread alone. Invariant: an index out of range never reaches an element; it is an error at its line,
or, with ``bounds="ignore"``, reads 0 and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from shaderad.debug.values import Classes, checked, copied, fitted, from_numpy, zero
from shaderad.diagnostics import BoundsError
from shaderad.interpret.memory import neutral
from shaderad.ir import types
from shaderad.ir.types import Access, Type
from shaderad.language.annotations import NUMPY_BY_KIND

Index = tuple[int, ...]


class KernelArray:
    """Shape and index checks of an array."""

    def __init__(
        self, name: str, t: types.BufferType, shape: Sequence[int], classes: Classes, bounds: str
    ) -> None:
        self._name = name
        self._type = t
        self._classes = classes
        self._is_silent = bounds != "raise"
        self.shape = tuple(shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{self._type} of shape {self.shape}"

    def _position(self, key: Any) -> Index | None:
        """The checked index; `None` where it is out of range under ``bounds="ignore"``."""
        index = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
        pairs = zip(index, self.shape, strict=True)
        try:
            return tuple(checked(i, length, f"`{self._name}`") for i, length in pairs)
        except BoundsError:
            if self._is_silent:
                return None
            raise

    def _zero(self) -> Any:
        return zero(self._type.element, self._classes)


class ReadArray(KernelArray):
    """An In array over the host's data."""

    def __init__(
        self, name: str, t: types.BufferType, data: Any, shape: Sequence[int], classes: Classes,
        bounds: str,
    ) -> None:  # fmt: skip
        super().__init__(name, t, shape, classes, bounds)
        self._data = data

    def __getitem__(self, key: Any) -> Any:
        position = self._position(key)
        if position is None:
            return self._zero()
        return from_numpy(self._data[position], self._type.element, self._classes)


class WrittenArray(KernelArray):
    """An Out, Add, Min or Max array: the elements that this thread read or wrote."""

    def __init__(
        self, name: str, t: types.BufferType, shape: Sequence[int], classes: Classes, bounds: str
    ) -> None:
        super().__init__(name, t, shape, classes, bounds)
        self._elements: dict[Index, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        position = self._position(key)
        if position is None:
            return self._zero()
        return self._elements.setdefault(position, self._start())

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        if position is not None:
            self._elements[position] = fitted(value, self._type.element)

    def _start(self) -> Any:
        t: Type = self._type.element
        scalar = types.scalar_of(t)
        if self._type.access in (Access.MIN, Access.MAX) and scalar is not None:
            dtype = np.dtype(NUMPY_BY_KIND[scalar.kind])
            return zero(t, self._classes, neutral(self._type.access, dtype))
        return self._zero()

    def written(self) -> dict[Any, Any]:
        """Copies of the elements by index: an int for one axis, else a tuple."""
        return {
            index[0] if len(index) == 1 else index: copied(value)
            for index, value in self._elements.items()
        }


class PointerTarget(KernelArray):
    """The target of a pointer: an array of the host, or a list of structs with pointers."""

    def __init__(
        self, name: str, t: types.Pointer, elements: Sequence[Any], read: Callable[[Any], Any],
        classes: Classes, bounds: str,
    ) -> None:  # fmt: skip
        array = types.BufferType(Access.IN, t.element)
        super().__init__(name, array, (len(elements),), classes, bounds)
        self._elements = elements
        self._read = read

    def __getitem__(self, key: Any) -> Any:
        position = self._position(key)
        return self._zero() if position is None else self._read(self._elements[position[0]])
