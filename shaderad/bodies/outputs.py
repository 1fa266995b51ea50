"""Elements that belong to a thread: arrays with the extents of the launch, and own outputs.

``y[i] = x[i] * w[j[i]]`` has as many threads as `x`, `j` and `y` have elements, because it accesses
them at a bare Index; `w` may have any number.

Stores and loads of an Out array at the Index names become assignments and reads of a local named
like the array, which the entry point stores once. Additions to an Add element whose index is the
same in all threads become a local sum, which the entry point adds once per group. The remaining
`Store`s and `Accumulate`s write memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Buffer, Expr, Kernel, Stmt
from shaderad.ir.pointers import is_pooled
from shaderad.ir.types import FLOAT, Access, Type, scalar_of
from shaderad.ir.walk import (
    Block,
    all_expressions,
    called,
    map_statements,
    path_value,
    rewrite_body,
    statements,
    touched_buffers,
    writes,
)

Axis = tuple[str, int]
"""The name of an array, and one of its axes."""


def axes_of_launch(kernel: Kernel) -> tuple[tuple[Axis, ...], ...]:
    """For each Index the axes that it indexes by itself, by array in the order of parameters."""
    names = [b.name for b in kernel.buffers if not (b.is_pointed or is_pooled(b.type))]
    axes_by_index: list[set[Axis]] = [set() for _ in kernel.index_names]
    for buffer, indices in _accesses(kernel):
        for axis, index in enumerate(indices if buffer in names else ()):
            if isinstance(index, nodes.Var) and index.name in kernel.index_names:
                axes_by_index[kernel.index_names.index(index.name)].add((buffer, axis))
    return tuple(
        tuple(sorted(axes, key=lambda axis: (names.index(axis[0]), axis[1])))
        for axes in axes_by_index
    )


def _accesses(kernel: Kernel) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for e in all_expressions(kernel.body):
        if isinstance(e, nodes.Load):
            yield e.buffer, e.indices
    for s in statements(kernel.body):
        if isinstance(s, nodes.Store | nodes.Accumulate):
            yield s.buffer, s.indices


# -- outputs --------------------------------------------------------------------------------------

# Largest number of Add elements summed in registers; the others are added atomically.
_MAX_SUMS = 8


@dataclass(frozen=True, kw_only=True)
class Sum:
    """An Add element that every thread adds to; local `name` holds the thread's part."""

    name: str
    buffer: str
    index: Expr
    type: Type


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A kernel body with the thread's own outputs in locals."""

    body: Block
    local_types: dict[str, Type]
    own: tuple[str, ...]
    """Out arrays held in a local of their name."""
    sums: tuple[Sum, ...]

    @property
    def locals(self) -> tuple[str, ...]:
        """The names that hold results when the thread ends."""
        return (*self.own, *(s.name for s in self.sums))


def resolve_outputs(kernel: Kernel, launch_shaped: frozenset[str]) -> Resolved:
    """Turns the outputs that a thread owns into locals.

    Args:
        kernel: The kernel.
        launch_shaped: Names of the arrays with the extents of the launch.

    Raises:
        LanguageError: SR0280, SR0281, where an Out mixes own and other indices, or is read
            where it is not the thread's own.
    """
    outs = [b for b in kernel.buffers if b.access is Access.OUT]
    own = tuple(b.name for b in outs if b.name in launch_shaped and _is_own(kernel, b))
    _check_reads(kernel, own)

    types = kernel.local_types | {name: kernel.buffer(name).type.element for name in own}
    sums = _uniform_sums(kernel, types)

    def local_write(s: Stmt) -> Iterable[Stmt]:
        if isinstance(s, nodes.Store) and s.buffer in own:
            return (nodes.Assign(name=s.buffer, path=s.path, value=s.value, span=s.span),)
        if isinstance(s, nodes.Accumulate) and (s.buffer, s.indices[0]) in sums:
            return _local_sum(s, sums[s.buffer, s.indices[0]])
        return (s,)

    def local_load(e: Expr) -> Expr:
        if isinstance(e, nodes.Load) and e.buffer in own:
            return nodes.Var(type=e.type, name=e.buffer, span=e.span)
        return e

    return Resolved(
        body=map_statements(rewrite_body(kernel.body, local_load), local_write),
        local_types=types | {s.name: s.type for s in sums.values()},
        own=own,
        sums=tuple(sums.values()),
    )


def are_local(kernel: Kernel, launch_shaped: frozenset[str]) -> bool:
    """True if threads hold all outputs of a kernel in locals until they end."""
    body = resolve_outputs(kernel, launch_shaped).body
    touched = set(touched_buffers(body)) | {name for f in called(body) for name in f.buffers}
    return not any(b.name in touched for b in kernel.buffers if b.access is not Access.IN)


def is_own(indices: tuple[Expr, ...], index_names: tuple[str, ...]) -> bool:
    """True if an index tuple is the Index names in order."""
    return len(indices) == len(index_names) and all(
        isinstance(e, nodes.Var) and e.name == n for e, n in zip(indices, index_names, strict=True)
    )


def _is_own(kernel: Kernel, b: Buffer) -> bool:
    """True if all stores to an Out array are at the Index names; SR0280 if only some are."""
    stores = [
        s for s in statements(kernel.body) if isinstance(s, nodes.Store) and s.buffer == b.name
    ]
    others = [s for s in stores if not is_own(s.indices, kernel.index_names)]
    in_functions = any(b.name in f.buffers for f in called(kernel.body))
    if len(others) < len(stores) and (others or in_functions):
        span = (others or stores)[0].span
        raise error("SR0280", span, array=b.name, own=", ".join(kernel.index_names))
    return not others and not in_functions


def _check_reads(kernel: Kernel, own: tuple[str, ...]) -> None:
    outs = {b.name for b in kernel.buffers if b.access is Access.OUT}
    for e in all_expressions(kernel.body):
        if not isinstance(e, nodes.Load) or e.buffer not in outs:
            continue
        if e.buffer not in own or not is_own(e.indices, kernel.index_names):
            raise error("SR0281", e.span, array=e.buffer, own=", ".join(kernel.index_names))


# -- Add elements ----------------------------------------------------------------------------------


def _uniform_sums(kernel: Kernel, types: dict[str, Type]) -> dict[tuple[str, Expr], Sum]:
    """Sums for the elements of rank-1 float Add arrays at constant or uniform indices."""
    fixed = {u.name for u in kernel.uniforms} - writes(kernel.body)
    taken = {*types, *kernel.index_names, *(u.name for u in kernel.uniforms)}
    sums: dict[tuple[str, Expr], Sum] = {}
    for s in statements(kernel.body):
        if not isinstance(s, nodes.Accumulate) or not _is_summed(kernel, s, fixed):
            continue
        index = s.indices[0]
        if (s.buffer, index) not in sums and len(sums) < _MAX_SUMS:
            part = index.name if isinstance(index, nodes.Var) else str(getattr(index, "value", ""))
            name = f"{s.buffer}_{part}"
            while name in taken:
                name += "_"
            taken.add(name)
            element = kernel.buffer(s.buffer).type.element
            sums[s.buffer, index] = Sum(name=name, buffer=s.buffer, index=index, type=element)
    return sums


def _is_summed(kernel: Kernel, s: nodes.Accumulate, fixed: set[str]) -> bool:
    buffer, index = kernel.buffer(s.buffer), s.indices[0]
    element = buffer.type.element
    is_sum = buffer.access is Access.ADD and scalar_of(element) == FLOAT
    is_fixed = isinstance(index, nodes.Var) and index.name in fixed
    return is_sum and len(s.indices) == 1 and (is_fixed or isinstance(index, nodes.Const))


def _local_sum(s: nodes.Accumulate, target: Sum) -> Iterator[Stmt]:
    place = path_value(nodes.Var(type=target.type, name=target.name), s.path)
    assert place is not None
    total = nodes.Apply(type=place.type, op=ops.ADD, args=(place, s.value), span=s.span)
    check = CheckIndex(type=target.type, buffer=s.buffer, indices=s.indices, span=s.span)
    yield nodes.Evaluate(call=check, span=s.span)
    yield nodes.Assign(name=target.name, path=s.path, value=total, span=s.span)


@dataclass(frozen=True, kw_only=True)
class CheckIndex(Expr):
    """Reports `indices` that are out of range, at the place of a hoisted read or write."""

    buffer: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class AlreadyRead(Expr):
    """A hoisted read at its original place: the value, and the report of its indices."""

    value: nodes.Var
    buffer: str
    indices: tuple[Expr, ...]
