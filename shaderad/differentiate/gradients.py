"""Gradients as kernels make them, by buffer and uniform -> the form of the arguments given.

Invariant: a gradient has the shape and element type of its argument, trailing axis where it was
given so; a struct comes back as a struct, 0 in fields that hold no float; a pointer as a pointer
to a gradient array, element by element through the pools of the launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shaderad.arrays.arguments import rebuilt, struct_fields
from shaderad.arrays.arrays import Array
from shaderad.arrays.pointers import HostPointer, StructArray
from shaderad.differentiate.forms import field_of, in_form_given
from shaderad.execute.pools import numbers_of, part_of
from shaderad.ir import types
from shaderad.ir.pointers import POINTED, comes_apart, holds_pointers, is_pooled, reaches_floats

if TYPE_CHECKING:
    from shaderad.execute.launch import Launch
    from shaderad.execute.pools import LaunchPools

Path = tuple[str, ...]


def gradient_form(
    given: Any, t: types.Type, path: Path, launch: Launch, gradients: Mapping[str, Array]
) -> Any:
    """The gradient of one argument; `None` where it leads to no float."""
    if not reaches_floats(t):
        return None
    if isinstance(t, types.Struct) and comes_apart(t):
        fields = struct_fields(given) or {}
        parts = {
            name: gradient_form(fields[name], field, (*path, name), launch, gradients)
            for name, field in t.fields
        }
        return _rebuilt(given, parts)
    if launch.pools is not None and is_pooled(t):
        behind = _Behind(launch.pools, gradients)
        if isinstance(t, types.Pointer):
            return behind.pointer(launch.facts.name_by_path[*path, POINTED], 0)
        return behind.pointer(launch.facts.name_by_path[path], 0).target
    gradient = gradients[launch.facts.name_by_path[path]]
    element = t.element if isinstance(t, types.BufferType) else t
    return in_form_given(gradient, given, element)


def _rebuilt(like: Any, parts: dict[str, Any]) -> Any:
    return rebuilt(like, {name: 0 if part is None else part for name, part in parts.items()})


@dataclass
class _Behind:
    """Gradients of what lies behind pointers."""

    pools: LaunchPools
    gradients: Mapping[str, Array]

    def pointer(self, name: str, number: int) -> HostPointer:
        """What pointer `number` of a pool leads to."""
        pool = self.pools.by_name[name]
        t = pool.element
        if not holds_pointers(t):
            part = part_of(pool, self.gradients[name], number)
            return HostPointer(in_form_given(part, pool.pointers[number].target, t))
        assert isinstance(t, types.Struct)
        first, count = numbers_of(pool)[number]
        whole = self.gradients.get(name)
        found: list[Any] = []
        for k in range(first, first + count):
            skipped = 0 if whole is None else k * types.byte_count(whole.element)
            own = None if whole is None else whole.viewed(whole.element, (), skipped)
            found.append(self._struct(pool.structs[k], t, k, own))
        return HostPointer(StructArray(found))

    def _struct(self, value: Any, t: types.Struct, number: int, own: Array | None) -> Any:
        """Struct `number` of a pool, whose own floats have the gradient `own`."""
        parts: dict[str, Any] = {}
        for name, field in t.fields:
            part, inner = getattr(value, name), None
            if own is not None and types.is_differentiable(field):
                inner = field_of(own, name)
            parts[name] = None
            if isinstance(field, types.Pointer):
                if reaches_floats(field):
                    parts[name] = self.pointer(field.target, number)
            elif isinstance(field, types.Struct) and holds_pointers(field):
                parts[name] = self._struct(part, field, number, inner)
            elif inner is not None:
                parts[name] = in_form_given(inner, part, inner.element)
        return _rebuilt(value, parts)
