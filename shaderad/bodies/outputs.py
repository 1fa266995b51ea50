"""Which writes are the thread's own: Out elements at the Index names become local values.

`body` comes out with those Stores and Loads turned into assignments to a local that is named like
the buffer; an Add element at an index that does not depend on the thread likewise becomes a
local sum, which the entry point adds once a group. What is left of `Store` and `Accumulate`
writes to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from shaderad.ir.types import Access, Kind, Type, is_float, scalar_of
from shaderad.ir.walk import (
    called,
    path_value,
    rewrite_body,
    statements,
    touched_buffers,
    writes,
)

# Add elements that are summed in registers; beyond, atomics take over.
_SUMMED_ELEMENTS = 8


@dataclass(frozen=True, kw_only=True)
class Sum:
    """An Add element every thread adds to, held in local `name` until the thread ends."""

    name: str
    buffer: str
    index: Expr
    type: Type


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A kernel body whose own outputs are locals."""

    body: tuple[Stmt, ...]
    local_types: dict[str, Type]
    own: tuple[str, ...]
    """Out buffers held in a local of their name and stored once."""
    sums: tuple[Sum, ...]

    @property
    def locals(self) -> tuple[str, ...]:
        """The names that hold results when the thread ends."""
        return (*self.own, *(s.name for s in self.sums))


def resolve_outputs(kernel: Kernel, launch_shaped: frozenset[str]) -> Resolved:
    """Turns own writes into local ones.

    Raises:
        LanguageError: SR0280, SR0281, where an Out mixes own and other indices, or is read
            where it is not the thread's own.
    """
    types = dict(kernel.local_types)
    outs = [b for b in kernel.buffers if b.access is Access.OUT]
    elsewhere = {b.name for b in outs if _is_written_elsewhere(kernel, b, launch_shaped)}
    own = tuple(b.name for b in outs if b.name not in elsewhere and b.name in launch_shaped)
    for name in own:
        types[name] = kernel.buffer(name).type.element
    _check_reads(kernel, frozenset(own))
    body = _with_local_stores(kernel.body, frozenset(own))
    body = rewrite_body(body, lambda e: _local_load(e, frozenset(own)))
    sums = _uniform_sums(kernel, types)
    types.update({s.name: s.type for s in sums.values()})
    return Resolved(
        body=_with_local_sums(body, sums),
        local_types=types,
        own=own,
        sums=tuple(sums.values()),
    )


def are_local(kernel: Kernel, launch_shaped: frozenset[str]) -> bool:
    """Whether a kernel writes nothing but what its threads hold until they end."""
    touched = scattered_buffers(resolve_outputs(kernel, launch_shaped).body)
    written = {b.name for b in kernel.buffers if b.access is not Access.IN}
    return touched.isdisjoint(written)


def is_own(indices: tuple[Expr, ...], index_names: tuple[str, ...]) -> bool:
    """Whether an index tuple is exactly the Index names in order."""
    return len(indices) == len(index_names) and all(
        isinstance(e, Var) and e.name == n for e, n in zip(indices, index_names, strict=True)
    )


def _is_written_elsewhere(kernel: Kernel, b: Buffer, launch_shaped: frozenset[str]) -> bool:
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.buffer == b.name]
    owned = [s for s in stores if is_own(s.indices, kernel.index_names)]
    in_functions = any(b.name in f.buffers for f in called(kernel.body))
    if b.name not in launch_shaped:
        return True
    if owned and (len(owned) < len(stores) or in_functions):
        other = next((s for s in stores if s not in owned), owned[0])
        raise error("SR0280", other.span, array=b.name, own=", ".join(kernel.index_names))
    return len(owned) < len(stores) or in_functions


def _check_reads(kernel: Kernel, own: frozenset[str]) -> None:
    outs = {b.name for b in kernel.buffers if b.access is Access.OUT}

    def check(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in outs:
            is_local = e.buffer in own and is_own(e.indices, kernel.index_names)
            if not is_local:
                raise error("SR0281", e.span, array=e.buffer, own=", ".join(kernel.index_names))
        return e

    rewrite_body(kernel.body, check)


def _with_local_stores(body: tuple[Stmt, ...], own: frozenset[str]) -> tuple[Stmt, ...]:
    return tuple(_local_store(s, own) for s in body)


def _local_store(s: Stmt, own: frozenset[str]) -> Stmt:
    if isinstance(s, Store) and s.buffer in own:
        return Assign(name=s.buffer, path=s.path, value=s.value, span=s.span)
    if isinstance(s, If):
        then, otherwise = (_with_local_stores(b, own) for b in (s.then, s.otherwise))
        return replace(s, then=then, otherwise=otherwise)
    if isinstance(s, For | While):
        return replace(s, body=_with_local_stores(s.body, own))
    return s


def _local_load(e: Expr, own: frozenset[str]) -> Expr:
    if isinstance(e, Load) and e.buffer in own:
        return Var(type=e.type, name=e.buffer, span=e.span)
    return e


# -- Add elements ----------------------------------------------------------------------------------


def _uniform_sums(kernel: Kernel, types: dict[str, Type]) -> dict[tuple[str, Expr], Sum]:
    """The Add elements of a rank-1 float array at constant or uniform indices."""
    fixed = {u.name for u in kernel.uniforms} - writes(kernel.body)
    taken = {*types, *kernel.index_names, *(u.name for u in kernel.uniforms)}
    found: dict[tuple[str, Expr], Sum] = {}
    for s in statements(kernel.body):
        if not isinstance(s, Accumulate) or not _is_summed(kernel, s, fixed):
            continue
        key = (s.buffer, s.indices[0])
        if key not in found and len(found) < _SUMMED_ELEMENTS:
            index = s.indices[0]
            part = index.name if isinstance(index, Var) else str(getattr(index, "value", ""))
            name = f"{s.buffer}_{part}"
            while name in taken:
                name += "_"
            taken.add(name)
            element = kernel.buffer(s.buffer).type.element
            found[key] = Sum(name=name, buffer=s.buffer, index=index, type=element)
    return found


def _is_summed(kernel: Kernel, s: Accumulate, fixed: set[str]) -> bool:
    buffer = kernel.buffer(s.buffer)
    element = scalar_of(buffer.type.element)
    if buffer.access is not Access.ADD or element is None or element.kind is not Kind.FLOAT:
        return False
    if not is_float(buffer.type.element) or len(s.indices) != 1:
        return False
    index = s.indices[0]
    return isinstance(index, Const) or (isinstance(index, Var) and index.name in fixed)


def _with_local_sums(body: tuple[Stmt, ...], sums: dict[tuple[str, Expr], Sum]) -> tuple[Stmt, ...]:
    return tuple(new for s in body for new in _local_sum(s, sums))


def _local_sum(s: Stmt, sums: dict[tuple[str, Expr], Sum]) -> Iterator[Stmt]:
    if isinstance(s, Accumulate) and (s.buffer, s.indices[0]) in sums:
        target = sums[s.buffer, s.indices[0]]
        place = path_value(Var(type=target.type, name=target.name), s.path)
        assert place is not None
        total = Apply(type=place.type, op=ops.ADD, args=(place, s.value), span=s.span)
        yield Evaluate(call=CheckIndex(type=target.type, buffer=s.buffer, indices=s.indices,
                                       span=s.span), span=s.span)  # fmt: skip
        yield Assign(name=target.name, path=s.path, value=total, span=s.span)
    elif isinstance(s, If):
        then, otherwise = (_with_local_sums(b, sums) for b in (s.then, s.otherwise))
        yield replace(s, then=then, otherwise=otherwise)
    elif isinstance(s, For | While):
        yield replace(s, body=_with_local_sums(s.body, sums))
    else:
        yield s


@dataclass(frozen=True, kw_only=True)
class CheckIndex(Expr):
    """Reports `indices` where they are out of range; made where a read or write was hoisted."""

    buffer: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class AlreadyRead(Expr):
    """A hoisted read where the program makes it: the argument, and the report of its indices."""

    value: Var
    buffer: str
    indices: tuple[Expr, ...]


def scattered_buffers(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Buffers that a body and the functions it calls touch in memory."""
    found = set(touched_buffers(body))
    for f in called(body):
        found.update(f.buffers)
    return frozenset(found)
