"""Nested containers of arguments and results: tuples, lists, dicts, structs, pointers.

Everything else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from shaderad.arrays.arguments import rebuilt, struct_fields
from shaderad.arrays.pointers import HostPointer, StructArray
from shaderad.diagnostics import error
from shaderad.language.structs import info_of


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


def zeros_for_none(tree: Any, found: Any) -> Any:
    """`found`, built like `tree`, with 0 for `None` in the fields of structs."""
    parts = children(tree)
    if parts is None:
        return found
    own = matching(tree, parts, found, "value")
    made = {key: zeros_for_none(part, own[key]) for key, part in parts.items()}
    if info_of(tree) is not None:
        made = {key: 0 if part is None else part for key, part in made.items()}
    return built_like(tree, made)


def leaves(tree: Any) -> list[Any]:
    """The leaves, in order."""
    parts = children(tree)
    if parts is None:
        return [tree]
    return [leaf for part in parts.values() for leaf in leaves(part)]


def children(tree: Any) -> dict[Any, Any] | None:
    """The parts of a container by key; `None` for a leaf. Lists of numbers are data: leaves."""
    if isinstance(tree, HostPointer):
        return {"target": tree.target}
    parts = _in_order(tree)
    if parts is None:
        return struct_fields(tree)
    return None if isinstance(tree, list) and is_data(parts.values()) else parts


def is_data(parts: Iterable[Any]) -> bool:
    """Whether the parts of a list are an array written out: numbers, or sequences of them."""
    for part in parts:
        inner = _in_order(part)
        is_number = isinstance(part, int | float | np.generic)
        if not (is_number if inner is None else is_data(inner.values())):
            return False
    return True


def matching(tree: Any, parts: dict[Any, Any], other: Any, name: str) -> dict[Any, Any]:
    """The parts of `other` under the keys of `tree`."""
    if other is None or (isinstance(tree, HostPointer) and isinstance(other, int)):
        return dict.fromkeys(parts)  # 0 stands where a pointer leads to no float
    if isinstance(tree, HostPointer) and isinstance(other, HostPointer):
        return {"target": other.target}
    is_sequence = _in_order(tree) is not None
    found = _in_order(other) if is_sequence else struct_fields(other)
    if found is None or set(found) != set(parts):
        raise error("SR0452", name=name, wanted=described(tree), found=described(other))
    return found


def _in_order(tree: Any) -> dict[Any, Any] | None:
    """The parts of a tuple, list or array of host structs by position."""
    if not isinstance(tree, tuple | list | StructArray):
        return None
    return dict(enumerate(cast("Sequence[Any]", tree)))


def built_like(tree: Any, parts: dict[Any, Any]) -> Any:
    """A container like `tree` of other parts."""
    if isinstance(tree, HostPointer):
        return HostPointer(parts["target"])
    if _in_order(tree) is None:
        return rebuilt(tree, parts)
    if hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*parts.values())
    return type(tree)(parts.values())


def described(tree: Any) -> str:
    """How a message speaks of the form of a tree."""
    parts = _in_order(tree)
    if parts is not None:
        return f"{type(tree).__name__} of {len(parts)}"
    fields = struct_fields(tree) or {}
    named = f" with {', '.join(fields)}" if fields else ""
    return f"{type(tree).__name__}{named}"
