"""The threads of backward entry points.

Each thread calls the body's adjoint, which adds to sums in place, and stores its own gradients.
"""

from __future__ import annotations

from shaderad.lower.bindings import Role
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.entry.sums import summed_types
from shaderad.lower.prepare.strategy import Hoisted


def write_backward(entry: EntryScope) -> None:
    types, arrays = entry.module.types, entry.module.arrays
    arguments = entry.arguments()
    for h in entry.module.strategies.exclusive.values():
        entry.places[h.name] = entry.element_number(h)
        spelled = types.spell(entry.element(h.buffer))
        read = entry.reader(h.buffer, h.indices)
        arguments.append(f"{read}<{spelled}, {arrays.tag(h.buffer)}>({entry.places[h.name]})")
    arguments += [entry.values[h.name] for h in entry.module.strategies.uniform]
    for b in entry.float_own:
        tag = entry.tags.reader(Role.COTANGENT, b.name, b.type.element)
        spelled = types.spell(b.type.element)
        arguments.append(f"{spelled}.read<{tag}>({INDEX} * {spelled}.wordCount)")
    arguments += [entry.values[s.name] for s in entry.resolved.sums]
    own = entry.module.strategies.exclusive.values()
    bars = {name: f"sums.{entry.module.sum(name)}" for name in summed_types(entry)}
    for h in own:
        bars[h.name] = entry.names.make(f"{h.name}_bar")
        t = entry.element(h.buffer)
        start = _start_of(entry, h, types.spell(t)) or types.zero(t)
        entry.piece.add(f"{types.spell(t)} {bars[h.name]} = {start};")
    names = [u.name for u in entry.kernel.uniforms]
    names += [h.name for h in entry.module.strategies.hoisted]
    arguments += [bars[name] for name in names if name in bars]
    results = _results(entry)
    entry.piece.call(entry.body, [*arguments, *results.values()])
    if results:
        entry.store_results(results)
    for h in own:
        _store_own(entry, h, bars[h.name], entry.places[h.name])


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


def _store_own(entry: EntryScope, h: Hoisted, bar: str, number: str) -> None:
    arrays, t = entry.module.arrays, entry.element(h.buffer)
    spelled = entry.module.types.spell(t)
    if arrays.is_atomic(Role.GRADIENT, h.buffer):
        tag, place = f"{arrays.tag(h.buffer)}.Gradient", f"{number} * {spelled}.gradientWordCount"
        text = f"{spelled}.addCotangent<{tag}>({place}, {bar});"
    else:
        tag = entry.tags.writer(Role.GRADIENT, h.buffer, t)
        text = f"{spelled}.write<{tag}>({number} * {spelled}.wordCount, {bar});"
    entry.guarded(text, number, is_there=entry.is_there(h.buffer, h.indices))


def _start_of(entry: EntryScope, h: Hoisted, spelled: str) -> str:
    """The text of the present gradient, if the dispatch accumulates; empty if it starts at 0."""
    is_atomic = entry.module.arrays.is_atomic(Role.GRADIENT, h.buffer)
    if not entry.module.variant.accumulate or is_atomic:
        return ""
    tag = entry.tags.writer(Role.GRADIENT, h.buffer, entry.element(h.buffer))
    return f"read<{spelled}, {tag}>({entry.places[h.name]})"
