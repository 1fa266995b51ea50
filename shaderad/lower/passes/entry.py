"""The entry point of a reduction or scan around the kernel that computes its elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.ir.arrays import RowEpilogue
from shaderad.ir.nodes import Function
from shaderad.lower.entry.points import EntryWriter
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.passes.fold import Fold, note_needs, result_of, stored_type
from shaderad.lower.passes.operators import Operator
from shaderad.lower.write.piece import Piece


@dataclass(frozen=True, kw_only=True)
class PassEntry:
    """The entry point of a pass."""

    operator: Operator
    words: Mapping[str, str]
    """The size that each word holds (lower/passes/sizes.py)."""
    epilogue: Function | None = None
    """A function of each result, applied before the result is stored."""
    own_uniforms: frozenset[str] = frozenset()
    """Uniforms that the entry point reads and elements do not."""

    @property
    def writer(self) -> EntryWriter:
        return EntryWriter(self._note_needs, self._write, self.own_uniforms)

    @abstractmethod
    def _note_needs(self, entry: EntryScope) -> None: ...

    @abstractmethod
    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]: ...

    def _fold(self, entry: EntryScope) -> Fold:
        return Fold(entry, self.operator, self.words, self.epilogue)


@dataclass(frozen=True, kw_only=True)
class ReductionEntry(PassEntry):
    """A reduction of rows, or of the totals of their chunks."""

    result: str
    """The array of results, one a row."""
    totals: str = ""
    """The array of chunk totals, for rows of several chunks."""
    init: str = ""
    """The array of initial values, one a row."""
    is_commutative: bool = False
    """True if elements may be combined in any order."""

    def _note_needs(self, entry: EntryScope) -> None:
        written = {self.result: stored_type(self.operator, self.epilogue)}
        written |= {self.totals: self.operator.state} if self.totals else {}
        written |= {b.name: b.type.element for b in entry.own[1:]}
        note_needs(entry, self.operator, self.epilogue, [self.init] if self.init else [], written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = self._fold(entry)
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
        store = fold.store_result(self.result, "team", value)
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
        text = fold.store_result(self.result, "team", value)
        fold.entry.piece.add(f"static void writeEmpty(uint team) {{ {text} }}")


@dataclass(frozen=True, kw_only=True)
class ScanEntry(PassEntry):
    """A scan of rows."""

    result: str
    prefixes: str = ""
    """The array of chunk prefixes, for rows of several chunks."""
    row_epilogue: RowEpilogue | None = None
    """A function of each result and its index; a scan with it has one row."""

    def _note_needs(self, entry: EntryScope) -> None:
        written = {self.result: stored_type(self.operator, self.epilogue)}
        if self.row_epilogue is not None:
            entry.module.function(self.row_epilogue.function)
            written = {self.result: result_of(self.row_epilogue)}
        prefixes = [self.prefixes] if self.prefixes else []
        note_needs(entry, self.operator, self.epilogue, prefixes, written)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = self._fold(entry)
        fold.open("Scan : IScan")
        if self.prefixes:
            text = fold.read(self.prefixes, "max(team, 1) - 1")
            head = f"override static {fold.state} beforeTeam(uint team)"
            entry.piece.add(f"{head} {{ return {text}; }}")
        if self.row_epilogue is not None and self.row_epilogue.is_exclusive:
            self._write_exclusive(fold, self.row_epilogue)
        else:
            self._write_inclusive(fold)
        return fold.close("scan")

    def _write_inclusive(self, fold: Fold) -> None:
        epilogue = self.row_epilogue
        if epilogue is None:
            store = fold.store_result(self.result, "number", "value")
        else:
            store = fold.store_in_row(self.result, epilogue, fold.in_row(epilogue, "value"))
        head = f"override static void write(uint number, {fold.state} value)"
        fold.entry.piece.add(f"{head} {{ {store} }}")

    def _write_exclusive(self, fold: Fold, epilogue: RowEpilogue) -> None:
        fold.runs = "BeforeRuns"
        piece = fold.entry.piece
        piece.open(f"override static {fold.state} writeBefore(uint number, {fold.state} before)")
        piece.add(f"var found = {fold.in_row(epilogue, 'before')};")
        piece.add(fold.store_in_row(self.result, epilogue, "found.item0"))
        piece.add("return found.item1;")
        piece.close()
