"""Backward entry points: the call of the body's adjoint, and sums over the threads.

The adjoint adds to sums in place; a thread stores its own gradients. At its end, an entry point
adds each sum once a group: those of cotangents, and in the primal those of Add elements.
"""

from __future__ import annotations

from shaderad.ir.types import Type
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.prepare.strategy import Hoisted


def write_backward(entry: EntryScope) -> None:
    """Writes the work of one thread."""
    types, own = entry.module.types, entry.module.strategies.exclusive.values()
    arguments = [*entry.arguments(), *map(entry.read_hoisted, own)]
    arguments += [entry.values[h.name] for h in entry.module.strategies.uniform]
    for b in entry.float_own:
        tag = entry.tags.reader(Role.COTANGENT, b.name, b.type.element)
        spelled = types.spell(b.type.element)
        arguments.append(f"{spelled}.read<{tag}>({INDEX} * {spelled}.wordCount)")
    arguments += [entry.values[s.name] for s in entry.resolved.sums]
    bars = {name: f"sums.{entry.module.sum(name)}" for name in _summed_types(entry)}
    for h in own:
        bars[h.name] = entry.names.make(f"{h.name}_bar")
        t = entry.element(h.buffer)
        entry.piece.add(f"{types.spell(t)} {bars[h.name]} = {_start_of(entry, h, t)};")
    names = [u.name for u in entry.kernel.uniforms]
    names += [h.name for h in entry.module.strategies.hoisted]
    arguments += [bars[name] for name in names if name in bars]
    results = _results(entry)
    entry.piece.call(entry.body, [*arguments, *results.values()])
    if results:
        entry.store_results(results)
    for h in own:
        _store_own(entry, h, bars[h.name])


def _start_of(entry: EntryScope, h: Hoisted, t: Type) -> str:
    """The text of the gradient before the dispatch, if it accumulates without atomics; else 0."""
    is_atomic = entry.module.arrays.is_atomic(Role.GRADIENT, h.buffer)
    if not entry.module.variant.accumulate or is_atomic:
        return entry.module.types.zero(t)
    tag = entry.tags.writer(Role.GRADIENT, h.buffer, t)
    return f"read<{entry.module.types.spell(t)}, {tag}>({entry.places[h.name]})"


def _results(entry: EntryScope) -> dict[str, str]:
    """Declares a variable for each result of the primal; empty for dispatches without results."""
    if not entry.module.gives_results:
        return {}
    variables = {name: entry.names.make(f"{name}_value") for name in entry.resolved.locals}
    for name, variable in variables.items():
        t = entry.resolved.local_types[name]
        spelled, zero = entry.module.types.spell(t), entry.module.types.zero(t)
        entry.piece.add(f"{spelled} {variable} = {zero};")
    return variables


def _store_own(entry: EntryScope, h: Hoisted, bar: str) -> None:
    arrays, t, number = entry.module.arrays, entry.element(h.buffer), entry.places[h.name]
    spelled = entry.module.types.spell(t)
    if arrays.is_atomic(Role.GRADIENT, h.buffer):
        tag, place = f"{arrays.tag(h.buffer)}.Gradient", f"{number} * {spelled}.gradientWordCount"
        text = f"{spelled}.addCotangent<{tag}>({place}, {bar});"
    else:
        tag = entry.tags.writer(Role.GRADIENT, h.buffer, t)
        text = f"{spelled}.write<{tag}>({number} * {spelled}.wordCount, {bar});"
    entry.guarded(text, number, h.buffer, h.indices)


# -- sums over threads ------------------------------------------------------------------------


def sum_fields(entry: EntryScope) -> list[tuple[str, str]]:
    """Name and Slang type of each sum of the dispatch."""
    module = entry.module
    summed = _summed_types(entry) if module.mode is Mode.BACKWARD else {}
    if module.gives_results:
        summed |= {s.name: s.type for s in entry.resolved.sums}
    return [(module.sum(name), module.types.spell(t)) for name, t in summed.items()]


def _summed_types(entry: EntryScope) -> dict[str, Type]:
    """The uniforms and hoisted elements whose cotangents the backward mode sums."""
    hoisted = entry.module.strategies.uniform
    uniforms = {u.name: u.type for u in entry.wanted_uniforms()}
    return uniforms | {h.name: entry.element(h.buffer) for h in hoisted}


def add_sums(entry: EntryScope) -> None:
    """Writes one add a group for every sum."""
    spell = entry.module.types.spell
    if entry.module.mode is Mode.BACKWARD:
        for u in entry.wanted_uniforms():
            entry.piece.add(_added(entry, Role.GRADIENT, u.name, u.name, u.type, "0"))
        for h in entry.module.strategies.uniform:
            t, number = entry.element(h.buffer), entry.places[h.name]
            place = f"{number} * {spell(t)}.gradientWordCount"
            text = _added(entry, Role.GRADIENT, h.buffer, h.name, t, place)
            entry.guarded(text, number, h.buffer, h.indices)
    for s in entry.resolved.sums if entry.module.gives_results else ():
        number = entry.names.make(f"{s.name}_number")
        entry.piece.add(f"uint {number} = {entry.number(s.buffer, (s.index,))};")
        place = f"{number} * {spell(s.type)}.wordCount"
        text = _added(entry, Role.OUTPUT, s.buffer, s.name, s.type, place)
        entry.guarded(text, number, s.buffer, (s.index,))


def _added(entry: EntryScope, role: Role, array: str, name: str, t: Type, place: str) -> str:
    """The statement that adds the sum `name` to an array."""
    tag, field = entry.tags.adder(role, array, t), entry.module.sum(name)
    over = "OverGroup"
    if entry.module.variant.subgroups:
        entry.module.features.add("subgroups")
        over = "OverWaves"
    function = "addCotangent" if role is Role.GRADIENT else "addTo"
    return f"{entry.module.types.spell(t)}.{function}<{over}<{tag}>>({place}, sums.{field});"
