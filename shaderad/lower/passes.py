"""Reductions and scans of rows: a kernel that computes elements, and an operator -> dispatches.

Which of them run, on how many groups, and what their size words hold, follows from the number of
rows and the length of each by formulas (lower/pass_sizes.py): a program is the same for all shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Ending, Reducer, SharedTotals
from shaderad.ir.nodes import (
    Buffer,
    Function,
    Kernel,
    KernelParameter,
    Load,
    Store,
    Var,
)
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access, BufferType, Type
from shaderad.lower.bindings import Lowered, Variant
from shaderad.lower.kernels import lower_around
from shaderad.lower.operators import Operator, operator_of
from shaderad.lower.pair_entry import PairScanEntry, PairTotalsEntry
from shaderad.lower.pass_entry import ReductionEntry, ScanEntry
from shaderad.lower.pass_fold import has_room, width_of
from shaderad.lower.pass_sizes import (
    LENGTH,
    PARALLEL,
    SERIAL,
    Chunks,
    Cut,
    Formulas,
    cut_rows,
    whole_rows,
)
from shaderad.rules import composing as c

RESULT = "result"
"""What a pass writes; one value a row for a reduction, one an element for a scan."""
INIT = "init"
"""What comes before the rows of a reduction: one value a row."""
TOTALS = "chunk_totals"
"""What each chunk comes to."""
BEFORES = "chunk_scan"
"""What the chunks of a row come to up to each of them."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One dispatch; its `SIZE` words name formulas."""

    lowered: Lowered
    group_count: Size
    is_needed: Size
    """It runs where this is positive."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array that passes leave to later ones."""

    name: str
    element: Type
    count: Size


@dataclass(frozen=True, slots=True)
class Passes:
    """The dispatches of one reduction or scan, in order.

    Members of their resources are the producer's buffers and uniforms, `RESULT`, `INIT` and the
    scratch arrays. All sizes are over the names of `formulas`.
    """

    steps: tuple[Pass, ...]
    scratch: tuple[Scratch, ...]
    formulas: Formulas


def lower_reduce(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    *,
    has_init: bool = False,
    finish: Function | None = None,
) -> Passes:
    """Reduces the last axis of what `producer` computes.

    Args:
        producer: Its Outs are written at its own index, and have the shape of the dispatch. The
            first is the element; others are stored.
        op: What combines elements.
        variant: What the passes are specialised for.
        has_init: Whether `INIT` comes before each row.
        finish: What is made of each result before it is stored.
    """
    operator = operator_of(op, element_of(producer))
    cut, width, formulas = cut_of(operator.state, variant), width_of(operator.state), Formulas()
    chunks = cut_rows(formulas, cut, width)
    rows = whole_rows(formulas, "last_", "chunk_count", cut, width)
    init = INIT if has_init else ""
    is_sum = op == ops.ADD
    first = ReductionEntry(operator, chunks.words, RESULT, TOTALS, init, finish, is_sum)
    last = ReductionEntry(operator, rows.words, RESULT, "", init, finish, is_sum)
    steps = (
        around(producer, first, variant, chunks, 1),
        around(
            stored(operator, {TOTALS: operator.state}),
            last,
            unchecked(variant),
            rows,
            chunks.are_several,
        ),
    )
    return Passes(steps, (Scratch(TOTALS, operator.state, chunks.team_count),), formulas)


def lower_scan(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    finish: Function | None = None,
    ending: tuple[Ending, Kernel] | None = None,
    shared: SharedTotals | None = None,
) -> Passes:
    """Scans the last axis of what `producer` computes: chunks are reduced, what they come to is
    scanned, and from there each chunk is. Arguments as for `lower_reduce`; `ending` computes from
    what `finish` makes, for a single row, and comes with a kernel without outputs that holds what
    it reads besides the producer. Where `shared`, `BEFORES` is there already.
    """
    operator = operator_of(op, element_of(producer))
    formulas, width = Formulas(), width_of(operator.state)
    cut = cut_of(operator.state if shared is None else shared.state, variant)
    is_mirrored = shared is not None and shared.is_mirrored
    chunks = cut_rows(formulas, cut, width, is_mirrored=is_mirrored)
    last = _last_scan(operator, chunks, finish, ending)
    kernel = producer if ending is None else with_reader(producer, ending[1])
    step = around(kernel, last, variant, chunks, sizes.symbol(LENGTH))
    if shared is not None:
        return Passes((step,), (), formulas)
    rows = whole_rows(formulas, "middle_", "chunk_count", cut, width)
    totals = ReductionEntry(operator, chunks.words, TOTALS)
    befores = ScanEntry(operator, rows.words, BEFORES)
    several = chunks.are_several
    steps = (
        around(producer, totals, variant, chunks, several),
        around(
            stored(operator, {TOTALS: operator.state}), befores, unchecked(variant), rows, several
        ),
        step,
    )
    scratch = tuple(Scratch(n, operator.state, chunks.team_count) for n in (TOTALS, BEFORES))
    return Passes(steps, scratch, formulas)


def _last_scan(
    operator: Operator,
    chunks: Chunks,
    finish: Function | None,
    ending: tuple[Ending, Kernel] | None,
) -> ScanEntry:
    if ending is None:
        return ScanEntry(operator, chunks.words, RESULT, BEFORES, finish)
    end, reader = ending
    own = frozenset(u.name for u in reader.uniforms)
    return ScanEntry(operator, chunks.words, RESULT, BEFORES, finish, end, own)


def with_reader(producer: Kernel, reader: Kernel) -> Kernel:
    """The producer, with what the end of its scan reads."""
    return replace(
        producer,
        parameters=producer.parameters + reader.parameters,
        buffers=producer.buffers + reader.buffers,
        uniforms=producer.uniforms + reader.uniforms,
    )


def element_of(producer: Kernel) -> Type:
    return next(b.type.element for b in producer.buffers if b.access is Access.OUT)


def cut_of(state: Type, variant: Variant) -> Cut:
    return PARALLEL if variant.is_parallel and has_room(state) else SERIAL


def around(
    kernel: Kernel,
    entry: ReductionEntry | ScanEntry | PairTotalsEntry | PairScanEntry,
    variant: Variant,
    chunks: Chunks,
    is_needed: Size,
) -> Pass:
    own = frozenset(b.name for b in kernel.buffers if b.access is Access.OUT)
    lowered = lower_around(kernel, replace(variant, launch_shaped=own), entry.writer)
    return Pass(lowered, chunks.group_count, is_needed)


def unchecked(variant: Variant) -> Variant:
    """Scratch is read inside its bounds, and was looked at when it was computed."""
    return replace(variant, bounds="unchecked", checks="", device_uniforms=frozenset())


def stored(operator: Operator, names: Mapping[str, Type]) -> Kernel:
    """The kernel whose elements are those of scratch arrays, as fields where there are several."""
    at = (Var(type=INT, name="i"),)
    types = {name: BufferType(Access.IN, t, 1) for name, t in names.items()}
    types["element"] = BufferType(Access.OUT, operator.state, 1)
    loads = [Load(type=t, buffer=name, indices=at) for name, t in names.items()]
    value = loads[0] if len(loads) == 1 else c.construct(operator.state, loads)
    return Kernel(
        name=operator.name,
        index_names=("i",),
        parameters=tuple(KernelParameter(name=n, type=bt) for n, bt in types.items()),
        buffers=tuple(Buffer(name=n, path=(n,), type=bt) for n, bt in types.items()),
        uniforms=(),
        body=(Store(buffer="element", indices=at, value=value),),
        local_types={},
    )
