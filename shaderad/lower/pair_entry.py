"""Entry points that work on the chunks of two scans of one row at a time.

What is combined is a pair, with a field for each scan, each of which lies in an array of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.ir.types import Struct, Type
from shaderad.lower.entry_points import EntryWriter
from shaderad.lower.entry_scope import EntryScope
from shaderad.lower.operators import Operator
from shaderad.lower.pass_fold import Fold, called, note_needs
from shaderad.lower.piece import Piece

Names = tuple[str, str]
"""The array of each scan."""


@dataclass(frozen=True, slots=True)
class PairTotalsEntry:
    """What the chunks of both come to."""

    operator: Operator
    words: Mapping[str, str]
    """The size that each word holds: see lower/pass_sizes.py."""
    results: Names
    is_mirrored: bool
    """Whether the second array is written from its end."""

    @property
    def writer(self) -> EntryWriter:
        return EntryWriter(self._note_needs, self._write, called(self.operator, None))

    def _note_needs(self, entry: EntryScope) -> None:
        _note(entry, self.operator, self.results)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = Fold(entry, self.operator, self.words, None)
        fold.open("Totals : IReduction")
        last = f"({fold.size('team_count')} - 1 - team)" if self.is_mirrored else "team"
        entry.piece.open(f"static void write(uint team, {fold.state} total)")
        _store(fold, self.operator, self.results, ("team", last), "total")
        entry.piece.close()
        entry.piece.add("static void writeEmpty(uint team) {}")
        return fold.close("reduce")


@dataclass(frozen=True, slots=True)
class PairScanEntry:
    """A scan of both rows."""

    operator: Operator
    words: Mapping[str, str]
    """See `PairTotalsEntry`."""
    results: Names

    @property
    def writer(self) -> EntryWriter:
        return EntryWriter(self._note_needs, self._write, called(self.operator, None))

    def _note_needs(self, entry: EntryScope) -> None:
        _note(entry, self.operator, self.results)

    def _write(self, entry: EntryScope) -> tuple[str, Piece, Piece]:
        fold = Fold(entry, self.operator, self.words, None)
        fold.open("Scan : IScan")
        entry.piece.open(f"override static void write(uint number, {fold.state} value)")
        _store(fold, self.operator, self.results, ("number", "number"), "value")
        entry.piece.close()
        return fold.close("scan")


def _note(entry: EntryScope, operator: Operator, results: Names) -> None:
    written = {name: t for name, (_, t) in zip(results, fields_of(operator.state), strict=True)}
    note_needs(entry, operator, None, [], written)


def _store(fold: Fold, operator: Operator, arrays: Names, places: Names, value: str) -> None:
    fields = fields_of(operator.state)
    for array, place, (field, t) in zip(arrays, places, fields, strict=True):
        part = f"{value}.{fold.entry.module.field(operator.state, field)}"
        fold.entry.piece.add(fold.store(array, t, place, part))


def fields_of(pair: Type) -> tuple[tuple[str, Type], ...]:
    """Name and type of what a pair holds for each scan."""
    assert isinstance(pair, Struct), "an element of each scan"
    return pair.fields
