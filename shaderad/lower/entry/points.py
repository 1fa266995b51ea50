"""The entry point around a body: ``<kernel>_primal``, ``_bwd``, ``_fwd``, ``_winner``, ``_decode``.

Each thread reads hoisted elements, calls the body or its adjoint, which adds to sums in place, and
stores its results and its own gradients. If threads sum values (uniform gradients, Add elements at
fixed indices), the entry point adds once per group. There are few groups, each of which loops over
a tile of indices. On processors every group loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from shaderad.bodies.outputs import Resolved
from shaderad.ir.nodes import Buffer, Expr
from shaderad.ir.types import WORD_BYTES, Access, Kind, Type, byte_count, scalars
from shaderad.lower.bindings import (
    GROUP_SIZE,
    Mode,
    Role,
    Word,
    WordKind,
)
from shaderad.lower.entry.copies import clearing, releasing
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.entry.tiles import first_item, note_whole_group, tile_loop, write_indices
from shaderad.lower.prepare.strategy import Hoisted
from shaderad.lower.write.arrays import extreme_fill
from shaderad.lower.write.module import Module
from shaderad.lower.write.resources import SlangBuffer
from shaderad.lower.write.tags import inner_extents
from shaderad.lower.write.text import Piece, widened

ENTRY_NAME = ("entry point",)
"""The key of an entry point's name in `Module.names`."""


def note_needs(entry: EntryScope) -> None:
    """Binds the arrays that the entry point reads and writes outside of the body."""
    mode, arrays = entry.module.mode, entry.module.arrays
    note_uniforms(entry)
    for u in entry.wanted_uniforms():
        arrays.need_gradient(u.name, u.type, is_summed=True)
    for b in entry.own:
        t = b.type.element
        if entry.module.gives_results:
            arrays.need_results(b.name, t)
        if mode is Mode.BACKWARD and b in entry.pulled:
            arrays.need_elements(Role.COTANGENT, b.name, t)
    for s in entry.resolved.sums:
        if entry.module.gives_results:
            arrays.need(Role.OUTPUT, s.buffer, s.type, arrays.float_buffer(), fill_word=0)
        if mode is Mode.BACKWARD and entry.module.has_cotangent(s.buffer):
            arrays.need(Role.COTANGENT, s.buffer, s.type, SlangBuffer.READ)


def note_uniforms(entry: EntryScope) -> None:
    for u in entry.kernel.uniforms:
        if u.name in entry.module.variant.device_uniforms:
            entry.module.arrays.need_elements(Role.UNIFORM, u.name, u.type)


def group_limit(entry: EntryScope) -> int:
    """`Lowered.group_limit` of the entry point."""
    if entry.module.variant.is_one_group or entry.module.has_barriers:
        return 0
    shape = entry.module.variant.shape
    sums = _sum_fields(entry) or entry.module.sums_in_groups or entry.module.arrays.copies
    return shape.sum_group_limit if sums else shape.group_limit


def sum_bytes(entry: EntryScope) -> int:
    """The memory of a group in which it sums."""
    sums = _sum_fields(entry) or entry.module.sums_in_groups
    return WORD_BYTES * entry.module.workgroup_size if sums else 0


def is_single_group(entry: EntryScope) -> bool:
    """True if the dispatch sums cotangents of doubles, which have no atomic add."""
    types = _summed_types(entry).values()
    return any(s.kind is Kind.DOUBLE for t in types for s in scalars(t))


def write_entry(entry: EntryScope) -> tuple[str, Piece, Piece]:
    """The name of the entry point, its tags and its text."""
    name = entry.module.names.of(ENTRY_NAME)
    piece = entry.piece
    sums, spell = _sum_fields(entry), entry.module.types.spell
    if sums:
        piece.block("struct Sums", [f"{spell(t)} {field};" for field, t in sums])
        count = _firsts(t for _, t in sums)[-1]
        piece.add("", f"export public static const uint sumCount = {count};", "")
    _open_entry_point(entry.module, piece, name)
    for t, variable, text in entry.read_uniforms(entry.names):
        piece.add(f"{t} {variable} = {text};")
    thread_count = entry.word(WordKind.THREAD_COUNT, "thread_count")
    _before_threads(entry)
    if entry.module.sums_in_waves:
        piece.add("findLeaders();")
    piece.add(*clearing(entry.module))
    if sums:
        piece.add("Sums sums = {};")
    if group_limit(entry):
        with tile_loop(entry, thread_count, has_sums=bool(sums)):
            _thread(entry)
    else:
        row = entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        start = f"{first_item(entry)} + " if entry.module.variant.is_windowed else ""
        piece.add(f"uint {INDEX} = {start}threadNumber(group, {row});")
        note_whole_group(entry, thread_count)
        _end_launch(entry, thread_count)
        write_indices(entry)
        _thread(entry)
    for array, held in entry.module.arrays.held_sums.items():
        piece.add(f"{held}.release<{entry.module.arrays.tag(array)}>();")
    if sums:
        _add_sums(entry)
    piece.add(*releasing(entry.module))
    if entry.module.sends_reports:
        piece.add(send_report(entry))
    piece.close()
    return name, entry.tags.piece, piece


def _end_launch(entry: EntryScope, count: str) -> None:
    """Ends threads past the end of the launch, or marks them if the body has barriers."""
    if entry.module.has_barriers:
        entry.piece.add(f"isThere = {INDEX} < {count};", f"{INDEX} = min({INDEX}, {count} - 1);")
    elif not entry.module.variant.is_one_group:
        entry.piece.guarded(f"if ({INDEX} >= {count})", "return;")


def _open_entry_point(module: Module, piece: Piece, name: str) -> None:
    """Writes the head of an entry point whose threads the library numbers."""
    size = module.workgroup_size
    if size != GROUP_SIZE:
        piece.add(f"export public static const uint groupSize = {size};", "")
    open_group(module, piece, name, size)


def open_group(module: Module, piece: Piece, name: str, width: int) -> None:
    """Writes the head of an entry point with groups of `width` threads."""
    piece.add('[shader("compute")]', f"[numthreads({width}, 1, 1)]")
    piece.open(f"void {name}(uint3 group : SV_GroupID, uint laneIndex : SV_GroupIndex)")
    piece.add("lane = laneIndex;")
    if module.holds_parameters:
        piece.add("heldParameters = parameters;")


def send_report(entry: EntryScope) -> str:
    """The last statement of an entry point whose threads report."""
    if not entry.module.variant.checks:
        return "sendReport<Report>();"
    launch = entry.word(WordKind.LAUNCH, "launch")
    return f"sendLowestReport<Report>({launch}, {inner_extents(entry.module)});"


def _before_threads(entry: EntryScope) -> None:
    """Reads the elements and cotangents that all threads share."""
    if entry.module.mode is not Mode.BACKWARD:
        return
    spell = entry.module.types.spell
    for h, text in entry.read_hoisted(entry.module.strategies.uniform):
        value = entry.values[h.name] = entry.names.make(h.name)
        entry.piece.add(f"{spell(entry.element(h.buffer))} {value} = {text};")
    for s in entry.pulled_sums:
        tag = entry.tags.reader(Role.COTANGENT, s.buffer, s.type)
        value = entry.values[s.name] = entry.names.make(f"{s.name}_bar")
        indices = (s.index,)
        text = entry.read(s.buffer, indices, tag, s.type, entry.number(s.buffer, indices))
        entry.piece.add(f"{spell(s.type)} {value} = {text};")


def _thread(entry: EntryScope) -> None:
    module = entry.module
    compares = module.mode in (Mode.WINNER, Mode.BACKWARD, Mode.FORWARD)
    has_extremes = any(b.access in (Access.MIN, Access.MAX) for b in entry.kernel.buffers)
    if module.variant.checks or module.arrays.uses_print or (compares and has_extremes):
        entry.piece.add(f"thread = {INDEX};")
    _THREADS[module.mode](entry)


def _primal(entry: EntryScope) -> None:
    entry.call_body()
    names = entry.resolved.locals
    entry.store_results({name: f"outputs.{entry.module.output(name)}" for name in names})


def _backward(entry: EntryScope) -> None:
    types, own = entry.module.types, entry.module.strategies.exclusive.values()
    arguments = [*entry.arguments(), *(text for _, text in entry.read_hoisted(own))]
    uniform = entry.module.strategies.uniform
    arguments += [entry.values[h.name] for h in uniform if h.name in entry.values]
    for b in entry.pulled:
        arguments.append(entry.loaded(Role.COTANGENT, b.name, b.type.element, INDEX))
    arguments += [entry.values[s.name] for s in entry.pulled_sums]
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
    if arrays.is_atomic(Role.GRADIENT, h.buffer):
        spelled = entry.module.types.spell(t)
        tag, place = f"{arrays.tag(h.buffer)}.Gradient", f"{number} * {spelled}.gradientWordCount"
        text = f"{spelled}.addCotangent<{tag}>({place}, {bar});"
    else:
        text = entry.stored(Role.GRADIENT, h.buffer, t, number, bar)
    entry.guarded(text, number, h.buffer, h.indices)


_THREADS: dict[Mode, Callable[[EntryScope], None]] = {
    Mode.PRIMAL: _primal,
    Mode.WINNER: EntryScope.call_body,
    Mode.BACKWARD: _backward,
    Mode.FORWARD: _primal,
}


# -- sums over threads ------------------------------------------------------------------------


def _sum_fields(entry: EntryScope) -> list[tuple[str, Type]]:
    """Field and type of each sum of the dispatch."""
    summed = _summed_types(entry)
    if entry.module.gives_results:
        summed |= {s.name: s.type for s in entry.resolved.sums}
    return [(entry.module.sum(name), t) for name, t in summed.items()]


def _summed_types(entry: EntryScope) -> dict[str, Type]:
    """The uniforms and hoisted elements whose cotangents the dispatch sums."""
    uniforms = {u.name: u.type for u in entry.wanted_uniforms()}
    hoisted = entry.module.strategies.uniform
    return uniforms | {h.name: entry.element(h.buffer) for h in hoisted}


@dataclass(frozen=True)
class _Sum:
    """A sum of the dispatch, and the array element to which it is added."""

    role: Role
    array: str
    name: str
    type: Type
    place: str
    """The first word of the element."""
    number: str = ""
    """The element's number, if it may be out of range, and the indices from which it comes."""
    indices: tuple[Expr, ...] = ()


def _add_sums(entry: EntryScope) -> None:
    """Writes one sum over the group for all floats, and one addition per group for each."""
    over_waves = entry.module.variant.subgroups
    if over_waves:
        entry.module.features.add("subgroups")
    sums = [*_sums(entry)]
    firsts = _firsts(s.type for s in sums)
    for s, first in zip(sums, firsts, strict=False):
        entry.piece.add(_over_floats(entry, s, f"PartOfSums<{first}>"))
    entry.piece.add("sumWaves();" if over_waves else "sumGroup();")
    for s, first in zip(sums, firsts, strict=False):
        tag = entry.tags.adder(s.role, s.array, s.type)
        entry.piece.add(f"sumPlace = {s.place};")
        text = _over_floats(entry, s, f"TotalOfSums<{tag}, {first}>")
        if s.number:
            entry.guarded(text, s.number, s.array, s.indices)
        else:
            entry.piece.add(text)


def _sums(entry: EntryScope) -> Iterator[_Sum]:
    spell = entry.module.types.spell
    for u in entry.wanted_uniforms():
        yield _Sum(Role.GRADIENT, u.name, u.name, u.type, "0")
    for h in entry.module.strategies.uniform:
        t, number = entry.element(h.buffer), entry.places[h.name]
        place = f"{number} * {spell(t)}.gradientWordCount"
        yield _Sum(Role.GRADIENT, h.buffer, h.name, t, place, number, h.indices)
    for s in entry.resolved.sums if entry.module.gives_results else ():
        number = entry.names.make(f"{s.name}_number")
        entry.piece.add(f"uint {number} = {entry.number(s.buffer, (s.index,))};")
        place = f"{number} * {spell(s.type)}.wordCount"
        yield _Sum(Role.OUTPUT, s.buffer, s.name, s.type, place, number, (s.index,))


def _firsts(sums: Iterable[Type]) -> list[int]:
    """The number of floats before each sum, and that of all; a double counts as two."""
    return [*accumulate((byte_count(widened(t)) // 4 for t in sums), initial=0)]


def _over_floats(entry: EntryScope, s: _Sum, tag: str) -> str:
    """The statement that gives each float of the sum `s` to `tag`."""
    function = "addCotangent" if s.role is Role.GRADIENT else "addTo"
    field = entry.module.sum(s.name)
    return f"{entry.module.types.spell(s.type)}.{function}<{tag}>(0, sums.{field});"


# -- results ----------------------------------------------------------------------------------


def write_outputs(module: Module, resolved: Resolved) -> Piece | None:
    """The struct that the body returns; `None` for a body without results."""
    if not resolved.locals:
        return None
    piece, spell = Piece(), module.types.spell
    types = {name: spell(resolved.local_types[name]) for name in resolved.locals}
    piece.block("struct Outputs", [f"{t} {module.output(name)};" for name, t in types.items()])
    return piece


def write_decoder(module: Module, b: Buffer, *, is_first: bool) -> tuple[Piece, Piece, str]:
    """Declarations, entry point and its name; it makes order-preserving words values, in place.

    Args:
        module: The module of the last pass of the primal of a Min or Max array.
        b: The array.
        is_first: True if no earlier dispatch binds the array, since the kernel never writes it.
    """
    t = b.type.element
    scalar = next(iter(scalars(t)))
    fill = extreme_fill(b) if is_first else None
    module.arrays.need(Role.OUTPUT, b.name, t, SlangBuffer.WRITE, fill_word=fill)
    declarations = module.arrays.bind()
    piece = Piece()
    name = module.names.make(f"{b.name}_decode")
    count = module.word(Word(WordKind.THREAD_COUNT), "thread_count")
    row = module.word(Word(WordKind.GROUP_COUNT_X), "group_count_x")
    text = module.arrays.words(Role.OUTPUT, b.name, INDEX)
    decoded = f"{scalar}.decode({text})"
    bits = decoded if scalar.kind is Kind.UINT else f"asuint({decoded})"
    _open_entry_point(module, piece, name)
    piece.add(f"uint {INDEX} = threadNumber(group, {row});")
    piece.guarded(f"if ({INDEX} < {count})", f"{text} = {bits};")
    piece.close()
    return declarations, piece, name
