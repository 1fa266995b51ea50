"""Trees of tensors <-> a structure, and the flat lists that operators of other libraries take.

A structure is a nested tuple of constants, so it is hashable and the compiler of another library
can keep it. Invariant: it holds neither numbers nor the content of tensors, so each function is
called with few structures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import Enum
from threading import Lock
from typing import Any, cast

from shaderad.arrays.trees import HostPointer
from shaderad.diagnostics import error
from shaderad.language.structs import info_of

Structure = tuple[str, Any, tuple[Any, ...]]
"""A kind, a detail that depends on it, and the structures of the parts."""

TENSOR: Structure = ("tensor", None, ())
_INT: Structure = ("int", None, ())
_FLOAT: Structure = ("float", None, ())


class Leaves:
    """The leaves of a tree, sorted into tensors, ints and floats."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.whole: list[int] = []
        self.real: list[float] = []

    def number(self, leaf: Any) -> Structure | None:
        """Adds a number or constant and returns its structure; `None` for anything else."""
        if leaf is None or isinstance(leaf, bool | str | Enum):
            # By type as well: True equals 1, and so may a member of an IntEnum.
            return ("fixed", (type(leaf), leaf), ())
        if isinstance(leaf, int):
            self.whole.append(leaf)
            return _INT
        if isinstance(leaf, float):
            self.real.append(leaf)
            return _FLOAT
        return None


def structure_of(tree: Any, place: Callable[[Any], Structure | None], name: str) -> Structure:
    """The structure of `tree`; ``place(leaf)`` gives the structure of each leaf.

    Raises:
        DerivativeError: SR0477 for a leaf to which `place` gives none.
    """
    if isinstance(tree, tuple | list):
        items = cast("list[Any]", tree)
        parts = [structure_of(x, place, f"{name}[{k}]") for k, x in enumerate(items)]
        if hasattr(items, "_fields"):
            return ("named", type(items), tuple(parts))
        return ("list" if isinstance(tree, list) else "tuple", None, tuple(parts))
    if isinstance(tree, dict):
        named = cast("dict[Any, Any]", tree)
        parts = [structure_of(x, place, f"{name}[{key!r}]") for key, x in named.items()]
        return ("mapping", tuple(named), tuple(parts))
    if isinstance(tree, HostPointer):
        return ("pointer", None, (structure_of(tree.target, place, name),))
    placed = place(tree)
    if placed is not None:
        return placed
    # `@sad.struct` makes dataclasses, too.
    if not dataclasses.is_dataclass(tree) or isinstance(tree, type):
        raise error("SR0477", name=name, found=type(tree).__name__)
    names = tuple([field.name for field in dataclasses.fields(tree)])
    parts = [
        structure_of(getattr(tree, field_name), place, f"{name}.{field_name}")
        for field_name in names
    ]
    return ("object", (type(tree), names), tuple(parts))


def structure_of_call(
    args: tuple[Any, ...], keywords: dict[str, Any], place: Callable[[Any], Structure | None]
) -> Structure:
    """The structure of ``(args, keywords)``.

    Raises:
        DerivativeError: SR0477 for a leaf that has no place.
    """
    parts = structure_of(args, place, "args"), structure_of(keywords, place, "keywords")
    return ("tuple", None, parts)


def tree_of(
    structure: Structure, tensors: Iterator[Any], whole: Iterator[int], real: Iterator[float]
) -> Any:
    """The tree of a structure with these leaves."""
    kind, detail, inner = structure
    if kind == "tensor":
        return next(tensors)
    if kind == "int":
        return next(whole)
    if kind == "float":
        return next(real)
    if kind == "fixed":
        return detail[1]
    parts = [tree_of(nested, tensors, whole, real) for nested in inner]
    if kind == "mapping":
        return dict(zip(detail, parts, strict=True))
    if kind == "pointer":
        return HostPointer(parts[0])
    if kind == "object":
        return _object(detail[0], detail[1], parts)
    if kind == "named":
        return detail(*parts)
    return parts if kind == "list" else tuple(parts)


def derivative_tree(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The derivatives of the tensors, as a tree of this structure; `None` for parts without any.

    Dicts replace dataclasses and structs.
    """
    kind, detail, inner = structure
    if kind == "tensor":
        return next(leaves)
    parts = [derivative_tree(nested, leaves) for nested in inner]
    if all(part is None for part in parts):
        return None
    if kind == "object":
        return dict(zip(detail[1], parts, strict=True))
    return tree_of((kind, detail, (TENSOR,) * len(parts)), iter(parts), iter(()), iter(()))


def _object(cls: type, names: tuple[str, ...], parts: list[Any]) -> Any:
    # Without calling the class, whose constructor may check or convert fields.
    instance: Any = object.__new__(cast("Any", cls))
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(instance, name, part)
    return instance


def with_dicts(structure: Structure) -> Structure:
    """`structure` with a dict in place of each dataclass that is not a kernel struct."""
    kind, detail, inner = structure
    parts = tuple(with_dicts(nested) for nested in inner)
    if kind == "object" and info_of(detail[0]) is None:
        return ("mapping", detail[1], parts)
    return (kind, detail, parts)


def tensor_count(structure: Structure) -> int:
    """The number of tensors in a structure."""
    return 1 if structure[0] == "tensor" else sum(map(tensor_count, structure[2]))


def keys_of(structure: Structure) -> Sequence[Any]:
    """The keys of the parts in a tree: positions, names, or the target of a pointer."""
    kind, detail, inner = structure
    if kind == "mapping":
        return detail
    if kind == "object":
        return detail[1]
    return ("target",) if kind == "pointer" else range(len(inner))


def children(structure: Structure, tree: Any) -> list[Any]:
    """The part of `tree` for each part of its structure; `None` if it is missing."""
    return [_child(tree, key) for key in keys_of(structure)]


def _child(tree: Any, key: Any) -> Any:
    if isinstance(tree, dict):
        return cast("dict[Any, Any]", tree).get(key)
    if isinstance(key, str):
        return getattr(tree, key, None)
    return None if isinstance(tree, int) or tree is None else tree[key]


class Forms:
    """Numbers that operators use as names for the structures and other constants of calls."""

    def __init__(self) -> None:
        self._forms: list[Any] = []
        self._numbers: dict[Hashable, int] = {}
        self._lock = Lock()

    def __getitem__(self, number: int) -> Any:
        return self._forms[number]

    def number(self, form: Hashable) -> int:
        """The number of a form; equal forms have the same number."""
        number = self._numbers.get(form)
        if number is not None:
            return number
        with self._lock:
            if form not in self._numbers:
                self._forms.append(form)
                self._numbers[form] = len(self._forms) - 1
            return self._numbers[form]
