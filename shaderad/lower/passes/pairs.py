"""Two scans of one row -> the passes that compute the chunk prefixes of both.

The elements are pairs with a field for each scan, which is stored in an array of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Call, Expr, Kernel
from shaderad.ir.types import Struct, Type
from shaderad.lower.bindings import Variant
from shaderad.lower.entry.scope import EntryScope
from shaderad.lower.passes.entries import (
    Fold,
    Operator,
    PassEntry,
    binary_function,
    operator_of,
    width_of,
)
from shaderad.lower.passes.rows import (
    CHUNK_PREFIXES,
    TOTALS,
    Formulas,
    Passes,
    Scratch,
    around,
    cut_of,
    cut_rows,
    element_of,
    rows_of_chunks,
    stored,
    unchecked,
)
from shaderad.rules import composing as c

_PAIR_TOTALS = (TOTALS, "second_totals")
PAIR_PREFIXES = (CHUNK_PREFIXES, "second_scan")
"""The arrays that the last pass of each scan reads as `CHUNK_PREFIXES`."""


def lower_chunk_prefixes(
    producer: Kernel, ops: tuple[Reducer, Reducer], variant: Variant, *, is_mirrored: bool
) -> Passes:
    """The passes that compute the chunk totals of both rows, and their scans.

    Args:
        producer: Its Out holds an element of each scan, as two fields.
        ops: The operators of the scans.
        variant: The variant of all passes.
        is_mirrored: True if the second scan runs from the end.
    """
    pair = element_of(producer)
    over_elements = _both(pair, ops, is_mirrored=is_mirrored)
    over_chunks = _both(pair, ops, is_mirrored=False)
    formulas, width, cut = Formulas(), width_of(pair), cut_of(pair, variant)
    chunks = cut_rows(formulas, cut, width)
    rows = rows_of_chunks(formulas, "middle_", cut, width)
    totals = _TotalsEntry(
        operator=over_elements, words=chunks.words, results=_PAIR_TOTALS, is_mirrored=is_mirrored
    )
    prefixes = _ScanEntry(operator=over_chunks, words=rows.words, results=PAIR_PREFIXES)
    types = [t for _, t in _fields_of(pair)]
    kernel = stored(over_chunks, dict(zip(_PAIR_TOTALS, types, strict=True)))
    steps = (
        around(producer, totals, variant, chunks, chunks.are_several),
        around(kernel, prefixes, unchecked(variant), rows, chunks.are_several),
    )
    names = zip((*_PAIR_TOTALS, *PAIR_PREFIXES), (*types, *types), strict=True)
    scratch = tuple(Scratch(name, t, chunks.team_count) for name, t in names)
    return Passes(steps, scratch, formulas)


def _both(pair: Type, ops: tuple[Reducer, Reducer], *, is_mirrored: bool) -> Operator:
    """The operator on each field; `is_mirrored`: elements of the second come from its end."""
    left, right = c.variable("left", pair), c.variable("right", pair)
    results: list[Expr] = []
    for op, (name, t), is_turned in zip(ops, _fields_of(pair), (False, is_mirrored), strict=True):
        sides = (right, left) if is_turned else (left, right)
        args = tuple(c.field(side, name) for side in sides)
        results.append(Call(type=t, function=operator_of(op, t).combine, args=args))
    combine = binary_function("both", pair, c.construct(pair, results))
    return Operator("both", pair, combine, c.zero(pair))


@dataclass(frozen=True, kw_only=True)
class _PairEntry(PassEntry):
    results: tuple[str, str]
    """The array of each scan."""

    def written(self, entry: EntryScope) -> dict[str, Type]:
        types = (t for _, t in _fields_of(self.operator.state))
        return dict(zip(self.results, types, strict=True))

    def _stores(self, fold: Fold, places: tuple[str, str], value: str) -> list[str]:
        """The statements that store both fields of `value`."""
        pair, module = self.operator.state, fold.entry.module
        return [
            fold.store(array, t, place, f"{value}.{module.field(pair, field)}")
            for array, place, (field, t) in zip(self.results, places, _fields_of(pair), strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class _TotalsEntry(_PairEntry):
    """The chunk totals of both scans."""

    struct, interface, function = "Totals", "IReduction", "reduce"
    is_mirrored: bool
    """True if the second array is written from its end."""

    def write_results(self, fold: Fold) -> None:
        last = f"({fold.size('team_count')} - 1 - team)" if self.is_mirrored else "team"
        stores = self._stores(fold, ("team", last), "total")
        fold.entry.piece.block(f"static void write(uint team, {fold.state} total)", stores)
        fold.entry.piece.add("static void writeEmpty(uint team) {}")


@dataclass(frozen=True, kw_only=True)
class _ScanEntry(_PairEntry):
    """A scan of both rows."""

    struct, interface, function = "Scan", "IScan", "scan"

    def write_results(self, fold: Fold) -> None:
        head = f"override static void write(uint number, {fold.state} value)"
        fold.entry.piece.block(head, self._stores(fold, ("number", "number"), "value"))


def _fields_of(pair: Type) -> tuple[tuple[str, Type], ...]:
    """Name and type of the field of each scan."""
    assert isinstance(pair, Struct)
    return pair.fields
