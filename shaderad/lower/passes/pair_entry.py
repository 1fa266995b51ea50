"""Entry points of passes over two scans of one row at a time.

The elements are pairs with a field for each scan, which is stored in an array of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir.types import Struct, Type
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.passes.entry import PassEntry
from shaderad.lower.passes.fold import Fold, note_needs
from shaderad.lower.write.piece import Piece


@dataclass(frozen=True, kw_only=True)
class _PairEntry(PassEntry):
    results: tuple[str, str]
    """The array of each scan."""

    def _note_needs(self, entry: EntryScope) -> None:
        fields = fields_of(self.operator.state)
        written = {name: t for name, (_, t) in zip(self.results, fields, strict=True)}
        note_needs(entry, self.operator, None, [], written)

    def _store(self, fold: Fold, places: tuple[str, str], value: str) -> None:
        pair = self.operator.state
        for array, place, (field, t) in zip(self.results, places, fields_of(pair), strict=True):
            part = f"{value}.{fold.entry.module.field(pair, field)}"
            fold.entry.piece.add(fold.store(array, t, place, part))


@dataclass(frozen=True, kw_only=True)
class PairTotalsEntry(_PairEntry):
    """The chunk totals of both scans."""

    is_mirrored: bool
    """True if the second array is written from its end."""

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = self._fold(entry)
        fold.open("Totals : IReduction")
        last = f"({fold.size('team_count')} - 1 - team)" if self.is_mirrored else "team"
        entry.piece.open(f"static void write(uint team, {fold.state} total)")
        self._store(fold, ("team", last), "total")
        entry.piece.close()
        entry.piece.add("static void writeEmpty(uint team) {}")
        return fold.close("reduce")


@dataclass(frozen=True, kw_only=True)
class PairScanEntry(_PairEntry):
    """A scan of both rows."""

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = self._fold(entry)
        fold.open("Scan : IScan")
        entry.piece.open(f"override static void write(uint number, {fold.state} value)")
        self._store(fold, ("number", "number"), "value")
        entry.piece.close()
        return fold.close("scan")


def fields_of(pair: Type) -> tuple[tuple[str, Type], ...]:
    """Name and type of the field of each scan."""
    assert isinstance(pair, Struct)
    return pair.fields
