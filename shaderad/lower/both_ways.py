"""Two scans of one row from its two ends -> the pass that computes results from both."""

from __future__ import annotations

from shaderad.ir import sizes
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Function, Kernel
from shaderad.ir.types import Type
from shaderad.lower.bindings import Variant
from shaderad.lower.both_ways_entry import BothWaysEntry, Way
from shaderad.lower.operators import operator_of
from shaderad.lower.pair_passes import PAIR_BEFORES
from shaderad.lower.pass_fold import width_of
from shaderad.lower.pass_sizes import LENGTH, Formulas, cut_rows
from shaderad.lower.passes import RESULT, Passes, around, cut_of, with_reader

Scanned = tuple[Reducer, Type, Function]
"""What combines elements, their type, and what is made of the results."""


def lower_both_ways(
    producer: Kernel,
    scans: tuple[Scanned, Scanned],
    function: Function,
    reader: Kernel,
    restored: Function,
    state: Type,
    variant: Variant,
) -> Passes:
    """The last pass of two scans, of which the first runs from the end of the row.

    Args:
        producer: Its Out holds the first scan's element where the second has its own.
        scans: Both.
        function: Gives results: see `BothWaysEntry`.
        reader: Holds what `function` reads besides the producer.
        restored: See `BothWaysEntry`.
        state: What both come to, which decides how rows are cut.
        variant: What the pass is specialised for.
    """
    from_end, from_start = (
        Way(operator_of(op, t), finish, befores)
        for (op, t, finish), befores in zip(scans, PAIR_BEFORES, strict=True)
    )
    formulas, width = Formulas(), width_of(from_end.operator.state)
    chunks = cut_rows(formulas, cut_of(state, variant), width, is_mirrored=True)
    words = {name: size for name, size in chunks.words.items() if name != "is_together"}
    own = frozenset(u.name for u in reader.uniforms)
    entry = BothWaysEntry(from_end, from_start, words, RESULT, function, restored, own)
    kernel = with_reader(producer, reader)
    step = around(kernel, entry, variant, chunks, sizes.symbol(LENGTH))
    return Passes((step,), (), formulas)
