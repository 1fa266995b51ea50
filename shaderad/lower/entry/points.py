"""The entry point around a body: ``<kernel>_primal``, ``_bwd``, ``_fwd``, ``_winner``, ``_decode``.

Each thread reads hoisted elements, calls the body or its derivative, and stores the results. An
entry point whose threads sum values (uniform gradients, Add elements at fixed indices) adds once a
group, of which there are few: each loops over a tile of indices. On processors every group does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shaderad.bodies.outputs import Resolved
from shaderad.ir.types import Access
from shaderad.lower.bindings import WORKGROUP_SIZE, Mode, Role, WordKind
from shaderad.lower.entry.derivatives import write_backward
from shaderad.lower.entry.needs import group_limit, is_reduction, note_needs
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.entry.sums import add_sums, sum_fields
from shaderad.lower.write.module import Module
from shaderad.lower.write.piece import Piece
from shaderad.lower.write.tags import inner_extents

ENTRY_NAME = ("entry point",)
"""The key of an entry point's name in `Module.names`."""


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """A form of entry points around bodies."""

    note_needs: Callable[[EntryScope], None]
    """Binds the arrays that the entry point accesses, before slots are counted."""
    write: Callable[[EntryScope], tuple[str, Piece, Piece]]
    """Returns the entry point's name, its tags and its text."""
    own_uniforms: frozenset[str] = frozenset()
    """Uniforms that the entry point reads and the body does not."""


def write_entry(entry: EntryScope) -> tuple[str, Piece, Piece]:
    """The name of the entry point, its tags and its text."""
    name = entry.module.names.of(ENTRY_NAME)
    piece = entry.piece
    sums = sum_fields(entry) if is_reduction(entry) else []
    if sums:
        _sums_struct(piece, sums)
    open_entry_point(entry.module, piece, name)
    for t, variable, text in entry.uniforms.kept(entry.kernel.uniforms, entry.names):
        piece.add(f"{t} {variable} = {text};")
    count = entry.word(WordKind.THREAD_COUNT, "thread_count")
    _before_threads(entry)
    if entry.module.sums_in_waves:
        piece.add("findLeaders();")
    if sums:
        piece.add("Sums sums = {};")
    if group_limit(entry):
        _tile(entry, count, has_sums=bool(sums))
    else:
        row = entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        piece.add(f"uint {INDEX} = threadNumber(group, {row});")
        _note_whole_group(entry, count)
        piece.add(f"if ({INDEX} >= {count})")
        piece.indented("return;")
        _thread(entry)
    if sums:
        add_sums(entry)
    if entry.module.sends_reports:
        piece.add(send_report(entry))
    piece.close()
    return name, entry.tags.piece, piece


def open_entry_point(module: Module, piece: Piece, name: str) -> None:
    """Writes the head of an entry point whose threads the library numbers."""
    size = module.workgroup_size
    if size != WORKGROUP_SIZE:
        piece.add(f"export public static const uint groupSize = {size};")
        piece.add()
    piece.add('[shader("compute")]')
    piece.add(f"[numthreads({size}, 1, 1)]")
    piece.open(f"void {name}(uint3 group : SV_GroupID, uint laneIndex : SV_GroupIndex)")
    piece.add("lane = laneIndex;")


def send_report(entry: EntryScope) -> str:
    """The last statement of an entry point whose threads report."""
    if not entry.module.variant.checks:
        return "sendReport<Report>();"
    launch = entry.word(WordKind.LAUNCH, "launch")
    return f"sendLowestReport<Report>({launch}, {inner_extents(entry.module)});"


def _sums_struct(piece: Piece, sums: list[tuple[str, str]]) -> None:
    piece.open("struct Sums")
    for field, spelled in sums:
        piece.add(f"{spelled} {field};")
    piece.close()
    piece.add()


def _before_threads(entry: EntryScope) -> None:
    """Reads the elements and cotangents that all threads share."""
    if entry.module.mode is not Mode.BACKWARD:
        return
    for h in entry.module.strategies.uniform:
        entry.places[h.name] = entry.element_number(h)
        spelled = entry.module.types.spell(entry.element(h.buffer))
        tag = entry.module.arrays.tag(h.buffer)
        value = entry.names.make(h.name)
        entry.values[h.name] = value
        read = entry.reader(h.buffer, h.indices)
        entry.piece.add(f"{spelled} {value} = {read}<{spelled}, {tag}>({entry.places[h.name]});")
    for s in entry.resolved.sums:
        tag = entry.tags.reader(Role.COTANGENT, s.buffer, s.type)
        spelled = entry.module.types.spell(s.type)
        value = entry.names.make(f"{s.name}_bar")
        entry.values[s.name] = value
        read = entry.reader(s.buffer, (s.index,))
        entry.piece.add(f"{spelled} {value} = {read}<{spelled}, {tag}>({entry.sum_number(s)});")


def _tile(entry: EntryScope, count: str, *, has_sums: bool) -> None:
    """The loop of a group over its tile of the indices.

    If groups sum inside the loop, all threads make every iteration: threads past the end repeat the
    last index, and neither write nor report.
    """
    piece, is_together = entry.piece, entry.module.sums_in_groups
    tile = entry.word(WordKind.TILE, "tile")
    first, end = entry.names.make("first"), entry.names.make("end")
    piece.add(f"uint {first} = group.x * {tile};")
    piece.add(f"uint {end} = min({count}, {first} + {tile});")
    if is_together:
        start = entry.names.make("start")
        piece.open(f"for (uint {start} = {first}; {start} < {end}; {start} += groupSize)")
        piece.add(f"isThere = {start} + lane < {end};")
        piece.add(f"uint {INDEX} = min({start} + lane, {end} - 1);")
        if has_sums:
            piece.add("Sums before = sums;")
    else:
        head = f"uint {INDEX} = {first} + lane; {INDEX} < {end}; {INDEX} += groupSize"
        piece.open(f"for ({head})")
    _note_whole_group(entry, end)
    _thread(entry)
    if is_together and has_sums:
        piece.add("if (!isThere)")
        piece.indented("sums = before;")
    piece.close()


def _note_whole_group(entry: EntryScope, end: str) -> None:
    if entry.module.sums_in_waves:
        entry.piece.add(f"isWholeGroup = {INDEX} - lane + groupSize <= {end};")


def _thread(entry: EntryScope) -> None:
    module = entry.module
    compares = module.mode in (Mode.WINNER, Mode.BACKWARD, Mode.FORWARD)
    is_named = bool(module.variant.checks) or module.arrays.uses_print
    if is_named or (compares and _has_extremes(entry)):
        entry.piece.add(f"thread = {INDEX};")
    write_indices(entry)
    _THREADS[module.mode](entry)


def _has_extremes(entry: EntryScope) -> bool:
    return any(b.access in (Access.MIN, Access.MAX) for b in entry.kernel.buffers)


def write_indices(entry: EntryScope) -> None:
    """Declares the indices of a thread, row-major over ``dim``."""
    names = entry.kernel.index_names
    rest = INDEX
    for axis, name in enumerate(names):
        inner = [entry.word(WordKind.DIM, f"dim_{k}", k) for k in range(axis + 1, len(names))]
        step = " * ".join(inner)
        step = f"({step})" if len(inner) > 1 else step
        text = f"{rest} / {step}" if inner else rest
        entry.piece.add(f"int {entry.index_name(name)} = int({text});")
        if inner:
            rest = f"({INDEX} % {step})" if axis == 0 else f"({rest} % {step})"


def _primal(entry: EntryScope) -> None:
    entry.call_body()
    names = entry.resolved.locals
    entry.store_results({name: f"outputs.{entry.module.output(name)}" for name in names})


_THREADS: dict[Mode, Callable[[EntryScope], None]] = {
    Mode.PRIMAL: _primal,
    Mode.WINNER: EntryScope.call_body,
    Mode.BACKWARD: write_backward,
    Mode.FORWARD: _primal,
}


KERNEL_ENTRY = EntryWriter(note_needs, write_entry)
"""One thread an index."""


def write_outputs(module: Module, resolved: Resolved) -> Piece | None:
    """The struct that the body returns; `None` for a body without results."""
    if not resolved.locals:
        return None
    piece = Piece()
    piece.open("struct Outputs")
    for name in resolved.locals:
        piece.add(f"{module.types.spell(resolved.local_types[name])} {module.output(name)};")
    piece.close()
    return piece
