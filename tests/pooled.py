"""What the pointers of a call lead to, laid out as the interpreter takes it: plain NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from shaderad.arguments.struct import at_path
from shaderad.ir import nodes
from shaderad.ir.pointers import holds_pointers, is_pooled
from shaderad.ir.types import Pointer, Struct, Type
from shaderad.runtime import buffers

Region = dict[str, int]


def pools_of(kernel: nodes.Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """By name: the arrays behind pointers, arrays of structs with pointers, and pointers."""
    found: dict[str, Any] = {}
    structs: dict[tuple[str, ...], list[Any]] = {}
    regions: dict[str, list[Region]] = {}
    pooled = [b for b in kernel.buffers if b.is_pointed or is_pooled(b.type)]
    for b in pooled:
        if b.is_pointed:
            targets = [p.target for p in _pointers(b.path[:-1], structs, given)]
        else:
            targets = [at_path(given, b.path)]
        regions[b.name] = _regions([len(t) for t in targets])
        if holds_pointers(b.type.element):
            structs[b.path] = [one for target in targets for one in target]
        else:
            t = b.type.element
            hosts = [buffers.to_host(buffers.to_storage(x, t, b.name)[0], t) for x in targets]
            found[b.name] = np.concatenate(hosts)
    for b in pooled:
        if b.path in structs:
            rows = [_row(one, b.type.element, k, regions) for k, one in enumerate(structs[b.path])]
            found[b.name] = rows
    for u in kernel.uniforms:
        if isinstance(u.type, Pointer):
            found[u.name] = regions[u.type.target][0]
    return found


def _pointers(
    path: tuple[str, ...], structs: Mapping[tuple[str, ...], list[Any]], given: Mapping[str, Any]
) -> list[Any]:
    """The pointers at `path`: one, or one for each struct that holds them."""
    for end in range(len(path) - 1, 0, -1):
        if path[:end] in structs:
            return [reduce(getattr, path[end:], one) for one in structs[path[:end]]]
    return [at_path(given, path)]


def _regions(counts: list[int]) -> list[Region]:
    firsts = np.cumsum([0, *counts]).tolist()
    return [{"base": f, "count": n} for f, n in zip(firsts, counts, strict=False)]


def _row(value: Any, t: Type, number: int, regions: Mapping[str, list[Region]]) -> dict[str, Any]:
    assert isinstance(t, Struct)
    row: dict[str, Any] = {}
    for name, field in t.fields:
        row[name] = getattr(value, name)
        if isinstance(field, Pointer):
            row[name] = regions[field.target][number]
        elif holds_pointers(field):
            row[name] = _row(row[name], field, number, regions)
    return row
