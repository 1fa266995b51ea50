"""The entry point of a reduction or scan around the kernel that computes its elements.

The library's passes (shaders/reductions.slang, shaders/scans.slang) are generic over a struct that
says what an element is, how two are combined and where results go. Here that struct is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice

from shaderad.ir.nodes import Function, Kernel
from shaderad.ir.types import Type, byte_count, leaves
from shaderad.ir.walk import all_expressions, reachable
from shaderad.lower.arrays import read_cell, write_cell
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry_needs import note_uniforms
from shaderad.lower.entry_points import EntryWriter, send_report, write_indices
from shaderad.lower.entry_scope import INDEX, EntryScope
from shaderad.lower.operators import Operator
from shaderad.lower.piece import Piece, field_name
from shaderad.lower.slang import FunctionWriter

_GROUP_MEMORY = 16 * 1024
"""Bytes of group memory that WebGPU promises."""

_LONG = 120
"""Expressions of an element and its combination, from which on their code is not repeated."""
_FEW = 4
"""Scalars of a state, beyond which it is not either."""


def width_of(state: Type) -> int:
    """Threads of a group, each of which has a place in group memory where `has_room`."""
    places = _GROUP_MEMORY // byte_count(state)
    return next((width for width in (64, 32, 16) if width <= places), 8)


def has_room(state: Type) -> bool:
    """Whether a group can work on one chunk together."""
    return width_of(state) * byte_count(state) <= _GROUP_MEMORY


def runs_of(producer: Kernel, functions: tuple[Function, ...], state: Type) -> str:
    """How threads go through their elements: shaders/runs.slang."""
    own = (producer.body, *(f.body for f in functions))
    bodies = [*own, *(f.body for body in own for f in reachable(body))]
    found = chain.from_iterable(map(all_expressions, bodies))
    # Shared expressions count as often as they are reached, which may be very often.
    count = sum(1 for _ in islice(found, _LONG))
    is_small = len(leaves(state)) <= _FEW
    return "BlockRuns" if is_small and count < _LONG else "SingleRuns"


@dataclass(frozen=True, slots=True)
class Ending:
    """What is computed from each element that a scan of one row finds, and stored in its place."""

    kernel: Kernel
    """A kernel without outputs: its arrays and uniforms are what `function` reads."""
    function: Function
    """Takes the element, its index, and the uniforms."""
    is_mirrored: bool
    """Whether the result is stored as far from the end as the element is from the start."""
    is_exclusive: bool
    """Whether it takes what comes before the element in its place; anything for the first."""


@dataclass(frozen=True, slots=True)
class ReductionEntry:
    """A reduction of rows, or of what their chunks came to."""

    operator: Operator
    words: Mapping[str, str]
    """The size that each word holds: see lower/pass_sizes.py."""
    result: str
    """The array that gets one value a row."""
    totals: str = ""
    """The array that gets one value a chunk, where rows have several."""
    init: str = ""
    """The array whose values come before the rows."""
    finish: Function | None = None
    """What is made of each result before it is stored."""

    @property
    def writer(self) -> EntryWriter:
        return EntryWriter(self._note_needs, self._write, _called(self.operator, self.finish))

    def _note_needs(self, entry: EntryScope) -> None:
        state = self.operator.state
        written = {self.result: _stored_type(self.operator, self.finish)}
        written |= {self.totals: state} if self.totals else {}
        _note_needs(entry, self.operator, self.finish, [self.init] if self.init else [], written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = _Fold(entry, self.operator, self.words, self.finish)
        fold.open("Reduction : IReduction")
        self._write_total(fold)
        self._write_empty(fold)
        return fold.close("reduce")

    def _write_total(self, fold: _Fold) -> None:
        piece = fold.entry.piece
        value = "total"
        if self.init:
            value = f"{fold.combine}({fold.read(self.init, 'team')}, total)"
        store = fold.store_finished(self.result, "team", value)
        piece.open(f"static void write(uint team, {fold.state} total)")
        if self.totals:
            piece.add(f"if ({fold.size('chunk_count')} > 1)")
            piece.indented(fold.store(self.totals, "team", "total"))
            piece.add("else")
            piece.indented(store)
        else:
            piece.add(store)
        piece.close()

    def _write_empty(self, fold: _Fold) -> None:
        value = fold.read(self.init, "team") if self.init else fold.neutral()
        text = fold.store_finished(self.result, "team", value)
        fold.entry.piece.add(f"static void writeEmpty(uint team) {{ {text} }}")


@dataclass(frozen=True, slots=True)
class ScanEntry:
    """A scan of rows."""

    operator: Operator
    words: Mapping[str, str]
    """The size that each word holds: see lower/pass_sizes.py."""
    result: str
    befores: str = ""
    """What the chunks of each row come to up to each of them, where rows have several."""
    finish: Function | None = None
    """What is made of each result before it is stored."""
    ending: Ending | None = None
    """What is computed from that."""

    @property
    def writer(self) -> EntryWriter:
        called, own = _called(self.operator, self.finish), frozenset[str]()
        if self.ending is not None:
            called += (self.ending.function,)
            own = frozenset(u.name for u in self.ending.kernel.uniforms)
        return EntryWriter(self._note_needs, self._write, called, own)

    def _note_needs(self, entry: EntryScope) -> None:
        read = [self.befores] if self.befores else []
        written = {self.result: _stored_type(self.operator, self.finish)}
        if self.ending is not None:
            entry.module.function(self.ending.function)
            written = {self.result: self.ending.function.result}
        _note_needs(entry, self.operator, self.finish, read, written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = _Fold(entry, self.operator, self.words, self.finish)
        fold.open("Scan : IScan")
        if self.befores:
            text = fold.read(self.befores, "max(team, 1) - 1")
            head = f"override static {fold.state} beforeTeam(uint team)"
            entry.piece.add(f"{head} {{ return {text}; }}")
        if self.ending is None:
            store = fold.store_finished(self.result, "number", "value")
        else:
            store = fold.store_ended(self.result, self.ending)
        head = f"static void write(uint number, {fold.state} value)"
        entry.piece.add(f"{head} {{ {store} }}")
        is_exclusive = self.ending is not None and self.ending.is_exclusive
        text = f"static bool isExclusive() {{ return {str(is_exclusive).lower()}; }}"
        entry.piece.add(text)
        return fold.close("scan")


def _called(operator: Operator, finish: Function | None) -> tuple[Function, ...]:
    return (operator.combine,) if finish is None else (operator.combine, finish)


def _stored_type(operator: Operator, finish: Function | None) -> Type:
    return operator.state if finish is None else finish.result


def _note_needs(
    entry: EntryScope,
    operator: Operator,
    finish: Function | None,
    read: list[str],
    written: Mapping[str, Type],
) -> None:
    module, state = entry.module, operator.state
    module.workgroup_size = width_of(state)
    module.stored_types |= {state, *written.values()}
    note_uniforms(entry)
    for function in _called(operator, finish):
        module.function(function)
    for name in read:
        module.arrays.need(Role.INPUT, name, state, read_cell(state))
    for name, t in written.items():
        module.arrays.need(Role.OUTPUT, name, t, write_cell(t))


class _Fold:
    """The struct over which a pass is generic, while it is written."""

    def __init__(
        self,
        entry: EntryScope,
        operator: Operator,
        words: Mapping[str, str],
        finish: Function | None,
    ) -> None:
        self.entry = entry
        self._finish = finish
        self.state = entry.module.types.spell(operator.state)
        self.combine = entry.module.function(operator.combine)
        self._operator = operator
        self._words = words
        self._is_together = "is_together" in words
        self._width = width_of(operator.state)
        self._runs = runs_of(entry.kernel, _called(operator, finish), operator.state)
        self._name = ""
        self._kept: list[tuple[str, str, str]] = []

    def open(self, head: str) -> None:
        """Group memory, and the first lines of the struct."""
        piece, bases = self.entry.piece, head
        uniforms = self.entry.kernel.uniforms
        self._kept = self.entry.uniforms.kept(uniforms, self.entry.module.names)
        for t, name, _ in self._kept:
            piece.add(f"static {t} {name};")
        if self._is_together:
            piece.add(f"groupshared {self.state} parts[{self._width}];")
            piece.add()
            bases += ", ITeam"
        self._name = head.partition(" ")[0]
        piece.open(f"struct {bases}")
        piece.add(f"typealias State = {self.state};")
        self._write_element()
        given = f"{self.state} left, {self.state} right"
        text = f"return {self.combine}(left, right);"
        piece.add(f"static {self.state} folded({given}) {{ {text} }}")
        if self._is_together:
            piece.add(f"static {self.state} partOf(uint thread) {{ return parts[thread]; }}")
            head = f"static void setPartOf(uint thread, {self.state} value)"
            piece.add(f"{head} {{ parts[thread] = value; }}")

    def _write_element(self) -> None:
        entry = self.entry
        entry.piece.open(f"static {self.state} at(uint {INDEX})")
        if entry.module.variant.checks:
            entry.piece.add(f"thread = {INDEX};")
        write_indices(entry)
        entry.call_body(entry.arguments())
        (own,) = entry.own
        entry.piece.add(f"return outputs.{field_name(own.name)};")
        entry.piece.close()

    def close(self, pass_name: str) -> tuple[str, Piece, Piece]:
        """The end of the struct, and the entry point."""
        entry, piece = self.entry, self.entry.piece
        piece.close()
        piece.add()
        name = entry.module.names.make(f"{entry.body}_{pass_name}")
        piece.add('[shader("compute")]')
        piece.add(f"[numthreads({self._width}, 1, 1)]")
        piece.open(f"void {name}(uint3 group : SV_GroupID, uint laneIndex : SV_GroupIndex)")
        piece.add("lane = laneIndex;")
        for _, variable, text in self._kept:
            piece.add(f"{variable} = {text};")
        names = ("row_length", "chunk_length", "chunk_count", "team_count")
        groups = entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        piece.call("Rows rows = Rows", [*map(self.size, names), groups])
        if self._is_together:
            piece.add(f"if ({self.size('is_together')} != 0)")
            piece.indented(
                f"{pass_name}Together<{self._name}, {self._runs}, {self._width}>(rows, group.x);"
            )
            piece.add("else")
            piece.indented(
                f"{pass_name}Alone<{self._name}, {self._runs}, {self._width}>(rows, group.x);"
            )
        else:
            piece.add(
                f"{pass_name}Alone<{self._name}, {self._runs}, {self._width}>(rows, group.x);"
            )
        if entry.module.sends_reports:
            piece.add(send_report(entry))
        piece.close()
        return name, entry.tags.piece, piece

    def size(self, name: str) -> str:
        return self.entry.module.word(Word(WordKind.SIZE, self._words[name]), name)

    def read(self, array: str, number: str) -> str:
        tag = self.entry.tags.reader(Role.INPUT, array, self._operator.state)
        return f"{self.state}.read<{tag}>({self._offset(number)})"

    def store(self, array: str, number: str, value: str) -> str:
        return self._store(array, self._operator.state, number, value)

    def store_finished(self, array: str, number: str, value: str) -> str:
        """Stores what is made of a result."""
        t = _stored_type(self._operator, self._finish)
        return self._store(array, t, number, self._finished(value))

    def store_ended(self, array: str, ending: Ending) -> str:
        """Stores what is computed from the `value` that a scan has found at `number`."""
        entry = self.entry
        given = [self._finished("value"), "int(number)"]
        given += [entry.uniforms.value(u) for u in ending.kernel.uniforms]
        ended = f"{entry.module.function(ending.function)}({', '.join(given)})"
        number = f"({self.size('row_length')} - 1 - number)" if ending.is_mirrored else "number"
        return self._store(array, ending.function.result, number, ended)

    def _finished(self, value: str) -> str:
        if self._finish is None:
            return value
        return f"{self.entry.module.function(self._finish)}({value})"

    def _store(self, array: str, t: Type, number: str, value: str) -> str:
        tag = self.entry.tags.writer(Role.OUTPUT, array, t)
        spelled = self.entry.module.types.spell(t)
        return f"{spelled}.write<{tag}>({number} * {spelled}.wordCount, {value});"

    def _offset(self, number: str) -> str:
        number = f"({number})" if " " in number else number
        return f"{number} * {self.state}.wordCount"

    def neutral(self) -> str:
        writer = FunctionWriter(self.entry.module, Piece(), {}, is_differentiated=False)
        return writer.text(self._operator.neutral)
