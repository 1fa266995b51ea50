"""The arguments of a call -> their floats as vectors, and back with other floats in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shaderad.check.vectors import Vector, as_half, filled, floats_of, has_floats
from shaderad.frontend.launchable import Launchable
from shaderad.frontend.structs import info_of
from shaderad.ir import types
from shaderad.session import trees
from shaderad.session.arguments import rebuilt, struct_fields
from shaderad.session.arrays import Array, array
from shaderad.session.call import is_given
from shaderad.session.pointers import HostPointer, is_pointer_structs


@dataclass
class Slot:
    """One differentiable leaf of the arguments as a vector of floats."""

    name: str
    like: Any
    data: NDArray[Any]
    position: int
    values: Vector
    is_half: bool
    """A kernel may hold it in 16 bits, whatever the caller gave."""

    def rounded(self, values: Vector) -> Vector:
        """`values` as the device will hold them."""
        held = floats_of(filled(self.data, values))
        return as_half(held) if self.is_half else held

    def leaf(self, values: Vector) -> Any:
        """The argument with other floats in it."""
        data = filled(self.data, values)
        if isinstance(self.like, Array):
            return array(data, dtype=self.like.element, device=self.like.device)
        return (
            data if isinstance(self.like, np.ndarray | np.generic | list | tuple) else float(data)
        )


def derivative_leaf(slot: Slot, values: Vector) -> Any:
    blank = np.zeros(slot.data.shape, slot.data.dtype)
    data = filled(blank, values)
    return (
        data
        if isinstance(slot.like, Array | np.ndarray | np.generic | list | tuple)
        else float(data)
    )


def as_data(function: Callable[..., Any], given: Any) -> Any:
    """For kernels a tuple of numbers is a vector, and a list of structs an array of them.

    Elsewhere they are containers of arguments.
    """
    items = _struct_array(given)
    if isinstance(function, Launchable) and items:
        return _columns(items)
    fields = struct_fields(given)
    if fields is not None and info_of(given) is not None:
        return rebuilt(given, {n: as_data(function, value) for n, value in fields.items()})
    if isinstance(function, Launchable) and _is_sequence_of_floats(given):
        return np.asarray(given, np.float32)
    return given


def _struct_array(given: Any) -> list[Any]:
    """The structs of a list of one sort of them, if they hold no pointers; else nothing."""
    items = cast("list[Any]", given) if isinstance(given, list) else []
    infos = {id(info_of(one)) for one in items}
    is_array = len(infos) == 1 and info_of(items[0]) is not None
    return items if is_array and not is_pointer_structs(items) else []


def _columns(items: list[Any]) -> Any:
    """The elements of structs side by side, a dict of fields for each struct."""
    if info_of(items[0]) is None:
        return np.asarray([np.asarray(one) for one in items])
    rows = [struct_fields(one) or {} for one in items]
    return {name: _columns([row[name] for row in rows]) for name in rows[0]}


def _is_sequence_of_floats(given: Any) -> bool:
    if not isinstance(given, tuple | list):
        return False
    try:
        return np.asarray(cast("Any", given)).dtype.kind == "f"
    except ValueError:
        return False


def slots_of(function: Callable[..., Any], args: Sequence[Any], *, is_half: bool) -> list[Slot]:
    """The differentiable leaves of `args`; `is_half` where a kernel holds any in 16 bits."""
    slots: list[Slot] = []
    for position, (name, given) in enumerate(zip(_names(function, args), args, strict=True)):
        for path, leaf in _leaf_paths(given):
            data = leaf.numpy() if isinstance(leaf, Array) else np.asarray(leaf)
            if has_floats(data) and not isinstance(leaf, int):
                values = floats_of(data)
                slots.append(Slot(name + path, leaf, data, position, values, is_half))
    return slots


def _leaf_paths(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    parts = trees.children(tree)
    if parts is None:
        yield path, tree
        return
    for key, part in parts.items():
        step = f".{key}" if struct_fields(tree) is not None else f"[{key!r}]"
        if isinstance(tree, HostPointer):
            step = ""
        yield from _leaf_paths(part, path + step)


def _names(function: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    if isinstance(function, Launchable):
        return [p.name for p in function.signature.parameters if is_given(p)][: len(args)]
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        known = []
    return [known[k] if k < len(known) else f"argument {k}" for k in range(len(args))]


def with_leaves(args: Sequence[Any], leaves: Sequence[Any], **fixed: Any) -> list[Any]:
    """`args` with the differentiable leaves replaced, in order; others by ``others`` if given."""
    remaining = iter(leaves)

    def replaced(leaf: Any) -> Any:
        data = leaf if isinstance(leaf, Array) else np.asarray(leaf)
        is_slot = not isinstance(leaf, int) and (
            types.is_differentiable(data.element) if isinstance(data, Array) else has_floats(data)
        )
        return next(remaining) if is_slot else fixed.get("others", leaf)

    return [trees.mapped(replaced, one) for one in args]
