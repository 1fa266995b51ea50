"""Arrays whose elements several threads add to, each at places that it computes.

A workgroup may hold copies of them in its own memory, where its threads add first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shaderad.bodies.outputs import is_own
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Kernel
from shaderad.ir.types import (
    Access,
    Kind,
    ResourceType,
    Type,
    is_differentiable,
    leaves,
    scalars,
)
from shaderad.ir.walk import all_expressions, called, statements, writes


@dataclass(frozen=True, slots=True)
class GroupCopy:
    """A copy of an array in the memory of a workgroup."""

    array: str
    room: int
    """The number of elements for which it has memory."""


def added_at_places(kernel: Kernel) -> frozenset[str]:
    """The Add arrays to which threads add at computed places."""
    places = (
        (s.buffer, s.indices) for s in statements(kernel.body) if isinstance(s, nodes.Accumulate)
    )
    names = {b.name for b in kernel.buffers if b.access is Access.ADD}
    return frozenset(names & {*_computed(kernel, places)})


def read_at_places(kernel: Kernel) -> frozenset[str]:
    """The In arrays that threads read at computed places, where pullbacks add to gradients."""
    places = (
        (e.buffer, e.indices) for e in all_expressions(kernel.body) if isinstance(e, nodes.Load)
    )
    names = {
        b.name
        for b in kernel.buffers
        if b.access is Access.IN and is_differentiable(b.type.element)
        and not (b.is_pointed or isinstance(b.type, ResourceType))
    }  # fmt: skip
    return frozenset(names & {*_computed(kernel, places)})


def _computed(kernel: Kernel, places: Iterator[tuple[str, tuple[Expr, ...]]]) -> Iterator[str]:
    """The arrays of `places` that depend on more than the launch, and those of functions."""
    fixed = {u.name for u in kernel.uniforms} - writes(kernel.body)
    for f in called(kernel.body):
        yield from f.buffers
    for array, indices in places:
        if not is_own(indices, kernel.index_names) and not are_fixed(indices, fixed):
            yield array


def are_fixed(indices: Iterable[Expr], fixed: set[str]) -> bool:
    """True if indices are numbers or `fixed` names."""
    return all(isinstance(i, nodes.Const) or is_fixed(i, fixed) for i in indices)


def is_fixed(e: Expr, fixed: set[str]) -> bool:
    """True for one of the names `fixed`, which have the same value in all threads."""
    return isinstance(e, nodes.Var) and e.name in fixed


def atomic_words(t: Type) -> int:
    """The words of an element to which threads add by atomics; 0 if they cannot."""
    return 0 if Kind.DOUBLE in {s.kind for s in scalars(t)} else len(leaves(t))
