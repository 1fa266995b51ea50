"""Reductions and scans of rows: a kernel that computes elements, and an operator -> dispatches.

Formulas over the number and length of rows (lower/passes/sizes.py) give the dispatches that run,
their groups and their size words: a program is the same for all shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Reducer, RowEpilogue, SharedTotals
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
from shaderad.lower.passes.entries import (
    Operator,
    PassEntry,
    ReductionEntry,
    ScanEntry,
    has_room,
    operator_of,
    width_of,
)
from shaderad.lower.passes.sizes import (
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
"""The array of results: one a row for a reduction, one an element for a scan."""
INIT = "init"
"""The array of initial values of a reduction, one a row."""
TOTALS = "chunk_totals"
"""The total of each chunk."""
CHUNK_PREFIXES = "chunk_scan"
"""The inclusive scan of a row's chunk totals."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One dispatch; its `SIZE` words name formulas."""

    lowered: Lowered
    group_count: Size
    is_needed: Size
    """The dispatch runs if this is positive."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """An array that one pass writes and a later one reads."""

    name: str
    element: Type
    count: Size


@dataclass(frozen=True, slots=True)
class Passes:
    """The dispatches of one reduction or scan, in order.

    Members of their resources are the producer's buffers and uniforms, `RESULT`, `INIT` and the
    scratch arrays. Sizes are expressions of the names of `formulas`.
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
    epilogue: Function | None = None,
) -> Passes:
    """The passes that reduce the last axis of the elements of `producer`.

    Args:
        producer: Its Outs are written at its own index, and have the shape of the dispatch. The
            first is the element; others are stored.
        op: The associative operator.
        variant: The variant of all passes.
        has_init: True if the reduction of each row starts from `INIT`.
        epilogue: A function of each result, applied before the result is stored.
    """
    operator = operator_of(op, element_of(producer))
    cut, width, formulas = cut_of(operator.state, variant), width_of(operator.state), Formulas()
    chunks = cut_rows(formulas, cut, width)
    rows = whole_rows(formulas, "last_", "chunk_count", cut, width)
    first = ReductionEntry(
        operator=operator,
        words=chunks.words,
        result=RESULT,
        totals=TOTALS,
        start=INIT if has_init else "",
        epilogue=epilogue,
        is_commutative=op == ops.ADD,
    )
    last = replace(first, words=rows.words, totals="")
    steps = (
        around(producer, first, variant, chunks, 1),
        _over_totals(last, variant, rows, chunks.are_several),
    )
    return Passes(steps, (Scratch(TOTALS, operator.state, chunks.team_count),), formulas)


def lower_scan(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    epilogue: Function | None = None,
    row_epilogue: tuple[RowEpilogue, Kernel] | None = None,
    shared: SharedTotals | None = None,
) -> Passes:
    """The passes that scan the last axis of the elements of `producer`: chunk totals, their scan,
    and the scan of each chunk from its prefix.

    Args:
        producer: As for `lower_reduce`.
        op: The associative operator.
        variant: The variant of all passes.
        epilogue: A function of each result, applied before the result is stored.
        row_epilogue: For one row: a function of each result after `epilogue`, and a kernel without
            outputs whose parameters it reads besides the producer's.
        shared: If given, `CHUNK_PREFIXES` is computed by the passes of `lower_chunk_prefixes`.
    """
    operator = operator_of(op, element_of(producer))
    formulas, width = Formulas(), width_of(operator.state)
    cut = cut_of(operator.state if shared is None else shared.state, variant)
    is_mirrored = shared is not None and shared.is_mirrored
    chunks = cut_rows(formulas, cut, width, is_mirrored=is_mirrored)
    last = ScanEntry(
        operator=operator,
        words=chunks.words,
        result=RESULT,
        start=CHUNK_PREFIXES,
        epilogue=epilogue,
    )
    kernel = producer
    if row_epilogue is not None:
        ending, reader = row_epilogue
        kernel = _with_reader(producer, reader)
        own = frozenset(u.name for u in reader.uniforms)
        last = replace(last, row_epilogue=ending, own_uniforms=own)
    step = around(kernel, last, variant, chunks, sizes.symbol(LENGTH))
    if shared is not None:
        return Passes((step,), (), formulas)
    rows = whole_rows(formulas, "middle_", "chunk_count", cut, width)
    totals = ReductionEntry(operator=operator, words=chunks.words, result=TOTALS)
    prefixes = ScanEntry(operator=operator, words=rows.words, result=CHUNK_PREFIXES)
    several = chunks.are_several
    steps = (
        around(producer, totals, variant, chunks, several),
        _over_totals(prefixes, variant, rows, several),
        step,
    )
    names = (TOTALS, CHUNK_PREFIXES)
    scratch = tuple(Scratch(name, operator.state, chunks.team_count) for name in names)
    return Passes(steps, scratch, formulas)


def _over_totals(entry: PassEntry, variant: Variant, rows: Chunks, is_needed: Size) -> Pass:
    """A pass whose elements are the chunk totals."""
    operator = entry.operator
    totals = stored(operator, {TOTALS: operator.state})
    return around(totals, entry, unchecked(variant), rows, is_needed)


def _with_reader(producer: Kernel, reader: Kernel) -> Kernel:
    """The producer with the parameters of `reader`."""
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
    kernel: Kernel, entry: PassEntry, variant: Variant, chunks: Chunks, is_needed: Size
) -> Pass:
    """The pass with `entry` around `kernel`, which computes elements."""
    own = frozenset(b.name for b in kernel.buffers if b.access is Access.OUT)
    lowered = lower_around(kernel, replace(variant, launch_shaped=own), entry.writer)
    return Pass(lowered, chunks.group_count, is_needed)


def unchecked(variant: Variant) -> Variant:
    """The variant of passes over scratch, which is read in bounds and was checked when written."""
    return replace(variant, bounds="unchecked", checks="", device_uniforms=frozenset())


def stored(operator: Operator, names: Mapping[str, Type]) -> Kernel:
    """The kernel that reads its elements from scratch arrays, one a field of the element."""
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
