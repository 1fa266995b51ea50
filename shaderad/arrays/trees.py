"""Trees of arguments and results: ``flatten(tree) -> leaves, structure`` and back.

Tuples, lists, dicts and structs are containers, and so is each class that `register` names;
everything else is a leaf. Invariant: a structure is a constant that holds no leaf, so it can be the
key of what is kept for trees of one form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from shaderad.device.lines import user_span
from shaderad.diagnostics import Error, error
from shaderad.language.structs import info_of


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
    @abstractmethod
    def described(cls, detail: Any, count: int) -> str:
        """The kind as text for messages."""


class Structure(NamedTuple):
    """The form of a tree without its leaves."""

    kind: type[Container] | None
    """`None` for a leaf."""
    detail: Any
    """What else the form of a container depends on; for a leaf, what its maker noted of it."""
    parts: tuple[Structure, ...]

    @property
    def leaf_count(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum([part.leaf_count for part in self.parts])

    @property
    def keys(self) -> Sequence[Any]:
        """The key of each part."""
        return () if self.kind is None else self.kind.keys(self.detail, len(self.parts))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return folded(self, iter(leaves), built)

    def derivative(self, leaves: Iterable[Any]) -> Any:
        """The derivative of such a tree: 0 for fields of structs without one, `None` elsewhere."""
        return folded(
            self, iter(leaves), lambda kind, detail, parts: kind.derivative(detail, parts)
        )

    def matched(self, derivative: Any, name: str = "value") -> list[Any]:
        """The part of `derivative` for each leaf; `None` stands for a tree of `None`.

        Raises:
            DerivativeError: SR0452 if it is built differently.
        """
        if self.kind is None:
            return [derivative]
        if derivative is None:
            return [None] * self.leaf_count
        own = self.kind.parts_of(self.detail, len(self.parts), derivative)
        if own is None:
            raise error("SR0452", name=name, wanted=str(self), found=described(derivative))
        leaves: list[Any] = []
        for key, structure, part in zip(self.keys, self.parts, own, strict=True):
            leaves += structure.matched(part, f"{name}[{key!r}]")
        return leaves

    def like(self, tree: Any) -> Structure:
        """The structure of `tree`, which has these leaves; a struct of it may be a dict here."""
        if self.kind is None:
            return self
        own = self.kind.parts_of(self.detail, len(self.parts), tree) or self.parts
        parts = tuple([part.like(x) for part, x in zip(self.parts, own, strict=True)])
        if not issubclass(self.kind, Mappings):
            return Structure(self.kind, self.detail, parts)
        return Structure(container_of(tree), (struct_class(tree), self.detail[1]), parts)

    def with_leaves(self, structures: Iterable[Structure]) -> Structure:
        """The structure with one of `structures` in place of each leaf."""

        def build(kind: type[Container], detail: Any, parts: list[Any]) -> Structure:
            return Structure(kind, detail, tuple(parts))

        return folded(self, iter(structures), build)

    def spelled(self) -> Iterator[str]:
        """The text that leads to each leaf, such as ``[0].radius``."""
        if self.kind is None:
            yield ""
            return
        for key, part in zip(self.keys, self.parts, strict=True):
            step = self.kind.step(key)
            for path in part.spelled():
                yield step + path

    def __str__(self) -> str:
        return "value" if self.kind is None else self.kind.described(self.detail, len(self.parts))


Build = Callable[[type[Container], Any, list[Any]], Any]
"""The kind and detail of a container, and its parts -> what takes its place."""


def folded(structure: tuple[Any, Any, tuple[Any, ...]], leaves: Iterator[Any], build: Build) -> Any:
    """The next leaf, or what `build` makes of the parts of a container."""
    kind, detail, inner = structure
    if kind is None:
        return next(leaves)
    return build(kind, detail, [folded(part, leaves, build) for part in inner])


def built(kind: type[Container], detail: Any, parts: list[Any]) -> Any:
    """The container itself, of these parts."""
    return kind.built(detail, parts)


def matched(structure: Structure, tree: Any, what: str) -> list[Any]:
    """The leaves of a tree with this structure.

    Raises:
        LanguageError: SR0333 if it is built differently.
    """
    try:
        return structure.matched(tree)
    except Error:
        raise unmatched(structure, tree, what) from None


def unmatched(structure: Structure, tree: Any, what: str) -> Error:
    """SR0333: `tree` is built differently."""
    shown = "`None`" if tree is None else described(tree)
    return error("SR0333", user_span(), what=what, found=shown, wanted=str(structure))


LEAF = Structure(None, None, ())


def flatten(
    tree: Any, kind_of: Callable[[Any], type[Container] | None] | None = None
) -> tuple[list[Any], Structure]:
    """The leaves of `tree`, in order, and its structure.

    `kind_of` tells the kind of a container, and `None` for a leaf; by default `container_of`.
    """
    leaves: list[Any] = []
    return leaves, _flattened(tree, kind_of or container_of, leaves)


def _flattened(
    tree: Any, kind_of: Callable[[Any], type[Container] | None], leaves: list[Any]
) -> Structure:
    kind = kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    detail, parts = kind.taken_apart(tree)
    return Structure(kind, detail, tuple([_flattened(part, kind_of, leaves) for part in parts]))


def mapped(function: Callable[..., Any], tree: Any, *others: Any, name: str = "value") -> Any:
    """`tree` with each leaf replaced by ``function(leaf, *matching parts of others)``.

    Raises:
        DerivativeError: SR0452, where another tree is built differently.
    """
    leaves, structure = flatten(tree)
    columns = [structure.matched(other, name) for other in others]
    return structure.unflatten(map(function, leaves, *columns))


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree`, in order."""
    return flatten(tree)[0]


def children(tree: Any) -> dict[Any, Any] | None:
    """The parts of a container by key; `None` for a leaf."""
    kind = container_of(tree)
    if kind is None:
        return None
    detail, parts = kind.taken_apart(tree)
    return dict(zip(kind.keys(detail, len(parts)), parts, strict=True))


def described(tree: Any) -> str:
    """The form of a tree as text for messages."""
    kind = container_of(tree)
    if kind is None and not isinstance(tree, list):
        return type(tree).__name__
    detail, parts = (kind or Lists).taken_apart(tree)
    return (kind or Lists).described(detail, len(parts))


# -- kinds of containers ----------------------------------------------------------------------


def container_of(tree: Any) -> type[Container] | None:
    """The kind of a container; `None` for a leaf. Lists of numbers are data: leaves."""
    if isinstance(tree, tuple):
        return Tuples
    if isinstance(tree, list):
        return None if is_data(cast("list[Any]", tree)) else Lists
    if isinstance(tree, dict):
        return Mappings
    cls = class_of(tree)
    return Structs if info_of(cls) is not None and cls is not type else _REGISTERED.get(cls)


def register(cls: type, kind: type[Container]) -> None:
    """Makes the instances of a class containers."""
    _REGISTERED[cls] = kind


_REGISTERED: dict[type, type[Container]] = {}


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
    kind = _REGISTERED.get(class_of(tree))
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


def struct_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a host struct or of a dict that stands for one; `None` for anything else."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    info = None if isinstance(value, type) else info_of(value)
    return None if info is None else {name: getattr(value, name) for name in info.annotations}


def class_of(value: Any) -> Any:
    """The class of `value`."""
    return cast("Any", type(value))


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
