"""The kinds of containers in trees of arguments: how they come apart, and what they are built of.

Tuples, lists, dicts and structs are containers, dataclasses that hold arrays, and each class that
`register` names; everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from shaderad.language.structs import as_declared, class_of, info_of


class Container(ABC):
    """A kind of container: how it comes apart, and how it is built from its parts.

    `detail` is what else its form depends on, such as its class.
    """

    @classmethod
    @abstractmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        """The detail and the parts of a container of this kind."""

    @classmethod
    @abstractmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        """The key of each part."""

    @classmethod
    def step(cls, key: Any) -> str:
        """The text that leads to a part."""
        return f"[{key!r}]"

    @classmethod
    @abstractmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        """The container with these parts."""

    @classmethod
    @abstractmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        """The parts of a derivative of such a container; `None` if it does not look like one."""

    @classmethod
    def derivative(cls, detail: Any, parts: Sequence[Any]) -> Any:
        """A derivative of such a container from those of its parts, `None` for one without."""
        return cls.built(detail, parts)

    @classmethod
    def tangent(cls, detail: Any, parts: Sequence[Any]) -> Any:
        """The same for tangents, if they are of another form than gradients."""
        return cls.derivative(detail, parts)

    @classmethod
    @abstractmethod
    def described(cls, detail: Any, count: int) -> str:
        """The kind as text for messages."""


def container_of(tree: Any) -> type[Container] | None:
    """The kind of a container; `None` for a leaf. Lists of numbers are data: leaves.

    An empty list may be one of layers, so it stays a list.
    """
    cls = class_of(tree)
    if cls in _KINDS:
        return _KINDS[cls]
    if isinstance(tree, list):
        return None if tree and is_data(cast("list[Any]", tree)) else Lists
    if isinstance(tree, tuple):
        return Tuples
    if isinstance(tree, dict):
        return Mappings
    if info_of(cls) is not None:
        return None if cls is type else Structs
    is_dataclass = hasattr(cls, "__dataclass_fields__") and not cls.__module__.startswith(_OWN)
    return Dataclasses if is_dataclass and _holds_array(tree) else None


_OWN = "shaderad."


def _holds_array(tree: Any) -> bool:
    """True if a dataclass holds an array at any depth; one of plain settings is a leaf."""
    return any(map(_is_or_holds_array, Dataclasses.taken_apart(tree)[1]))


def _is_or_holds_array(part: Any) -> bool:
    kind = container_of(part)
    if kind is Dataclasses:
        return True
    if kind is not None:
        return any(map(_is_or_holds_array, kind.taken_apart(part)[1]))
    cls = class_of(part)
    is_array = hasattr(cls, "__array__") and not issubclass(cls, np.generic)
    return is_array or (cls in _KINDS and cls not in _PLAIN)


def register(cls: type, kind: type[Container] | None) -> None:
    """Makes the instances of a class containers of a kind, or leaves."""
    _KINDS[cls] = kind


_PLAIN = (float, int, bool)
_KINDS: dict[type, type[Container] | None] = {float: None, int: None, bool: None, np.ndarray: None}


def is_data(parts: Iterable[Any]) -> bool:
    """True if the parts of a list are the rows of an array: numbers, or sequences of them."""
    for part in parts:
        if isinstance(part, tuple | list):
            if not is_data(cast("Sequence[Any]", part)):
                return False
        elif not isinstance(part, int | float | np.generic):
            return False
    return True


# Details name no class of Python itself: the compiler of PyTorch guards none in a constant.


class Tuples(Container):
    """Tuples; the detail is the class of a named one."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return class_of(tree) if hasattr(tree, "_fields") else None, tree

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return range(count)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return tuple(parts) if detail is None else detail(*parts)

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        parts = items_of(derivative)
        return None if parts is None or len(parts) != count else parts

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return f"{'tuple' if detail is None else detail.__name__} of {count}"


class Lists(Tuples):
    """Lists."""

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return list(parts)

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return f"list of {count}"


def items_of(tree: Any) -> Sequence[Any] | None:
    """The parts of a tuple, list, or other sequence of containers; `None` for anything else."""
    if isinstance(tree, tuple | list):
        return cast("Sequence[Any]", tree)
    kind = _KINDS.get(class_of(tree))
    is_sequence = kind is not None and issubclass(kind, Tuples)
    return kind.taken_apart(tree)[1] if kind is not None and is_sequence else None


class Mappings(Container):
    """Dicts; the detail is `None` and the keys."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return (None, tuple(tree)), [*tree.values()]

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return detail[1]

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return dict(zip(detail[1], parts, strict=True))

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        fields = struct_fields(derivative)
        if fields is None or set(fields) != set(detail[1]):
            return None
        return [fields[key] for key in detail[1]]

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        named = f" with {', '.join(map(str, detail[1]))}" if detail[1] else ""
        return f"{'dict' if detail[0] is None else detail[0].__name__}{named}"


class Structs(Mappings):
    """Structs, and dicts that stand for one; the detail is the class, if any, and the fields."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        fields = struct_fields(tree) or {}
        info = None if isinstance(tree, dict) else info_of(tree)
        if info is not None:
            types = info.ir_type.type_by_field
            fields = {name: as_declared(x, types[name]) for name, x in fields.items()}
        return (struct_class(tree), tuple(fields)), [*fields.values()]

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return rebuilt(detail[0], dict(zip(detail[1], parts, strict=True)))

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        fields = struct_fields(derivative)
        if fields is None or not set(fields) <= set(detail[1]):
            return None
        return [fields.get(key) for key in detail[1]]  # one that is left out is zero

    @classmethod
    def step(cls, key: Any) -> str:
        return f".{key}"

    @classmethod
    def derivative(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return cls.built(detail, [0 if part is None else part for part in parts])


class Dataclasses(Mappings):
    """Dataclasses, structs among them; the detail is the class and the fields."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        names = tuple([f.name for f in dataclasses.fields(tree) if hasattr(tree, f.name)])
        return (class_of(tree), names), [getattr(tree, name) for name in names]

    @classmethod
    def step(cls, key: Any) -> str:
        return f".{key}"

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        # Without calling the class, whose constructor may check or convert fields.
        instance = object.__new__(detail[0])
        for name, part in zip(detail[1], parts, strict=True):
            object.__setattr__(instance, name, part)
        return instance

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        if isinstance(derivative, detail[0]):
            return cls.taken_apart(derivative)[1]
        return super().parts_of(detail, count, derivative)


register(tuple, Tuples)
register(dict, Mappings)


def struct_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a host struct or of a dict that stands for one; `None` for anything else."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    info = None if isinstance(value, type) else info_of(value)
    return None if info is None else {name: getattr(value, name) for name in info.annotations}


def struct_class(value: Any) -> Any:
    """The class of a host struct; `None` for a dict that stands for one."""
    return None if isinstance(value, dict) else class_of(value)


def rebuilt(cls: Any, fields: dict[str, Any]) -> Any:
    """A struct of a class, or a dict without one, with these fields."""
    if cls is None:
        return fields
    # Without calling the class, which would turn array fields into one array of structs.
    result = object.__new__(cls)
    for name, value in fields.items():
        setattr(result, name, value)
    return result
