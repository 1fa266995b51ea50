"""Turns the outputs that a thread owns into locals.

Stores and loads of an Out array at the Index names become assignments and reads of a local named
like the array, which the entry point stores once. Additions to an Add element whose index is the
same in all threads become a local sum, which the entry point adds once a group. The remaining
`Store`s and `Accumulate`s write memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaderad.diagnostics import error
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    Const,
    Evaluate,
    Expr,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from shaderad.ir.types import Access, Kind, Type, is_float, scalar_of
from shaderad.ir.walk import (
    all_expressions,
    called,
    map_statements,
    path_value,
    rewrite_body,
    statements,
    touched_buffers,
    writes,
)

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

    body: tuple[Stmt, ...]
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

    def local_store(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Store) and s.buffer in own:
            return (Assign(name=s.buffer, path=s.path, value=s.value, span=s.span),)
        return (s,)

    def local_load(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in own:
            return Var(type=e.type, name=e.buffer, span=e.span)
        return e

    types = kernel.local_types | {name: kernel.buffer(name).type.element for name in own}
    sums = _uniform_sums(kernel, types)
    body = rewrite_body(map_statements(kernel.body, local_store), local_load)
    return Resolved(
        body=map_statements(body, lambda s: _local_sum(s, sums)),
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
        isinstance(e, Var) and e.name == n for e, n in zip(indices, index_names, strict=True)
    )


def _is_own(kernel: Kernel, b: Buffer) -> bool:
    """True if all stores to an Out array are at the Index names; SR0280 if only some are."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.buffer == b.name]
    others = [s for s in stores if not is_own(s.indices, kernel.index_names)]
    in_functions = any(b.name in f.buffers for f in called(kernel.body))
    if len(others) < len(stores) and (others or in_functions):
        span = (others or stores)[0].span
        raise error("SR0280", span, array=b.name, own=", ".join(kernel.index_names))
    return not others and not in_functions


def _check_reads(kernel: Kernel, own: tuple[str, ...]) -> None:
    outs = {b.name for b in kernel.buffers if b.access is Access.OUT}
    for e in all_expressions(kernel.body):
        if not isinstance(e, Load) or e.buffer not in outs:
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
        if not isinstance(s, Accumulate) or not _is_summed(kernel, s, fixed):
            continue
        key = (s.buffer, s.indices[0])
        if key not in sums and len(sums) < _MAX_SUMS:
            index = s.indices[0]
            part = index.name if isinstance(index, Var) else str(getattr(index, "value", ""))
            name = f"{s.buffer}_{part}"
            while name in taken:
                name += "_"
            taken.add(name)
            element = kernel.buffer(s.buffer).type.element
            sums[key] = Sum(name=name, buffer=s.buffer, index=index, type=element)
    return sums


def _is_summed(kernel: Kernel, s: Accumulate, fixed: set[str]) -> bool:
    buffer = kernel.buffer(s.buffer)
    element = scalar_of(buffer.type.element)
    if buffer.access is not Access.ADD or element is None or element.kind is not Kind.FLOAT:
        return False
    if not is_float(buffer.type.element) or len(s.indices) != 1:
        return False
    index = s.indices[0]
    return isinstance(index, Const) or (isinstance(index, Var) and index.name in fixed)


def _local_sum(s: Stmt, sums: dict[tuple[str, Expr], Sum]) -> Iterator[Stmt]:
    if not isinstance(s, Accumulate) or (s.buffer, s.indices[0]) not in sums:
        yield s
        return
    target = sums[s.buffer, s.indices[0]]
    place = path_value(Var(type=target.type, name=target.name), s.path)
    assert place is not None
    total = Apply(type=place.type, op=ops.ADD, args=(place, s.value), span=s.span)
    check = CheckIndex(type=target.type, buffer=s.buffer, indices=s.indices, span=s.span)
    yield Evaluate(call=check, span=s.span)
    yield Assign(name=target.name, path=s.path, value=total, span=s.span)


@dataclass(frozen=True, kw_only=True)
class CheckIndex(Expr):
    """Reports `indices` that are out of range, at the place of a hoisted read or write."""

    buffer: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class AlreadyRead(Expr):
    """A hoisted read at its original place: the value, and the report of its indices."""

    value: Var
    buffer: str
    indices: tuple[Expr, ...]
