"""Two scans of one row -> the passes that find what comes before the chunks of both."""

from __future__ import annotations

from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Call, Expr, Function, Kernel, Parameter, Return
from shaderad.ir.types import Type
from shaderad.lower.bindings import Variant
from shaderad.lower.operators import Operator, operator_of
from shaderad.lower.pair_entry import PairScanEntry, PairTotalsEntry, fields_of
from shaderad.lower.pass_fold import width_of
from shaderad.lower.pass_sizes import Formulas, cut_rows, whole_rows
from shaderad.lower.passes import (
    BEFORES,
    TOTALS,
    Passes,
    Scratch,
    around,
    cut_of,
    element_of,
    stored,
    unchecked,
)
from shaderad.rules import composing as c

_PAIR_TOTALS = (TOTALS, "second_totals")
PAIR_BEFORES = (BEFORES, "second_scan")
"""What the last pass of each scan reads as `BEFORES`."""


def lower_befores(
    producer: Kernel, ops: tuple[Reducer, Reducer], variant: Variant, *, is_mirrored: bool
) -> Passes:
    """The chunks of both rows are reduced together, and what they come to is scanned.

    Args:
        producer: Its Out holds an element of each scan, as two fields.
        ops: Of the scans.
        variant: What the passes are specialised for.
        is_mirrored: Whether the second scan runs from the end.
    """
    pair = element_of(producer)
    over_elements = _both(pair, ops, is_mirrored=is_mirrored)
    over_chunks = _both(pair, ops, is_mirrored=False)
    formulas, width, cut = Formulas(), width_of(pair), cut_of(pair, variant)
    chunks = cut_rows(formulas, cut, width)
    rows = whole_rows(formulas, "middle_", "chunk_count", cut, width)
    totals = PairTotalsEntry(over_elements, chunks.words, _PAIR_TOTALS, is_mirrored)
    befores = PairScanEntry(over_chunks, rows.words, PAIR_BEFORES)
    types = [t for _, t in fields_of(pair)]
    kernel = stored(over_chunks, dict(zip(_PAIR_TOTALS, types, strict=True)))
    steps = (
        around(producer, totals, variant, chunks, chunks.are_several),
        around(kernel, befores, unchecked(variant), rows, chunks.are_several),
    )
    names = zip((*_PAIR_TOTALS, *PAIR_BEFORES), (*types, *types), strict=True)
    scratch = tuple(Scratch(name, t, chunks.team_count) for name, t in names)
    return Passes(steps, scratch, formulas)


def _both(pair: Type, ops: tuple[Reducer, Reducer], *, is_mirrored: bool) -> Operator:
    """An operator on each field; with `is_mirrored`, elements of the second come from its end."""
    left, right = c.variable("left", pair), c.variable("right", pair)
    found: list[Expr] = []
    for op, (name, t), is_turned in zip(ops, fields_of(pair), (False, is_mirrored), strict=True):
        given = [c.field(left, name), c.field(right, name)]
        combine = operator_of(op, t).combine
        args = tuple(reversed(given) if is_turned else given)
        found.append(Call(type=t, function=combine, args=args))
    parameters = tuple(Parameter(name=name, type=pair) for name in ("left", "right"))
    body = (Return(value=c.construct(pair, found)),)
    function = Function(name="both", parameters=parameters, result=pair, body=body, local_types={})
    return Operator("both", pair, function, c.zero(pair))
