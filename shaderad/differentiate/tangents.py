"""Tangents in the form of the arguments -> one array for each buffer and uniform of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arguments import struct_fields
from shaderad.arrays.arrays import Array, uploaded
from shaderad.arrays.pointers import HostPointer, structs_of
from shaderad.diagnostics import error
from shaderad.differentiate.forms import derivative_like
from shaderad.execute.pools import joined, numbers_of
from shaderad.ir import types
from shaderad.ir.pointers import POINTED, comes_apart, holds_pointers, is_pooled, reaches_floats
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.differentiate.gradients import Path
    from shaderad.execute.launch import Launch
    from shaderad.execute.pools import LaunchPools, Pool


class Tangents:
    """Collects the tangents of arguments by name of buffer and uniform."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._arrays: dict[str, Array] = {}
        self._behind = None if launch.pools is None else _Behind(launch.pools)

    def add(self, t: types.Type, path: Path, value: Any, tangent: Any) -> None:
        """Notes the tangent of one argument; `None` is zero."""
        if tangent is None or not reaches_floats(t):
            return
        if isinstance(t, types.Struct) and comes_apart(t):
            fields, parts = struct_fields(value) or {}, struct_fields(tangent)
            if parts is None or not set(parts) <= {name for name, _ in t.fields}:
                raise error("SR0452", name=".".join(path), wanted=trees.described(value),
                            found=trees.described(tangent))  # fmt: skip
            for name, field in t.fields:
                self.add(field, (*path, name), fields.get(name), parts.get(name))
            return
        names = self._launch.facts.name_by_path
        if self._behind is not None and is_pooled(t):
            if isinstance(t, types.Pointer):
                self._behind.add(names[*path, POINTED], 0, tangent)
            else:
                self._behind.add(names[path], 0, HostPointer(tangent))
            return
        name = names.get(path)
        if name is None:
            return
        element = t.element if isinstance(t, types.BufferType) else t
        shape, device = self._launch.shape_of(name), self._launch.device
        self._arrays[name] = derivative_like(tangent, element, shape, device, ".".join(path))

    def arrays(self) -> dict[str, Array]:
        """The tangents that are not zero throughout."""
        behind = {} if self._behind is None else self._behind.arrays()
        return {**self._arrays, **behind}


class _Behind:
    """The tangents of what lies behind pointers, pool by pool."""

    def __init__(self, pools: LaunchPools) -> None:
        self._pools = pools
        self._parts: dict[str, list[Array | None]] = {}
        self._structs: dict[str, list[Any]] = {}

    def add(self, name: str, number: int, tangent: Any) -> None:
        """Notes the tangent behind pointer `number` of a pool; 0 and `None` are zero.

        Raises:
            DerivativeError: SR0452, where it is no pointer.
            ShapeError: SR0382, where it leads to more or fewer elements.
        """
        pool = self._pools.by_name[name]
        if tangent is None or isinstance(tangent, int) or not reaches_floats(pool.element):
            return
        if not isinstance(tangent, HostPointer):
            found = trees.described(tangent)
            raise error("SR0452", name="tangent", wanted="sad.pointer(..)", found=found)
        first, count = numbers_of(pool)[number]
        if not holds_pointers(pool.element):
            parts = self._parts.setdefault(name, [None] * len(pool.pointers))
            device = self._pools.device
            parts[number] = derivative_like(tangent.target, pool.element, (count,), device, name)
            return
        items = structs_of(tangent.target) or ()
        if len(items) != count:
            raise error("SR0382", name="tangent", found=(len(items),), shape=(count,))
        assert isinstance(pool.element, types.Struct)
        structs = self._structs.setdefault(name, [None] * len(pool.structs))
        for k, one in enumerate(items, start=first):
            structs[k] = one
            self._add_struct(one, pool.element, k)

    def _add_struct(self, tangent: Any, t: types.Struct, number: int) -> None:
        for name, field in t.fields:
            part = (struct_fields(tangent) or {}).get(name)
            if isinstance(field, types.Pointer):
                self.add(field.target, number, part)
            elif isinstance(field, types.Struct) and holds_pointers(field):
                self._add_struct(part, field, number)

    def arrays(self) -> dict[str, Array]:
        """The tangents of the pools that have any."""
        found = {n: joined(self._pools.by_name[n], p, self._pools.device)
                 for n, p in self._parts.items()}  # fmt: skip
        for name, structs in self._structs.items():
            pool = self._pools.by_name[name]
            if types.is_differentiable(pool.element):
                found[name] = self._packed(pool, structs)
        return found

    def _packed(self, pool: Pool[Array], tangents: list[Any]) -> Array:
        """The tangents of floats that structs with pointers hold on their own."""
        rows = [_row(one, pool.element) for one in tangents]
        storage, shape = buffers.to_storage(rows, pool.element, "tangent")
        return uploaded(self._pools.device, pool.element, storage, shape)


def _row(tangent: Any, t: types.Type) -> Any:
    """`tangent` with zeros for pointers, whole numbers and `None`."""
    if isinstance(t, types.Struct):
        fields = struct_fields(tangent) or {}
        return {name: _row(fields.get(name), field) for name, field in t.fields}
    if tangent is None or not types.is_differentiable(t):
        return np.zeros(buffers.element_axes(t), buffers.host_dtype(t))
    return np.asarray(tangent)
