"""Trees of arguments and results: ``flatten(tree) -> leaves, structure`` and back.

Containers are those of `arrays/containers.py`. Invariant: a structure is a constant that holds no
leaf, so it can be the key of whatever is kept for trees of one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from shaderad.arrays.containers import (
    Container,
    Lists,
    Mappings,
    container_of,
    struct_class,
)
from shaderad.device.lines import user_span
from shaderad.diagnostics import Error, error


class Structure(NamedTuple):
    """The form of a tree without its leaves."""

    kind: type[Container] | None
    """`None` for a leaf."""
    detail: Any
    """The rest of the form of a container, such as its class; of a leaf, a note of its maker."""
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

    def tangent(self, leaves: Iterable[Any]) -> Any:
        """The tangent of such a tree, likewise."""
        return folded(self, iter(leaves), lambda kind, detail, parts: kind.tangent(detail, parts))

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
