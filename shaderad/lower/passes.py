"""Reductions and scans of rows: a kernel that computes elements, and an operator -> dispatches.

Which of them run, on how many groups, and what their size words hold, follows from the number of
rows and the length of each by formulas (lower/pass_sizes.py): a program is the same for all shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shaderad.ir import sizes
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import Buffer, Function, Kernel, KernelParameter, Load, Store, Var
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access, BufferType, Type
from shaderad.lower.bindings import Lowered, Variant
from shaderad.lower.kernels import lower_around
from shaderad.lower.operators import Operator, operator_of
from shaderad.lower.pass_entry import Ending, ReductionEntry, ScanEntry, has_room, width_of
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

RESULT = "result"
"""What a pass writes; one value a row for a reduction, one an element for a scan."""
INIT = "init"
"""What comes before the rows of a reduction: one value a row."""
_TOTALS = "chunk_totals"
_BEFORES = "chunk_scan"


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
        producer: Has one Out, written at its own index, whose shape is that of the dispatch.
        op: What combines elements.
        variant: What the passes are specialised for.
        has_init: Whether `INIT` comes before each row.
        finish: What is made of each result before it is stored.
    """
    operator = operator_of(op, _element(producer))
    cut, width, formulas = _cut(operator, variant), width_of(operator.state), Formulas()
    chunks = cut_rows(formulas, cut, width)
    rows = whole_rows(formulas, "last_", "chunk_count", cut, width)
    init = INIT if has_init else ""
    first = ReductionEntry(operator, chunks.words, RESULT, _TOTALS, init, finish)
    last = ReductionEntry(operator, rows.words, RESULT, "", init, finish)
    steps = (
        _around(producer, first, variant, chunks, 1),
        _around(_stored(_TOTALS, operator), last, _unchecked(variant), rows, _several(chunks)),
    )
    return Passes(steps, (Scratch(_TOTALS, operator.state, chunks.team_count),), formulas)


def lower_scan(
    producer: Kernel,
    op: Reducer,
    variant: Variant,
    finish: Function | None = None,
    ending: Ending | None = None,
) -> Passes:
    """Scans the last axis of what `producer` computes: chunks are reduced, what they come to is
    scanned, and from there each chunk is. Arguments as for `lower_reduce`; `ending` computes from
    what `finish` makes, for a single row.
    """
    operator = operator_of(op, _element(producer))
    cut, width, formulas = _cut(operator, variant), width_of(operator.state), Formulas()
    chunks = cut_rows(formulas, cut, width)
    rows = whole_rows(formulas, "middle_", "chunk_count", cut, width)
    totals = ReductionEntry(operator, chunks.words, _TOTALS)
    befores = ScanEntry(operator, rows.words, _BEFORES)
    last = ScanEntry(operator, chunks.words, RESULT, _BEFORES, finish, ending)
    steps = (
        _around(producer, totals, variant, chunks, _several(chunks)),
        _around(_stored(_TOTALS, operator), befores, _unchecked(variant), rows, _several(chunks)),
        _around(_with(producer, ending), last, variant, chunks, sizes.symbol(LENGTH)),
    )
    names = (_TOTALS, _BEFORES)
    scratch = tuple(Scratch(n, operator.state, chunks.team_count) for n in names)
    return Passes(steps, scratch, formulas)


def _with(producer: Kernel, ending: Ending | None) -> Kernel:
    """The producer, with what the end of its scan reads."""
    if ending is None:
        return producer
    return replace(
        producer,
        parameters=producer.parameters + ending.kernel.parameters,
        buffers=producer.buffers + ending.kernel.buffers,
        uniforms=producer.uniforms + ending.kernel.uniforms,
    )


def _element(producer: Kernel) -> Type:
    (out,) = (b for b in producer.buffers if b.access is Access.OUT)
    return out.type.element


def _cut(operator: Operator, variant: Variant) -> Cut:
    return PARALLEL if variant.is_parallel and has_room(operator.state) else SERIAL


def _several(chunks: Chunks) -> Size:
    return sizes.subtract(chunks.chunk_count, 1)


def _around(
    kernel: Kernel,
    entry: ReductionEntry | ScanEntry,
    variant: Variant,
    chunks: Chunks,
    is_needed: Size,
) -> Pass:
    own = frozenset(b.name for b in kernel.buffers if b.access is Access.OUT)
    lowered = lower_around(kernel, replace(variant, launch_shaped=own), entry.writer)
    return Pass(lowered, chunks.group_count, is_needed)


def _unchecked(variant: Variant) -> Variant:
    """Scratch is read inside its bounds, and was looked at when it was computed."""
    return replace(variant, bounds="unchecked", checks="", device_uniforms=frozenset())


def _stored(name: str, operator: Operator) -> Kernel:
    """The kernel whose elements are those of a scratch array."""
    t = operator.state
    at = (Var(type=INT, name="i"),)
    types = {name: BufferType(Access.IN, t, 1), "element": BufferType(Access.OUT, t, 1)}
    return Kernel(
        name=operator.name,
        index_names=("i",),
        parameters=tuple(KernelParameter(name=n, type=bt) for n, bt in types.items()),
        buffers=tuple(Buffer(name=n, path=(n,), type=bt) for n, bt in types.items()),
        uniforms=(),
        body=(Store(buffer="element", indices=at, value=Load(type=t, buffer=name, indices=at)),),
        local_types={},
    )
