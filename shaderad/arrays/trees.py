"""Nested containers of arguments and results: tuples, lists, dicts, structs, pointers.

Everything else is a leaf. ``sad.pointer`` makes the Python values of struct fields annotated
`sad.Pointer`. Invariant: a pointer never changes, and keeps its target alive. Structs that hold
pointers stay on the host until a kernel reads them, because their targets get positions in device
memory only then.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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


class Branch(ABC):
    """A value of ours that holds others."""

    __slots__ = ()

    @property
    def key(self) -> Hashable:
        """Its form, without the content of its parts."""
        return type(self)

    @property
    @abstractmethod
    def parts(self) -> dict[Any, Any]:
        """The values that it holds."""

    @abstractmethod
    def with_parts(self, parts: dict[Any, Any]) -> Any:
        """A value like this one that holds `parts`."""

    @abstractmethod
    def derivatives(self, derivative: Any) -> dict[Any, Any] | None:
        """The derivatives of its parts in one of it; `None` if that is none."""


class HostPointer(Branch):
    """A pointer to the elements of `target`, an array; made by `sad.pointer`."""

    def __init__(self, target: Any) -> None:
        self.target = target

    @property
    def parts(self) -> dict[Any, Any]:
        return {"target": self.target}

    def with_parts(self, parts: dict[Any, Any]) -> HostPointer:
        return HostPointer(parts["target"])

    def derivatives(self, derivative: Any) -> dict[Any, Any] | None:
        if isinstance(derivative, int):
            return {"target": None}  # 0 replaces a pointer whose target holds no floats
        return derivative.parts if isinstance(derivative, HostPointer) else None

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, key: Any) -> Any:
        return self.target[key]

    def numpy(self) -> np.ndarray[Any, Any]:
        """The target as a NumPy array."""
        return np.asarray(self.target)

    def __repr__(self) -> str:
        return f"sad.pointer({self.target!r})"


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


def structs_of(value: Any) -> Sequence[Any] | None:
    """The items of a list of structs, or of an array of them; `None` for anything else."""
    if isinstance(value, StructArray):
        return tuple(value)
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None


def is_pointer_structs(value: Any) -> bool:
    """True if `value` is a sequence of structs that hold pointers."""
    items = structs_of(value)
    return bool(items) and all(pointer_struct(item) is not None for item in items)


def pointer_struct(value: Any) -> Struct | None:
    """The type of a host struct that holds pointers; `None` for anything else."""
    info = None if isinstance(value, type) else info_of(value)
    return info.ir_type if info is not None and holds_pointers(info.ir_type) else None


# -- trees ------------------------------------------------------------------------------------


def struct_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a host struct or of a dict that stands for one; `None` for anything else."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    info = None if isinstance(value, type) else info_of(value)
    return None if info is None else {name: getattr(value, name) for name in info.annotations}


def rebuilt(like: Any, fields: dict[str, Any]) -> Any:
    """A struct of the class of `like`, or a dict, with other fields."""
    if isinstance(like, dict):
        return fields
    # Without calling the class, which would turn array fields into one array of structs.
    result: Any = object.__new__(cast("Any", type(like)))
    for name, value in fields.items():
        setattr(result, name, value)
    return result


def mapped(function: Callable[..., Any], tree: Any, *others: Any, name: str = "value") -> Any:
    """`tree` with each leaf replaced by ``function(leaf, *matching parts of others)``.

    A `None` among `others` stands for a tree of `None`s.

    Raises:
        DerivativeError: SR0452, where another tree is built differently.
    """
    parts = children(tree)
    if parts is None:
        return function(tree, *others)
    if not others:
        return built_like(tree, {key: mapped(function, part) for key, part in parts.items()})
    columns = [matching(tree, parts, other, name) for other in others]
    results = {
        key: mapped(function, part, *(column[key] for column in columns), name=f"{name}[{key!r}]")
        for key, part in parts.items()
    }
    return built_like(tree, results)


def zeros_for_none(tree: Any, values: Any) -> Any:
    """`values`, built like `tree`, with 0 in place of `None` in fields of structs.

    An array of structs may replace a struct, and arrays of levels a texture.
    """
    parts = children(tree)
    is_whole = info_of(tree) is not None and values is not None and children(values) is None
    is_by_levels = isinstance(tree, Branch) and not isinstance(values, Branch | int | None)
    if parts is None or is_whole or is_by_levels:
        return values
    own = matching(tree, parts, values, "value")
    filled = {key: zeros_for_none(part, own[key]) for key, part in parts.items()}
    if info_of(tree) is not None:
        filled = {key: 0 if part is None else part for key, part in filled.items()}
    return built_like(tree, filled)


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree`, in order."""
    parts = children(tree)
    if parts is None:
        return [tree]
    return [leaf for part in parts.values() for leaf in leaves(part)]


def children(tree: Any) -> dict[Any, Any] | None:
    """The parts of a container by key; `None` for a leaf. Lists of numbers are data: leaves."""
    if isinstance(tree, Branch):
        return tree.parts
    parts = _in_order(tree)
    if parts is None:
        return struct_fields(tree)
    return None if isinstance(tree, list) and is_data(parts.values()) else parts


def is_data(parts: Iterable[Any]) -> bool:
    """True if the parts of a list are the rows of an array: numbers, or sequences of them."""
    for part in parts:
        inner = _in_order(part)
        is_number = isinstance(part, int | float | np.generic)
        if not (is_number if inner is None else is_data(inner.values())):
            return False
    return True


def matching(tree: Any, parts: dict[Any, Any], other: Any, name: str) -> dict[Any, Any]:
    """The parts of `other` under the keys of `parts`, which are those of `tree`.

    Raises:
        DerivativeError: SR0452 if `other` is built differently.
    """
    if other is None:
        return dict.fromkeys(parts)
    if isinstance(tree, Branch):
        other_parts = tree.derivatives(other)
    else:
        is_sequence = _in_order(tree) is not None
        other_parts = _in_order(other) if is_sequence else struct_fields(other)
    if other_parts is None or set(other_parts) != set(parts):
        raise error("SR0452", name=name, wanted=described(tree), found=described(other))
    return other_parts


def _in_order(tree: Any) -> dict[Any, Any] | None:
    """The parts of a tuple, list or array of host structs by position."""
    if not isinstance(tree, tuple | list | StructArray):
        return None
    return dict(enumerate(cast("Sequence[Any]", tree)))


def built_like(tree: Any, parts: dict[Any, Any]) -> Any:
    """A container like `tree` with other parts."""
    if isinstance(tree, Branch):
        return tree.with_parts(parts)
    if _in_order(tree) is None:
        return rebuilt(tree, parts)
    if hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*parts.values())
    return type(tree)(parts.values())


def described(tree: Any) -> str:
    """The form of a tree as text for messages."""
    parts = _in_order(tree)
    if parts is not None:
        return f"{type(tree).__name__} of {len(parts)}"
    fields = struct_fields(tree) or {}
    named = f" with {', '.join(fields)}" if fields else ""
    return f"{type(tree).__name__}{named}"
