"""The threads of the backward and the forward entry points: the body's derivative, and its values.

Backward, a pair is made of all that the body reads through an argument; after ``bwd_diff`` its
cotangent is stored, or summed.
"""

from __future__ import annotations

from shaderad.ir.types import LocalArray, Struct, Type
from shaderad.lower.bindings import Role
from shaderad.lower.entry_scope import INDEX, EntryScope
from shaderad.lower.entry_sums import summed_types
from shaderad.lower.strategy import Hoisted


def write_adjoint(entry: EntryScope) -> None:
    """Calls the body's adjoint, whose sums grow in place, and stores what is this thread's own."""
    assert entry.adjoint is not None
    types, arrays = entry.module.types, entry.module.arrays
    arguments = entry.arguments()
    for h in entry.module.strategies.exclusive.values():
        entry.places[h.name] = entry.element_number(h)
        spelled = types.spell(entry.element(h.buffer))
        arguments.append(f"read<{spelled}, {arrays.tag(h.buffer)}>({entry.places[h.name]})")
    arguments += [entry.values[h.name] for h in entry.module.strategies.uniform]
    for b in entry.float_own:
        tag = entry.tags.reader(Role.COTANGENT, b.name, b.type.element)
        spelled = types.spell(b.type.element)
        arguments.append(f"{spelled}.read<{tag}>({INDEX} * {spelled}.wordCount)")
    arguments += [entry.values[s.name] for s in entry.resolved.sums]
    summed, own = summed_types(entry), entry.module.strategies.exclusive.values()
    bars = {name: f"sums.{entry.module.sum(name)}" for name in summed}
    for h in own:
        bars[h.name] = entry.names.make(f"{h.name}_bar")
        t = entry.element(h.buffer)
        start = _start_of(entry, h, types.spell(t)) or types.zero(t)
        entry.piece.add(f"{types.spell(t)} {bars[h.name]} = {start};")
    given = [*(u.name for u in entry.kernel.uniforms), *(h.name for h in own)]
    given += [h.name for h in entry.module.strategies.uniform]
    arguments += [bars[name] for name in given if name in bars]
    entry.piece.call(entry.body, arguments)
    for h in own:
        _store_own(entry, h, bars[h.name], entry.places[h.name])


def _store_own(entry: EntryScope, h: Hoisted, bar: str, number: str) -> None:
    arrays, t = entry.module.arrays, entry.element(h.buffer)
    spelled = entry.module.types.spell(t)
    entry.piece.add(f"if ({number} != outside)")
    if arrays.is_atomic(Role.GRADIENT, h.buffer):
        tag, place = f"{arrays.tag(h.buffer)}.Gradient", f"{number} * {spelled}.gradientWordCount"
        entry.piece.indented(f"{spelled}.addCotangent<{tag}>({place}, {bar});")
        return
    tag = entry.tags.writer(Role.GRADIENT, h.buffer, t)
    place = f"{number} * {spelled}.wordCount"
    entry.piece.indented(f"{spelled}.write<{tag}>({place}, {bar});")


def _start_of(entry: EntryScope, h: Hoisted, spelled: str) -> str:
    """What a gradient that is added to holds already; empty where it starts at 0."""
    if not entry.module.variant.accumulate or entry.module.arrays.is_atomic(
        Role.GRADIENT, h.buffer
    ):
        return ""
    tag = entry.tags.writer(Role.GRADIENT, h.buffer, entry.element(h.buffer))
    return f"read<{spelled}, {tag}>({entry.places[h.name]})"


def write_backward(entry: EntryScope) -> None:
    if entry.adjoint is not None:
        write_adjoint(entry)
        return
    piece = entry.piece
    arguments = [entry.index_name(n) for n in entry.kernel.index_names]
    pairs: dict[str, str] = {}
    wanted = {u.name for u in entry.wanted_uniforms()}
    for u in entry.kernel.uniforms:
        if u.name in wanted:
            pairs[u.name] = _pair(entry, u.name, entry.uniforms.value(u), u.type)
        arguments.append(pairs.get(u.name) or entry.uniforms.value(u))
    for h in entry.module.strategies.exclusive.values():
        entry.places[h.name] = entry.element_number(h)
        tag, t = entry.module.arrays.tag(h.buffer), entry.element(h.buffer)
        value = f"read<{entry.module.types.spell(t)}, {tag}>({entry.places[h.name]})"
        pairs[h.name] = _pair(entry, h.name, value, t)
        arguments.append(pairs[h.name])
    for h in entry.module.strategies.uniform:
        pairs[h.name] = _pair(entry, h.name, entry.values[h.name], entry.element(h.buffer))
        arguments.append(pairs[h.name])
    if entry.float_own or entry.resolved.sums:
        arguments.append(_cotangent(entry))
    piece.call(f"bwd_diff({entry.body})", arguments)
    for h in entry.module.strategies.exclusive.values():
        _store_exclusive(entry, h, pairs[h.name], entry.places[h.name])
    for name, t in summed_types(entry).items():
        piece.add(_summed(entry, name, t, pairs[name]))


def _pair(entry: EntryScope, name: str, value: str, t: Type) -> str:
    pair = entry.names.make(f"{name}_pair")
    spelled = entry.module.types.spell(t)
    entry.piece.add(f"DifferentialPair<{spelled}> {pair} = diffPair({value}, {spelled}.dzero());")
    return pair


def _summed(entry: EntryScope, name: str, t: Type, pair: str) -> str:
    total = f"sums.{entry.module.sum(name)}"
    if isinstance(t, Struct | LocalArray):
        return f"{total} = {entry.module.types.spell(t)}.dadd({total}, {pair}.d);"
    return f"{total} += {pair}.d;"


def _cotangent(entry: EntryScope) -> str:
    entry.piece.add("Outputs.Differential cotangent;")
    for b in entry.float_own:
        tag = entry.tags.reader(Role.COTANGENT, b.name, b.type.element)
        spelled = entry.module.types.spell(b.type.element)
        entry.piece.add(
            f"cotangent.{entry.module.output(b.name)} = {spelled}.readDifferential<{tag}>"
            f"({INDEX} * {spelled}.wordCount);"
        )
    for s in entry.resolved.sums:
        entry.piece.add(f"cotangent.{entry.module.output(s.name)} = {entry.values[s.name]};")
    return "cotangent"


def _store_exclusive(entry: EntryScope, h: Hoisted, pair: str, number: str) -> None:
    arrays, t = entry.module.arrays, entry.element(h.buffer)
    spelled = entry.module.types.spell(t)
    entry.piece.add(f"if ({number} != outside)")
    if arrays.is_atomic(Role.GRADIENT, h.buffer):
        tag = f"{arrays.tag(h.buffer)}.Gradient"
        place = f"{number} * {spelled}.gradientWordCount"
        entry.piece.indented(f"{spelled}.addDifferential<{tag}>({place}, {pair}.d);")
        return
    tag = entry.tags.writer(Role.GRADIENT, h.buffer, t)
    place = f"{number} * {spelled}.wordCount"
    if not entry.module.variant.accumulate:
        entry.piece.indented(f"{spelled}.writeDifferential<{tag}>({place}, {pair}.d);")
        return
    held = f"{spelled}.readDifferential<{tag}>({place})"
    total = f"{spelled}.dadd({held}, {pair}.d)"
    entry.piece.indented(f"{spelled}.writeDifferential<{tag}>({place}, {total});")


def write_forward(entry: EntryScope) -> None:
    arguments = [entry.index_name(n) for n in entry.kernel.index_names]
    wanted = {u.name for u in entry.wanted_uniforms()}
    for u in entry.kernel.uniforms:
        value = entry.uniforms.value(u)
        if u.name in wanted:
            tag = entry.tags.reader(Role.TANGENT, u.name, u.type)
            spelled = entry.module.types.spell(u.type)
            value = f"diffPair({value}, {spelled}.readDifferential<{tag}>(0))"
        arguments.append(value)
    derivative = f"fwd_diff({entry.body})"
    if not (entry.own or entry.resolved.sums):
        entry.piece.call(derivative, arguments)
        return
    if not (entry.float_own or entry.resolved.sums):
        entry.piece.call(f"Outputs outputs = {derivative}", arguments)
        for b in entry.own:
            entry.store(b, Role.OUTPUT, "outputs", "write")
        return
    entry.piece.call(f"DifferentialPair<Outputs> outputs = {derivative}", arguments)
    for b in entry.own:
        entry.store(b, Role.OUTPUT, "outputs.p", "write")
    for b in entry.float_own:
        entry.store(b, Role.OUTPUT_TANGENT, "outputs.d", "writeDifferential")
    for s in entry.resolved.sums:
        total, output = entry.module.sum(s.name), entry.module.output(s.name)
        entry.piece.add(f"sums.{total} += outputs.p.{output};")
        entry.piece.add(f"sums.{entry.module.sum(s.name, '_dot')} += outputs.d.{output};")
