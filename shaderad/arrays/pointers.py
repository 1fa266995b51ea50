"""``sad.pointer``: what the fields of structs annotated `sad.Pointer` hold in Python.

Invariant: a pointer never changes, and keeps alive what it leads to. Structs that hold pointers
stay on the host until a kernel reads them, because only then is it known where their pointers lead.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Struct
from shaderad.language.structs import info_of

__all__ = ["pointer"]


class StructArray:
    """An array of structs that hold pointers: a sequence of host structs."""

    def __init__(self, structs: Sequence[Any]) -> None:
        self._structs = tuple(copy.copy(one) for one in structs)

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
    """Leads to the elements of `target`, an array; made by `sad.pointer`."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, key: Any) -> Any:
        return self.target[key]

    def numpy(self) -> np.ndarray[Any, Any]:
        """What it leads to as a NumPy array."""
        return np.asarray(self.target)

    def __repr__(self) -> str:
        return f"sad.pointer({self.target!r})"


@api_boundary
def pointer(target: Any) -> HostPointer:
    """A pointer to the elements of an array, for fields annotated `sad.Pointer[T]`.

    Args:
        target: An `Array` or array-like with one axis; for structs that hold pointers themselves a
            list of them; `None` or an empty list for a pointer to nothing.

    Raises:
        ShapeError: SR0392 for what is no array.

    Differentiable: a gradient has pointers where its argument has them, each to the gradient by its
    own elements, also where two lead to one array.
    """
    if isinstance(target, HostPointer):
        return target
    if target is None:
        return HostPointer(())
    if not _has_elements(target):
        raise error("SR0392", found=type(target).__name__)
    return HostPointer(StructArray(target) if is_pointer_structs(target) else target)


def _has_elements(target: Any) -> bool:
    """Whether `target` may be an array: what its elements are is asked where it is used."""
    if isinstance(target, list | tuple | Mapping | StructArray):
        return True
    is_array = hasattr(target, "__array__") or hasattr(target, "__dlpack__")
    return is_array and getattr(target, "shape", None) != ()


def structs_of(value: Any) -> Sequence[Any] | None:
    """The items of a list of structs, or of an array of them; `None` for anything else."""
    if isinstance(value, StructArray):
        return tuple(value)
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None


def is_pointer_structs(value: Any) -> bool:
    """Whether `value` is a sequence of structs that hold pointers."""
    items = structs_of(value)
    return bool(items) and all(pointer_struct(one) is not None for one in items)


def pointer_struct(value: Any) -> Struct | None:
    """The type of a host struct that holds pointers; `None` for anything else."""
    info = None if isinstance(value, type) else info_of(value)
    return info.ir_type if info is not None and holds_pointers(info.ir_type) else None
