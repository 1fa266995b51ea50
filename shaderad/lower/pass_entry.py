"""The entry point of a reduction or scan around the kernel that computes its elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.ir.arrays import Ending
from shaderad.ir.nodes import Function
from shaderad.lower.entry_points import EntryWriter
from shaderad.lower.entry_scope import EntryScope
from shaderad.lower.operators import Operator
from shaderad.lower.pass_fold import Fold, called, note_needs, result_of, stored_type
from shaderad.lower.piece import Piece


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
    is_commutative: bool = False
    """Whether elements may be combined in any order."""

    @property
    def writer(self) -> EntryWriter:
        return EntryWriter(self._note_needs, self._write, called(self.operator, self.finish))

    def _note_needs(self, entry: EntryScope) -> None:
        state = self.operator.state
        written = {self.result: stored_type(self.operator, self.finish)}
        written |= {self.totals: state} if self.totals else {}
        written |= {b.name: b.type.element for b in entry.own[1:]}
        note_needs(entry, self.operator, self.finish, [self.init] if self.init else [], written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = Fold(entry, self.operator, self.words, self.finish)
        fold.open("Reduction : IReduction")
        if self.is_commutative:
            entry.piece.add("override static bool isCommutative() { return true; }")
        self._write_total(fold)
        self._write_empty(fold)
        return fold.close("reduce")

    def _write_total(self, fold: Fold) -> None:
        piece = fold.entry.piece
        value = "total"
        if self.init:
            value = f"{fold.combine}({fold.read(self.init, 'team')}, total)"
        store = fold.store_finished(self.result, "team", value)
        piece.open(f"static void write(uint team, {fold.state} total)")
        if self.totals:
            piece.add(f"if ({fold.size('chunk_count')} > 1)")
            piece.indented(fold.store(self.totals, self.operator.state, "team", "total"))
            piece.add("else")
            piece.indented(store)
        else:
            piece.add(store)
        piece.close()

    def _write_empty(self, fold: Fold) -> None:
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
    own_uniforms: frozenset[str] = frozenset()
    """What the ending takes and elements do not."""

    @property
    def writer(self) -> EntryWriter:
        functions = called(self.operator, self.finish)
        if self.ending is not None:
            functions += (self.ending.function,)
        return EntryWriter(self._note_needs, self._write, functions, self.own_uniforms)

    def _note_needs(self, entry: EntryScope) -> None:
        read = [self.befores] if self.befores else []
        written = {self.result: stored_type(self.operator, self.finish)}
        if self.ending is not None:
            entry.module.function(self.ending.function)
            written = {self.result: result_of(self.ending)}
        note_needs(entry, self.operator, self.finish, read, written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = Fold(entry, self.operator, self.words, self.finish)
        fold.open("Scan : IScan")
        if self.befores:
            text = fold.read(self.befores, "max(team, 1) - 1")
            head = f"override static {fold.state} beforeTeam(uint team)"
            entry.piece.add(f"{head} {{ return {text}; }}")
        if self.ending is not None and self.ending.is_exclusive:
            self._write_before(fold, self.ending)
        else:
            self._write_found(fold)
        return fold.close("scan")

    def _write_found(self, fold: Fold) -> None:
        if self.ending is None:
            store = fold.store_finished(self.result, "number", "value")
        else:
            store = fold.store_ended(self.result, self.ending, fold.ended(self.ending, "value"))
        head = f"override static void write(uint number, {fold.state} value)"
        fold.entry.piece.add(f"{head} {{ {store} }}")

    def _write_before(self, fold: Fold, ending: Ending) -> None:
        fold.runs = "BeforeRuns"
        piece = fold.entry.piece
        piece.open(f"override static {fold.state} writeBefore(uint number, {fold.state} before)")
        piece.add(f"var found = {fold.ended(ending, 'before')};")
        piece.add(fold.store_ended(self.result, ending, "found.item0"))
        piece.add("return found.item1;")
        piece.close()
