"""Leaves of results and gradients: arrays, or fields of their structs, as arrays of the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.arrays.arrays import Array, on_host
from shaderad.arrays.containers import Mappings
from shaderad.arrays.trees import Structure
from shaderad.ir import types
from shaderad.runtime import buffers
from shaderad.wrapped.structures import TENSOR, children, tensor_count

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """Shape and dtype of an array of the host."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """An array, or the field at `path` in each of its structs."""

    array: Array
    path: Path = ()

    @property
    def outline(self) -> Outline:
        """Shape and dtype on the host, which are known before the content is."""
        t = self.array.element
        shape, dtype = (*self.array.shape, *buffers.element_axes(t)), buffers.host_dtype(t)
        for key in self.path:
            if isinstance(key, int):
                shape = shape[1:]
                continue
            dtype = dtype[key]
            shape, dtype = (*shape, *dtype.shape), dtype.base
        return Outline(shape, dtype)

    @property
    def is_float(self) -> bool:
        return self.outline.dtype.kind == "f"


def contents(parts: Sequence[ArrayPart]) -> list[np.ndarray[Any, Any]]:
    """The content of each part as a contiguous array of its own, read in one round trip."""
    arrays = {id(part.array): part.array for part in parts}
    read: dict[int, np.ndarray[Any, Any]] = {}
    for device in dict.fromkeys(array.device for array in arrays.values()):
        there = [array for array in arrays.values() if array.device is device]
        read.update(zip(map(id, there), on_host(device, there), strict=True))
    is_shared = len(arrays) < len(parts)
    host_arrays: list[np.ndarray[Any, Any]] = []
    for part in parts:
        content = read[id(part.array)]
        for key in part.path:
            content = content[key]
        host_arrays.append(np.array(content, order="C") if is_shared or part.path else content)
    return host_arrays


def split(array: Array, parts: list[ArrayPart]) -> Structure:
    """The structure of an array, which is a mapping for structs. Appends its leaves to `parts`."""
    return _split(array, buffers.base_of(array.element), (), parts)


def _split(array: Array, base: types.Type, path: Path, parts: list[ArrayPart]) -> Structure:
    if not isinstance(base, types.Struct):
        parts.append(ArrayPart(array, path))
        return TENSOR
    inner = [_split(array, buffers.base_of(t), (*path, n), parts) for n, t in base.fields]
    return Structure(Mappings, (None, tuple(name for name, _ in base.fields)), tuple(inner))


def joined(array: Array, leaves: Sequence[Any]) -> Any:
    """The inverse of `split`: a tree with these leaves; `None` if all of them are `None`."""
    if all(leaf is None for leaf in leaves):
        return None
    return _joined(buffers.base_of(array.element), iter(leaves))


def _joined(base: types.Type, leaves: Any) -> Any:
    if not isinstance(base, types.Struct):
        return next(leaves)
    return {name: _joined(buffers.base_of(t), leaves) for name, t in base.fields}


def parts_in(structure: Structure, tree: Any) -> list[ArrayPart | None]:
    """The part of `tree` for each tensor in the structure; `None` if there is no array.

    One array in `tree` may hold several tensors of the structure, as its fields or rows.
    """
    return _parts_in(structure, tree, ())


def _parts_in(structure: Structure, tree: Any, path: Path) -> list[ArrayPart | None]:
    if structure.detail == "tensor":
        return [ArrayPart(tree, path) if isinstance(tree, Array) else None]
    if tree is None:
        return [None] * tensor_count(structure)
    parts: list[ArrayPart | None] = []
    if isinstance(tree, Array):
        for inner, key in zip(structure.parts, structure.keys, strict=True):
            parts += _parts_in(inner, tree, (*path, key))
        return parts
    for inner, part in zip(structure.parts, children(structure, tree), strict=True):
        parts += _parts_in(inner, part, path)
    return parts
