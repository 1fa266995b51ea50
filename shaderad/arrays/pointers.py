"""`sad.pointer`, and arrays of structs that hold pointers.

Invariant: a pointer never changes, and keeps its target alive. Structs that hold pointers stay on
the host until a kernel reads them, because their targets get positions in device memory only then.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.arrays.containers import Container, Tuples, items_of, register
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Struct
from shaderad.language.structs import info_of

__all__ = ["pointer"]


class StructArray:
    """An array of structs that hold pointers: a sequence of host structs."""

    def __init__(self, structs: Sequence[Any]) -> None:
        self._structs = tuple(copy.copy(struct) for struct in structs)

    def __len__(self) -> int:
        return len(self._structs)

    def __getitem__(self, number: int) -> Any:
        return self._structs[number]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._structs)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __repr__(self) -> str:
        return f"StructArray({list(self._structs)!r})"


class HostPointer:
    """A pointer to the elements of `target`, an array; made by `sad.pointer`."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, key: Any) -> Any:
        return self.target[key]

    def numpy(self) -> np.ndarray[Any, Any]:
        """The target as a NumPy array."""
        return np.asarray(self.target)

    def __repr__(self) -> str:
        return f"sad.pointer({self.target!r})"


class Pointers(Container):
    """Pointers in trees: the target is the only part."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return None, (tree.target,)

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return ("target",)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return HostPointer(parts[0])

    @classmethod
    def step(cls, key: Any) -> str:
        return ""

    @classmethod
    def derivative(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return None if parts[0] is None else HostPointer(parts[0])

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        if isinstance(derivative, int):
            return (None,)  # 0 replaces a pointer whose target holds no floats
        return (derivative.target,) if isinstance(derivative, HostPointer) else None

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return "sad.pointer(...)"


class StructArrays(Tuples):
    """Arrays of structs that hold pointers, in trees."""

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return StructArray(parts)

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return f"array of {count} structs"


register(HostPointer, Pointers)
register(StructArray, StructArrays)


@api_boundary
def pointer(target: Any) -> HostPointer:
    """A pointer to the elements of an array, for fields annotated `sad.Pointer[T]`.

    Args:
        target: An `Array` or array-like with one axis; for structs that hold pointers themselves a
            list of them; `None` or an empty list for a null pointer.

    Returns:
        The pointer; it keeps `target` alive.

    Raises:
        ShapeError: SR0392 for a `target` that is no array.

    Differentiable: a gradient has pointers where its argument has them. Each points to the gradient
    of the elements read through it, so two pointers to one array have two gradients.
    """
    if isinstance(target, HostPointer):
        return target
    if target is None:
        return HostPointer(())
    if not _has_elements(target):
        raise error("SR0392", found=type(target).__name__)
    return HostPointer(StructArray(target) if is_pointer_structs(target) else target)


def _has_elements(target: Any) -> bool:
    """True if `target` may be an array; its elements are checked when it is used."""
    if isinstance(target, list | tuple | Mapping | StructArray):
        return True
    is_array = hasattr(target, "__array__") or hasattr(target, "__dlpack__")
    return is_array and getattr(target, "shape", None) != ()


def is_pointer_structs(value: Any) -> bool:
    """True if `value` is a sequence of structs that hold pointers."""
    items = items_of(value)
    return bool(items) and all(pointer_struct(item) is not None for item in items)


def pointer_struct(value: Any) -> Struct | None:
    """The type of a host struct that holds pointers; `None` for anything else."""
    info = None if isinstance(value, type) else info_of(value)
    return info.ir_type if info is not None and holds_pointers(info.ir_type) else None
