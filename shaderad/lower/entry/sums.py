"""The sums over the threads of an entry point, and the adds at its end: one a group and sum."""

from __future__ import annotations

from shaderad.bodies.outputs import Sum
from shaderad.ir.types import Type
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.prepare.strategy import Hoisted


def sum_fields(entry: EntryScope) -> list[tuple[str, str]]:
    """Name and Slang type of each sum of the dispatch."""
    module = entry.module
    summed = summed_types(entry) if module.mode is Mode.BACKWARD else {}
    if module.gives_results:
        summed |= {s.name: s.type for s in entry.resolved.sums}
    return [(module.sum(name), module.types.spell(t)) for name, t in summed.items()]


def summed_types(entry: EntryScope) -> dict[str, Type]:
    """The uniforms and hoisted elements whose cotangents the backward mode sums."""
    hoisted = entry.module.strategies.uniform
    uniforms = {u.name: u.type for u in entry.wanted_uniforms()}
    return uniforms | {h.name: entry.element(h.buffer) for h in hoisted}


def add_sums(entry: EntryScope) -> None:
    """Writes one add a group for every sum."""
    if entry.module.mode is Mode.BACKWARD:
        for u in entry.wanted_uniforms():
            entry.piece.add(_added(entry, u.name, u.name, u.type, "0"))
        for h in entry.module.strategies.uniform:
            _add_element_gradient(entry, h)
    for s in entry.resolved.sums if entry.module.gives_results else ():
        number = entry.names.make(f"{s.name}_number")
        entry.piece.add(f"uint {number} = {entry.sum_number(s)};")
        _add_element(entry, s, number)


def _added(entry: EntryScope, name: str, field: str, t: Type, place: str) -> str:
    """The statement that adds a sum to a gradient."""
    tag, field = entry.tags.adder(Role.GRADIENT, name, t), entry.module.sum(field)
    spelled = entry.module.types.spell(t)
    return f"{spelled}.addCotangent<{_over(entry, tag)}>({place}, sums.{field});"


def _add_element_gradient(entry: EntryScope, h: Hoisted) -> None:
    t, number = entry.element(h.buffer), entry.places[h.name]
    place = f"{number} * {entry.module.types.spell(t)}.gradientWordCount"
    text = _added(entry, h.buffer, h.name, t, place)
    entry.guarded(text, number, is_there=entry.is_there(h.buffer, h.indices))


def _add_element(entry: EntryScope, s: Sum, number: str) -> None:
    field = entry.module.sum(s.name)
    tag = entry.tags.adder(Role.OUTPUT, s.buffer, s.type)
    spelled = entry.module.types.spell(s.type)
    text = f"{spelled}.addTo<{_over(entry, tag)}>({number} * {spelled}.wordCount, sums.{field});"
    entry.guarded(text, number, is_there=entry.is_there(s.buffer, (s.index,)))


def _over(entry: EntryScope, tag: str) -> str:
    if entry.module.variant.subgroups:
        entry.module.features.add("subgroups")
        return f"OverWaves<{tag}>"
    return f"OverGroup<{tag}>"
