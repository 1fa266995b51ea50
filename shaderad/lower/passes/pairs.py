"""Two scans of one row -> the passes that compute the chunk prefixes of both."""

from __future__ import annotations

from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Call, Expr, Kernel
from shaderad.ir.types import Type
from shaderad.lower.bindings import Variant
from shaderad.lower.passes.fold import width_of
from shaderad.lower.passes.operators import Operator, binary_function, operator_of
from shaderad.lower.passes.pair_entry import PairScanEntry, PairTotalsEntry, fields_of
from shaderad.lower.passes.rows import (
    CHUNK_PREFIXES,
    TOTALS,
    Passes,
    Scratch,
    around,
    cut_of,
    element_of,
    stored,
    unchecked,
)
from shaderad.lower.passes.sizes import Formulas, cut_rows, whole_rows
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
    rows = whole_rows(formulas, "middle_", "chunk_count", cut, width)
    totals = PairTotalsEntry(
        operator=over_elements, words=chunks.words, results=_PAIR_TOTALS, is_mirrored=is_mirrored
    )
    prefixes = PairScanEntry(operator=over_chunks, words=rows.words, results=PAIR_PREFIXES)
    types = [t for _, t in fields_of(pair)]
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
    for op, (name, t), is_turned in zip(ops, fields_of(pair), (False, is_mirrored), strict=True):
        sides = (right, left) if is_turned else (left, right)
        args = tuple(c.field(side, name) for side in sides)
        results.append(Call(type=t, function=operator_of(op, t).combine, args=args))
    combine = binary_function("both", pair, c.construct(pair, results))
    return Operator("both", pair, combine, c.zero(pair))
