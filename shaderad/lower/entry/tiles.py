"""The indices of a thread: one, or those of a loop over its part of the group's tile."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from shaderad.lower.bindings import WordKind
from shaderad.lower.entry.scope import INDEX, EntryScope


def first_item(entry: EntryScope) -> str:
    """The number of a window's first thread or team."""
    return entry.word(WordKind.FIRST_ITEM, "first_item")


def note_whole_group(entry: EntryScope, end: str) -> None:
    """Tells `OfWave` whether all threads of the group have an index before `end`."""
    if entry.module.sums_in_waves:
        entry.piece.add(f"isWholeGroup = {INDEX} - lane + groupSize <= {end};")


def write_indices(entry: EntryScope) -> None:
    """Declares the indices of a thread, row-major over ``dim``.

    Divisions are expensive, so there is one per axis except the first, and no remainder.
    """
    names, rest = entry.kernel.index_names, INDEX
    for name, extent in reversed([*zip(names[1:], _extents(entry), strict=True)]):
        outer = entry.names.make("outer")
        entry.piece.add(f"uint {outer} = {rest} / {extent};")
        entry.piece.add(f"int {entry.index_name(name)} = int({rest} - {outer} * {extent});")
        rest = outer
    for name in names[:1]:
        entry.piece.add(f"int {entry.index_name(name)} = int({rest});")


def _extents(entry: EntryScope) -> list[str]:
    """The extents of the axes after the first."""
    count = len(entry.kernel.index_names)
    return [entry.word(WordKind.DIM, f"dim_{k}", k) for k in range(1, count)]


@contextmanager
def tile_loop(entry: EntryScope, count: str, *, has_sums: bool) -> Generator[None]:
    """The loop of a thread over its part of the tile of its group, around the ``with`` block.

    If groups sum inside the loop, all threads run every iteration. Threads past the end repeat the
    last index, and neither write nor report.
    """
    piece, module = entry.piece, entry.module
    tile = entry.word(WordKind.TILE, "tile")
    first, end = entry.names.make("first"), entry.names.make("end")
    before = f"{first_item(entry)} + " if module.variant.is_windowed else ""
    piece.add(
        f"uint {first} = {before}group.x * {tile};",
        f"uint {end} = min({count}, {first} + {tile});",
    )
    if module.sums_in_groups:
        with _together(entry, first, end, has_sums=has_sums):
            yield
    elif module.variant.shape.is_parallel or module.sums_in_waves:
        with _stepping(entry, f"{first} + lane", end, "groupSize"):
            note_whole_group(entry, end)
            yield
    elif module.arrays.held_sums:
        runs, start, stop = map(entry.names.make, ("runs", "start", "stop"))
        piece.add(f"TileRuns {runs} = runsOfTile({first}, {end}, {tile});")
        step = f"{start} += neighbourCount * {runs}.length"
        piece.open(f"for (uint {start} = {runs}.firstIndex; {start} < {runs}.endIndex; {step})")
        piece.add(f"uint {stop} = min({runs}.endIndex, {start} + {runs}.length);")
        with _stepping(entry, start, stop, "1"):
            yield
        piece.close()
    else:
        part = entry.names.make("part")
        piece.add(f"TilePart {part} = partOfTile({first}, {end}, {tile});")
        with _stepping(entry, f"{part}.firstIndex", f"{part}.endIndex", "neighbourCount"):
            yield


@contextmanager
def _together(entry: EntryScope, first: str, end: str, *, has_sums: bool) -> Generator[None]:
    piece, start = entry.piece, entry.names.make("start")
    piece.open(f"for (uint {start} = {first}; {start} < {end}; {start} += groupSize)")
    piece.add(
        f"isThere = {start} + lane < {end};",
        f"uint {INDEX} = min({start} + lane, {end} - 1);",
    )
    if has_sums:
        piece.add("Sums before = sums;")
    write_indices(entry)
    yield
    if has_sums:
        piece.guarded("if (!isThere)", "sums = before;")
    piece.close()


@contextmanager
def _stepping(entry: EntryScope, first: str, end: str, step: str) -> Generator[None]:
    """A loop with equal steps. With several axes, divisions compute only the first indices."""
    piece, names = entry.piece, entry.kernel.index_names
    if len(names) < 2:
        piece.open(f"for (uint {INDEX} = {first}; {INDEX} < {end}; {INDEX} += {step})")
        write_indices(entry)
        yield
        piece.close()
        return
    piece.add(f"uint {INDEX} = {first};")
    write_indices(entry)
    inner = [*zip(names[1:], _extents(entry), strict=True)][::-1]
    steps, rest = {name: entry.names.make(f"{name}_step") for name in names}, step
    for name, extent in inner:
        piece.add(f"uint {steps[name]} = {rest} % {extent};")
        rest = f"{rest} / {extent}"
    piece.add(f"uint {steps[names[0]]} = {rest};")
    piece.open(f"for (; {INDEX} < {end}; {INDEX} += {step})")
    yield
    carry = entry.names.make("carry")
    piece.add(f"uint {carry} = 0;")
    for name, extent in inner:
        piece.add(f"advance({entry.index_name(name)}, {steps[name]}, {extent}, {carry});")
    piece.add(f"{entry.index_name(names[0])} += int({steps[names[0]]} + {carry});")
    piece.close()
