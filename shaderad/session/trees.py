"""Nested containers of arguments and results: tuples, lists, dicts, structs; the rest is leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shaderad.diagnostics import error
from shaderad.session.arguments import rebuilt, struct_fields


def mapped(function: Callable[..., Any], tree: Any, *others: Any, name: str = "value") -> Any:
    """`tree` with each leaf replaced by ``function(leaf, *matching parts of others)``.

    A `None` among `others` stands for a tree of `None`s.

    Raises:
        DerivativeError: SR0452, where another tree is built differently.
    """
    parts = children(tree)
    if parts is None:
        return function(tree, *others)
    columns = [matching(tree, parts, other, name) for other in others]
    found = {
        key: mapped(function, part, *(column[key] for column in columns), name=f"{name}[{key!r}]")
        for key, part in parts.items()
    }
    return built_like(tree, found)


def leaves(tree: Any) -> list[Any]:
    """The leaves, in order."""
    parts = children(tree)
    if parts is None:
        return [tree]
    return [leaf for part in parts.values() for leaf in leaves(part)]


def children(tree: Any) -> dict[Any, Any] | None:
    """The parts of a container by key; `None` for a leaf. Lists of numbers are data: leaves."""
    if isinstance(tree, tuple):
        return dict(enumerate(tree))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(tree, list):
        is_data = any(isinstance(part, int | float | list) for part in tree) or not tree  # pyright: ignore[reportUnknownVariableType]
        return None if is_data else dict(enumerate(tree))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return struct_fields(tree)


def matching(tree: Any, parts: dict[Any, Any], other: Any, name: str) -> dict[Any, Any]:
    """The parts of `other` under the keys of `tree`."""
    if other is None:
        return dict.fromkeys(parts)
    found = children(other)
    if found is None or set(found) != set(parts):
        raise error("SR0452", name=name, wanted=described(tree), found=described(other))
    return found


def built_like(tree: Any, parts: dict[Any, Any]) -> Any:
    """A container like `tree` of other parts."""
    if isinstance(tree, tuple):
        values = parts.values()
        return type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(tree, list):
        return list(parts.values())
    return rebuilt(tree, parts)


def described(tree: Any) -> str:
    """How a message speaks of the form of a tree."""
    if isinstance(tree, tuple | list):
        return f"{type(tree).__name__} of {len(tree)}"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(tree, dict):
        return f"dict with {', '.join(map(repr, tree))}"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return type(tree).__name__
