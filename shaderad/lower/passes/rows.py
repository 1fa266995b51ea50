"""Reductions and scans of rows: a kernel that computes elements, and an operator -> dispatches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from shaderad.compiler.row_layouts import Chunks, Formulas, RowLayout, reduction_layout, scan_layout
from shaderad.ir.arrays import Reducer
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
    operator_of,
)

RESULT = "result"
"""The array of results: one per row for a reduction, one per element for a scan."""
INIT = "init"
"""The array of initial values of a reduction, one per row."""
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
    chunks: Chunks
    """The teams among which its work is divided."""


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
    op: Reducer | Sequence[Reducer],
    variant: Variant,
    epilogues: tuple[Function, ...] = (),
    reader: Kernel | None = None,
    *,
    has_init: bool = False,
    only: Collection[int] | None = None,
) -> Passes:
    """The passes that reduce the last axis of the elements of `producer`.

    Args:
        producer: Its Outs are written at its own index, and have the shape of the dispatch. The
            first is the element; others are stored.
        op: The associative operator; if elements are structs, there may be one for each field.
        variant: The variant of all passes.
        epilogues: Functions of each result, its number, and uniforms by name, whose values are
            stored in place of the result: see `result_name`.
        reader: A kernel without outputs whose parameters `epilogues` read besides the producer's.
        has_init: True if the reduction of each row starts from `INIT`.
        only: The passes of `reduction_layout` that are lowered; `None` for all.
    """
    operator = operator_of(op, _element_of(producer))
    layout = reduction_layout(operator.state, variant.shape)
    first = ReductionEntry(
        operator=operator,
        result=RESULT,
        totals=TOTALS,
        start=INIT if has_init else "",
        epilogues=epilogues,
        own_uniforms=_own_uniforms(reader),
        is_commutative=operator.is_commutative,
    )
    kernel = _with_parameters(producer, reader)
    read = _with_parameters(_read_totals(operator), _parameters_of(epilogues, kernel))
    last = replace(first, totals="", own_uniforms=_own_uniforms(read))
    steps = (_Step(kernel, first, variant), _Step(read, last, _over_totals(read, variant)))
    return _lowered(layout, steps, (TOTALS,), operator.state, only)


def lower_scan(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    epilogues: tuple[Function, ...] = (),
    reader: Kernel | None = None,
    *,
    is_mirrored: bool = False,
    is_exclusive: bool = False,
    only: Collection[int] | None = None,
) -> Passes:
    """The passes that scan the last axis of the elements of `producer`: chunk totals, their scan,
    and the scan of each chunk from its prefix.

    Args:
        producer: As for `lower_reduce`.
        op: The associative operator.
        variant: The variant of all passes.
        epilogues: At most one function of each result, applied before the result is stored; if
            there is one row, it may also take the index and uniforms, by name.
        reader: A kernel without outputs whose parameters `epilogues` read besides the producer's.
        is_mirrored: True if the only row is stored from its end.
        is_exclusive: True if the epilogue takes the result before its index, undefined at index 0.
        only: The passes of `scan_layout` that are lowered; `None` for all.
    """
    operator = operator_of(op, _element_of(producer))
    layout = scan_layout(operator.state, variant.shape)
    last = ScanEntry(
        operator=operator,
        result=RESULT,
        start=CHUNK_PREFIXES,
        epilogues=epilogues,
        own_uniforms=_own_uniforms(reader),
        is_mirrored=is_mirrored,
        is_exclusive=is_exclusive,
    )
    totals = ReductionEntry(operator=operator, result=TOTALS)
    prefixes = ScanEntry(operator=operator, result=CHUNK_PREFIXES)
    read = _read_totals(operator)
    steps = (
        _Step(producer, totals, variant),
        _Step(read, prefixes, _over_totals(read, variant)),
        _Step(_with_parameters(producer, reader), last, variant),
    )
    return _lowered(layout, steps, (TOTALS, CHUNK_PREFIXES), operator.state, only)


@dataclass(frozen=True, slots=True)
class _Step:
    """A kernel that computes elements, and the pass around it."""

    kernel: Kernel
    entry: PassEntry
    variant: Variant

    def lowered(self, chunks: Chunks, is_needed: Size) -> Pass:
        kernel = self.kernel
        own = frozenset(b.name for b in kernel.buffers if b.access is Access.OUT)
        entry = replace(self.entry, words=chunks.words, is_together=chunks.is_together)
        variant = replace(self.variant, launch_shaped=own)
        lowered = lower_around(kernel, variant, entry.writer)
        return Pass(lowered, chunks.group_count, is_needed, chunks)


def _lowered(
    layout: RowLayout,
    steps: Sequence[_Step],
    scratch: Sequence[str],
    state: Type,
    only: Collection[int] | None,
) -> Passes:
    """The passes of `layout`, lowered."""
    passes = [
        steps[planned.step].lowered(planned.chunks, planned.is_needed)
        for k, planned in enumerate(layout.passes)
        if only is None or k in only
    ]
    count = layout.chunk_count
    return Passes(tuple(passes), tuple(Scratch(n, state, count) for n in scratch), layout.formulas)


def _over_totals(read: Kernel, variant: Variant) -> Variant:
    """The variant of a pass whose elements are the chunk totals, as `read` computes them."""
    uniforms = variant.device_uniforms & _own_uniforms(read)
    # Scratch is read in bounds, and was checked when it was written.
    return replace(variant, bounds="unchecked", checks="", device_uniforms=uniforms)


def _own_uniforms(reader: Kernel | None) -> frozenset[str]:
    return frozenset(u.name for u in reader.uniforms) if reader else frozenset()


def _with_parameters(kernel: Kernel, reader: Kernel | None) -> Kernel:
    """`kernel` with the parameters of `reader` besides its own."""
    if reader is None:
        return kernel
    return replace(
        kernel,
        parameters=kernel.parameters + reader.parameters,
        buffers=kernel.buffers + reader.buffers,
        uniforms=kernel.uniforms + reader.uniforms,
    )


def _parameters_of(functions: Sequence[Function], kernel: Kernel) -> Kernel:
    """`kernel` with the parameters that `functions` read."""
    names = {name for f in functions for name in (*f.buffers, *(p.name for p in f.parameters))}
    return replace(
        kernel,
        parameters=tuple(p for p in kernel.parameters if p.name in names),
        buffers=tuple(b for b in kernel.buffers if b.name in names),
        uniforms=tuple(u for u in kernel.uniforms if u.name in names),
    )


def _element_of(producer: Kernel) -> Type:
    """The type of the elements that `producer` computes."""
    return next(b.type.element for b in producer.buffers if b.access is Access.OUT)


def _read_totals(operator: Operator) -> Kernel:
    """The kernel whose elements are the chunk totals."""
    indices = (Var(type=INT, name="i"),)
    types = {
        TOTALS: BufferType(Access.IN, operator.state, 1),
        "element": BufferType(Access.OUT, operator.state, 1),
    }
    load = Load(type=operator.state, buffer=TOTALS, indices=indices)
    return Kernel(
        name=operator.name,
        index_names=("i",),
        parameters=tuple(KernelParameter(name=n, type=bt) for n, bt in types.items()),
        buffers=tuple(Buffer(name=n, path=(n,), type=bt) for n, bt in types.items()),
        uniforms=(),
        body=(Store(buffer="element", indices=indices, value=load),),
        local_types={},
    )
