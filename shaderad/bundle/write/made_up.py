"""The parameters of a kernel or graph -> synthetic arguments: small, and always the same.

Every extent is `EXTENT`, so integers below it are valid indices of every array. Integer arrays are
permutations, so writes at their elements hit no element twice. Invariant: parameters that no
synthetic argument fits raise `NotSyntheticError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, BufferType, Kind, Matrix, Scalar, Struct, Type, Vector
from shaderad.trace.calls import Placeholder
from shaderad.trace.signatures import GraphSignature

EXTENT = 5
"""Odd, and more than the components of a vector."""
_LOW, _HIGH = 0.25, 1.25
"""The range of floats, away from 0 and other points without a derivative."""


class NotSyntheticError(Exception):
    """A parameter has no synthetic argument; the text names the parameter or its type."""


@dataclass(frozen=True, slots=True)
class SyntheticCall:
    """The positional arguments and keywords of a call."""

    args: list[Any]
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])


def kernel_call(kernel: Kernel, launch_shaped: frozenset[str]) -> SyntheticCall:
    """A call of a kernel.

    Raises:
        NotSyntheticError: The kernel takes pointers, or writes to arrays in structs.
    """
    random = np.random.default_rng(0)
    written = {b.path for b in kernel.buffers if b.access is not Access.IN}
    args = [
        _parameter(p.type, p.name, random)
        for p in kernel.parameters
        if not p.is_const and (p.name,) not in written
    ]
    shapes = {
        b.name: (EXTENT,) * b.type.rank
        for b in kernel.buffers
        if b.access is not Access.IN and b.name not in launch_shaped
    }
    keywords: dict[str, Any] = {"dim": (EXTENT,) * len(kernel.index_names)}
    return SyntheticCall(args, {**keywords, "shapes": shapes} if shapes else keywords)


def graph_call(signature: GraphSignature) -> SyntheticCall:
    """A call of a graph; every named size is `EXTENT`.

    Raises:
        NotSyntheticError: The graph takes pointers.
    """
    random = np.random.default_rng(0)

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, Placeholder):
            return leaf
        wanted = signature.wanted[leaf.position]
        shape = [EXTENT if isinstance(n, str) else n for n in wanted.extents or ()]
        return _values(wanted.element, shape, random)

    passed = (tree for name, tree in signature.skeleton.items() if name not in signature.fixed)
    return SyntheticCall([trees.mapped(argument, tree) for tree in passed])


def _parameter(t: Type, name: str, random: np.random.Generator) -> Any:
    if isinstance(t, BufferType):
        if t.access is not Access.IN:
            raise NotSyntheticError(f"`{name}` is written through a struct")
        return _values(t.element, (EXTENT,) * t.rank, random)
    if isinstance(t, Struct):
        return {field: _parameter(inner, field, random) for field, inner in t.fields}
    return _values(t, (), random)


def _values(t: Type, shape: Sequence[int], random: np.random.Generator) -> Any:
    """An array of `shape` with elements of type `t`; a dict of arrays for a struct."""
    if isinstance(t, Struct):
        return {name: _values(inner, shape, random) for name, inner in t.fields}
    if isinstance(t, Matrix):
        return _numbers(t.element, (*shape, t.row_count, t.column_count), random)
    if isinstance(t, Vector):
        return _numbers(t.element, (*shape, t.count), random)
    if isinstance(t, Scalar):
        return _numbers(t, shape, random)
    raise NotSyntheticError(f"there is no synthetic argument for `{t}`")


def _numbers(t: Scalar, shape: Sequence[int], random: np.random.Generator) -> Any:
    count = prod(shape)
    if t.kind in (Kind.FLOAT, Kind.HALF, Kind.DOUBLE):
        flat = random.uniform(_LOW, _HIGH, count)
    elif t.kind is Kind.BOOL:
        flat = random.integers(0, 2, count).astype(bool)
    else:
        rows = -(-count // EXTENT)
        flat = np.concatenate([random.permutation(EXTENT) for _ in range(max(1, rows))])[:count]
    values = flat.reshape(tuple(shape))
    return values if shape else values.item()
