"""The bindings of an entry point, and the shape of its dispatch."""

from __future__ import annotations

from shaderad.ir.types import Kind, is_differentiable, scalars
from shaderad.lower.bindings import (
    REDUCTION_GROUP_LIMIT,
    SERIAL_GROUP_LIMIT,
    Mode,
    Role,
)
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.write.arrays import SlangBuffer, write_buffer


def note_needs(entry: EntryScope) -> None:
    """Binds the arrays that the entry point reads and writes outside of the body."""
    mode, arrays = entry.module.mode, entry.module.arrays
    note_uniforms(entry)
    for u in entry.wanted_uniforms():
        if mode is Mode.BACKWARD:
            arrays.need_gradient(u.name, u.type, is_summed=True)
    for b in entry.own:
        t = b.type.element
        if entry.module.gives_results:
            arrays.need(Role.OUTPUT, b.name, t, write_buffer(t))
        if mode is Mode.BACKWARD and is_differentiable(t):
            arrays.need_elements(Role.COTANGENT, b.name, t)
    for s in entry.resolved.sums:
        if entry.module.gives_results:
            arrays.need(Role.OUTPUT, s.buffer, s.type, arrays.float_buffer(), fill_word=0)
        if mode is Mode.BACKWARD:
            arrays.need(Role.COTANGENT, s.buffer, s.type, SlangBuffer.READ)


def note_uniforms(entry: EntryScope) -> None:
    """Binds the uniforms that are device arrays."""
    for u in entry.kernel.uniforms:
        if u.name in entry.module.variant.device_uniforms:
            entry.module.arrays.need_elements(Role.UNIFORM, u.name, u.type)


def is_reduction(entry: EntryScope) -> bool:
    """True if threads sum values over the whole dispatch."""
    has_sums = entry.module.gives_results and bool(entry.resolved.sums)
    if entry.module.mode is Mode.BACKWARD:
        return has_sums or bool(entry.wanted_uniforms() or entry.module.strategies.uniform)
    return has_sums


def group_limit(entry: EntryScope) -> int:
    """`Lowered.group_limit` of the entry point."""
    if not entry.module.variant.is_parallel:
        return SERIAL_GROUP_LIMIT
    sums = is_reduction(entry) or entry.module.sums_in_groups
    return REDUCTION_GROUP_LIMIT if sums else 0


def is_single_group(entry: EntryScope) -> bool:
    """True if the dispatch sums doubles, which have no atomic add."""
    if entry.module.mode is not Mode.BACKWARD:
        return False
    types = [u.type for u in entry.wanted_uniforms()]
    types += [entry.element(h.buffer) for h in entry.module.strategies.uniform]
    return any(s.kind is Kind.DOUBLE for t in types for s in scalars(t))
