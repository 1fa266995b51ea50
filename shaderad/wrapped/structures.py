"""Trees of tensors <-> a structure, and the flat lists that operators of other libraries take.

Invariant: a structure is hashable, so that the compiler of another library can keep it, and holds
neither numbers, textures, nor the content of tensors. So each function is called with few
structures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from threading import Lock
from typing import Any, cast

import numpy as np

from shaderad.arrays.containers import Container, Dataclasses, Lists, Mappings, Tuples
from shaderad.arrays.pointers import HostPointer, Pointers
from shaderad.arrays.textures import Texture
from shaderad.arrays.trees import Structure, built, flatten, folded
from shaderad.diagnostics import error
from shaderad.language.structs import info_of
from shaderad.runtime.textures import SamplerSettings

HostArray = np.ndarray[Any, Any]
Plain = tuple[Any, Any, tuple[Any, ...]]
"""A structure, or the same in tuples alone, which the compiler of PyTorch keeps as a constant."""

TENSOR, _INT, _FLOAT, _TEXTURE = (
    Structure(None, word, ()) for word in ("tensor", "int", "float", "texture")
)


def _kind_of(tree: Any) -> type[Container] | None:
    # PyTorch's compiler traces this, so it looks classes up by nothing but `isinstance`.
    if isinstance(tree, tuple):
        return Tuples
    if isinstance(tree, list):
        return Lists
    if isinstance(tree, dict):
        return Mappings
    if isinstance(tree, HostPointer):
        return Pointers
    # Structs and samplers are dataclasses, too.
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return Dataclasses
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class CallLeaves:
    """The leaves of the arguments of one call."""

    tensors: Sequence[HostArray]
    whole: Sequence[int]
    real: Sequence[float]
    textures: Sequence[Texture] = ()

    def __post_init__(self) -> None:
        if any(texture.is_followed for texture in self.textures):
            raise error("SR0483")

    def tree(self, structure: Structure, tensors: Sequence[Any]) -> Any:
        """The tree of a structure with these leaves, but `tensors` in place of host arrays."""
        numbers = iter(self.whole), iter(self.real)
        return tree_of(structure, iter(tensors), *numbers, self.textures)

    def with_tensors(self, tensors: Sequence[HostArray]) -> CallLeaves:
        """The same leaves with other tensors."""
        return dataclasses.replace(self, tensors=tensors)


class Leaves:
    """The leaves of a tree, sorted into tensors, ints, floats, and textures."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.whole: list[int] = []
        self.real: list[float] = []
        self.textures: list[Texture] = []

    def with_content(self, tensors: Sequence[HostArray]) -> CallLeaves:
        """The leaves of a call, with the content of the tensors."""
        return CallLeaves(tensors, self.whole, self.real, self.textures)

    def constant(self, leaf: Any) -> Structure | None:
        """Adds a texture, number, or constant and returns its structure; `None` for others."""
        if isinstance(leaf, Texture):
            self.textures.append(leaf)
            return _TEXTURE
        return self.number(leaf)

    def number(self, leaf: Any) -> Structure | None:
        """Adds a number or constant and returns its structure; `None` for anything else."""
        if leaf is None or isinstance(leaf, bool | str | Enum):
            # By type as well: True equals 1, and so may a member of an IntEnum.
            return Structure(None, (type(leaf), leaf), ())
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
    leaves, structure = flatten(tree, _kind_of)
    placed = list(map(place, leaves))
    for leaf, path, own in zip(leaves, structure.spelled(), placed, strict=True):
        if own is None:
            raise error("SR0477", name=name + path, found=type(leaf).__name__)
    return structure.with_leaves(cast("list[Structure]", placed))


def structure_of_call(
    args: tuple[Any, ...], keywords: dict[str, Any], place: Callable[[Any], Structure | None]
) -> Structure:
    """The structure of ``(args, keywords)``.

    Raises:
        DerivativeError: SR0477 for a leaf that has no place.
    """
    parts = structure_of(args, place, "args"), structure_of(keywords, place, "keywords")
    return Structure(Tuples, None, parts)


def tree_of(
    structure: Plain,
    tensors: Iterator[Any],
    whole: Iterator[int],
    real: Iterator[float],
    textures: Iterable[Texture] = (),
) -> Any:
    """The tree of a structure with these leaves."""
    remaining = {"tensor": tensors, "int": whole, "float": real, "texture": iter(textures)}
    leaves = [
        next(remaining[detail]) if isinstance(detail, str) else detail[1]
        for detail in _details(structure)
    ]
    return folded(structure, iter(leaves), built)


def _details(structure: Plain) -> list[Any]:
    """The detail of each leaf."""
    kind, detail, parts = structure
    return [detail] if kind is None else [x for part in parts for x in _details(part)]


def derivative_tree(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The derivatives of the tensors, as a tree of this structure; `None` for parts without any.

    Dicts replace dataclasses and structs.
    """

    def build(kind: type[Container], detail: Any, parts: list[Any]) -> Any:
        if all(part is None for part in parts):
            return None
        return (Mappings if issubclass(kind, Mappings) else kind).built(detail, parts)

    own = (next(leaves) if detail == "tensor" else None for detail in _details(structure))
    return folded(structure, own, build)


def with_dicts(structure: Structure) -> Structure:
    """`structure` with a dict in place of each dataclass that kernels do not take as it is."""

    def build(kind: type[Container], detail: Any, parts: list[Any]) -> Structure:
        is_plain = kind is Dataclasses and detail[0] is not SamplerSettings
        is_plain = is_plain and info_of(detail[0]) is None
        if is_plain:
            return Structure(Mappings, (None, detail[1]), tuple(parts))
        return Structure(kind, detail, tuple(parts))

    leaves: Iterable[Structure] = (Structure(None, d, ()) for d in _details(structure))
    return folded(structure, iter(leaves), build)


def plain(structure: Structure) -> Plain:
    """A structure as tuples."""
    return (structure.kind, structure.detail, tuple([plain(part) for part in structure.parts]))


def structure_from(constant: Plain) -> Structure:
    """The inverse of `plain`."""
    kind, detail, parts = constant
    return Structure(kind, detail, tuple([structure_from(part) for part in parts]))


def tensor_count(structure: Structure) -> int:
    """The number of tensors in a structure."""
    return sum(detail == "tensor" for detail in _details(structure))


def children(structure: Structure, tree: Any) -> list[Any]:
    """The part of `tree` for each part of its structure; `None` if it is missing."""
    return [_child(tree, key) for key in structure.keys]


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
