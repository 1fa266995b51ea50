"""The parameters of a kernel or graph -> arguments to try it with: small, and always the same.

Every extent is `EXTENT`, so that whole numbers below it are indices into anything; arrays of them
are permutations, so that writes at them meet no element twice. Invariant: where no arguments can be
made up, that is said, not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, BufferType, Kind, Matrix, Scalar, Struct, Type, Vector
from shaderad.session import trees
from shaderad.session.graph_signatures import GraphSignature
from shaderad.session.traced_calls import Placeholder

EXTENT = 5
"""Odd, and more than the components of a vector."""
_LOW, _HIGH = 0.25, 1.25
"""Floats, away from 0 and other points without a derivative."""


class NotMadeUpError(Exception):
    """Arguments of some sort are more than this file can make up; the text says which."""


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A call."""

    args: list[Any]
    call: dict[str, Any] = field(default_factory=dict[str, Any])


def kernel_call(kernel: Kernel, launch_shaped: frozenset[str]) -> MadeUp:
    """Arguments and call keywords for a kernel.

    Raises:
        NotMadeUpError: Where it takes pointers, or writes to arrays in structs.
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
    call: dict[str, Any] = {"dim": (EXTENT,) * len(kernel.index_names)}
    return MadeUp(args, {**call, "shapes": shapes} if shapes else call)


def graph_call(signature: GraphSignature) -> MadeUp:
    """Arguments for a graph; every named size is `EXTENT`.

    Raises:
        NotMadeUpError: Where it takes pointers.
    """
    random = np.random.default_rng(0)

    def made(leaf: Any) -> Any:
        if not isinstance(leaf, Placeholder):
            return leaf
        wanted = signature.wanted[leaf.position]
        shape = [EXTENT if isinstance(n, str) else n for n in wanted.extents or ()]
        return _values(wanted.element, shape, random)

    given = (tree for name, tree in signature.skeleton.items() if name not in signature.fixed)
    return MadeUp([trees.mapped(made, tree) for tree in given])


def _parameter(t: Type, name: str, random: np.random.Generator) -> Any:
    if isinstance(t, BufferType):
        if t.access is not Access.IN:
            raise NotMadeUpError(f"`{name}` is written through a struct")
        return _values(t.element, (EXTENT,) * t.rank, random)
    if isinstance(t, Struct):
        return {field: _parameter(inner, field, random) for field, inner in t.fields}
    return _values(t, (), random)


def _values(t: Type, shape: Sequence[int], random: np.random.Generator) -> Any:
    """Elements of one type; structs by field."""
    if isinstance(t, Struct):
        return {name: _values(inner, shape, random) for name, inner in t.fields}
    if isinstance(t, Matrix):
        return _numbers(t.element, (*shape, t.row_count, t.column_count), random)
    if isinstance(t, Vector):
        return _numbers(t.element, (*shape, t.count), random)
    if isinstance(t, Scalar):
        return _numbers(t, shape, random)
    raise NotMadeUpError(f"nothing is made up for `{t}`")


def _numbers(t: Scalar, shape: Sequence[int], random: np.random.Generator) -> Any:
    count = prod(shape)
    if t.kind in (Kind.FLOAT, Kind.HALF, Kind.DOUBLE):
        found = random.uniform(_LOW, _HIGH, count)
    elif t.kind is Kind.BOOL:
        found = random.integers(0, 2, count).astype(bool)
    else:
        rows = -(-count // EXTENT)
        found = np.concatenate([random.permutation(EXTENT) for _ in range(max(1, rows))])[:count]
    values = found.reshape(tuple(shape))
    return values if shape else values.item()
