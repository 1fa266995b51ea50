"""Arguments of traced functions: the arrays in them, and everything else as part of a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shaderad.ir import types
from shaderad.session import trees
from shaderad.session.array_functions.primitives import as_number
from shaderad.session.arrays import Array, array, vector_of
from shaderad.session.devices import Device
from shaderad.session.traced_calls import Placeholder

Convert = Callable[[Any], "Array | None"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """A tree of arguments taken apart."""

    skeleton: Any
    """The tree with a `Placeholder` for each array."""
    arrays: tuple[Array, ...]

    @property
    def key(self) -> Hashable:
        """What the tree is, but for the content of its arrays."""
        return frozen(self.skeleton)

    def filled(self, found: Any) -> Any:
        """The tree with other arrays."""

        def put(leaf: Any) -> Any:
            if not isinstance(leaf, Placeholder):
                return leaf
            x = found[leaf.position]
            return x if leaf.vector is None else x.noted_as(leaf.vector)

        return trees.mapped(put, self.skeleton)


def taken_apart(tree: Any, convert: Convert) -> Arguments:
    """`tree` with those leaves apart that `convert` makes arrays of."""
    found: list[Array] = []

    def place(leaf: Any) -> Any:
        made = convert(leaf)
        if made is None:
            return leaf
        found.append(made)
        return Placeholder(len(found) - 1, vector_of(leaf))

    skeleton = trees.mapped(place, tree)
    return Arguments(skeleton, tuple(found))


def array_of_data(leaf: Any, device: Device) -> Array | None:
    """An array, or one written out on the host, on a device; `None` for anything else."""
    if isinstance(leaf, Array):
        return leaf
    is_array = isinstance(leaf, np.ndarray)
    if not is_array and isinstance(leaf, list):
        items = cast("list[Any]", leaf)
        is_array = bool(items) and trees.is_data(items)
    return array(leaf, device=device) if is_array else None


def array_of_captured(data: Any, device: Device) -> Array:
    """Whatever a trace has taken for an array, on a device."""
    return data if isinstance(data, Array) else array(data, device=device)


def array_of_number(leaf: Any, device: Device) -> Array | None:
    """Likewise, and numbers as arrays without axes."""
    plain = as_number(leaf)
    if plain is None:
        return array_of_data(leaf, device)
    kind = types.BOOL if isinstance(plain, bool) else types.INT
    t = types.FLOAT if isinstance(plain, float) else kind
    return array(np.asarray(plain), dtype=t, device=device)


def _name(thing: object) -> Hashable:
    return type(thing)


def frozen(tree: Any) -> Hashable:
    """A tree as a key: numbers by type and text, because ``1 == 1.0 == True`` and nan is not."""
    parts = trees.children(tree)
    if parts is not None:
        return _name(tree), tuple((key, frozen(part)) for key, part in parts.items())
    if as_number(tree) is not None:
        return _name(tree), repr(tree)
    if isinstance(tree, slice):
        whole = cast("slice[Any, Any, Any]", tree)
        return slice, frozen(whole.start), frozen(whole.stop), frozen(whole.step)
    try:
        hash(tree)
    except TypeError:
        return Identity(tree)
    return cast("Hashable", tree)


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """A key for what has no hash: it is held, so that nothing else gets its identity."""

    thing: Any

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.thing is self.thing
