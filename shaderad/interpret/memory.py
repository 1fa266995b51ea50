"""The arrays of a kernel: reads, writes, sums, extremes.

An array is a value whose threads are its elements in row-major order. Invariant: a write makes a
new value, so that what a thread read before keeps its derivative; an index out of range never
reaches the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shaderad.interpret.cells import AnyArray, Cell, Value
from shaderad.interpret.tape import Tape
from shaderad.ir.nodes import Buffer
from shaderad.ir.types import Access

_NOBODY = np.iinfo(np.int64).max


@dataclass(slots=True)
class Stored:
    """One array."""

    buffer: Buffer
    shape: tuple[int, ...]
    value: Value
    owners: dict[int, AnyArray] = field(default_factory=dict[int, AnyArray])
    """Of Min and Max, for each cell by position: the threads whose writes stand there."""


Memory = dict[str, Stored]


@dataclass(frozen=True, slots=True)
class Place:
    """Elements of an array, one a row."""

    elements: AnyArray
    """Row-major numbers, of the rows that are in range."""
    rows: AnyArray
    """Which rows these are."""
    missed: tuple[AnyArray, AnyArray, AnyArray] | None
    """Rows out of range, their index, and the length of its axis."""


def place(indices: Sequence[AnyArray], shape: tuple[int, ...]) -> Place:
    """Elements at `indices`, one an axis; the first axis that is out of range is reported."""
    count = len(indices[0])
    elements = np.zeros(count, np.int64)
    is_inside = np.ones(count, bool)
    missed: tuple[AnyArray, AnyArray, AnyArray] | None = None
    for index, length in zip(indices, shape, strict=True):
        fits = (index >= 0) & (index < length)
        outside = np.flatnonzero(is_inside & ~fits)
        if outside.size and missed is None:
            missed = (outside, index[outside], np.full(len(outside), length))
        is_inside &= fits
        elements = elements * length + index
    rows = np.flatnonzero(is_inside)
    return Place(elements[rows], rows, missed)


def pointed_place(base: AnyArray, count: AnyArray, index: AnyArray) -> Place:
    """Elements at `index` of pointers, one pointer a row."""
    is_inside = (index >= 0) & (index < count)
    rows, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    missed = (outside, index[outside], count[outside]) if outside.size else None
    return Place((base + index)[rows], rows, missed)


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """What elements of a written array start as."""
    if access not in (Access.MIN, Access.MAX):
        return 0
    is_min = access is Access.MIN
    if dtype.kind == "f":
        return np.inf if is_min else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if is_min else limits.min


def beside(access: Access, dtype: np.dtype[Any]) -> Any:
    """What changes nothing, not even whose write stands: for components that are not written."""
    is_extreme = access in (Access.MIN, Access.MAX)
    return np.nan if is_extreme and dtype.kind == "f" else neutral(access, dtype)


def last_writes(elements: AnyArray) -> AnyArray:
    """The rows whose write stands where several write one element: the last ones."""
    if np.all(np.diff(elements) > 0):
        return np.arange(len(elements))
    _, first_from_behind = np.unique(elements[::-1], return_index=True)
    return np.sort(len(elements) - 1 - first_from_behind)


@dataclass(frozen=True, slots=True)
class Write:
    """Several threads write a Min or Max array at once."""

    part: int
    """Which cell of the array's value, by position."""
    elements: AnyArray
    value: Cell
    threads: AnyArray
    tangent: Cell | None = None
    """In kernels with tangents: what the winner brings along."""


def kept_extreme(
    tape: Tape, stored: Stored, base: Cell, write: Write, tangent: Cell | None = None
) -> tuple[Cell, Cell | None]:
    """`base`, one cell of a Min or Max array, after a write, scalar by scalar; and its tangent.

    The best value stays; of equal ones that of the lowest thread, and of that its first.
    """
    owner = stored.owners.setdefault(write.part, np.full(base.data.shape, _NOBODY, np.int64))
    is_min = stored.buffer.access is Access.MIN
    for component in np.ndindex(base.data.shape[1:]):
        column = (slice(None), *component)
        known = (base.data[column][write.elements], owner[column][write.elements])
        winners = _winners(write, write.value.data[column], known, is_min=is_min)
        if winners.size:
            where = (write.elements[winners], *component)
            new = tape.take(write.value, (winners, *component), is_unique=True)
            base = tape.put(base, where, new)
            owner[where] = write.threads[winners]
            if tangent is not None and write.tangent is not None:
                brought = tape.take(write.tangent, (winners, *component), is_unique=True)
                tangent = tape.put(tangent, where, brought)
    return base, tangent


def _winners(
    write: Write, value: AnyArray, known: tuple[AnyArray, AnyArray], *, is_min: bool
) -> AnyArray:
    """The rows that replace what is known, at most one an element. NaN replaces nothing."""
    before, owner = known
    is_better = value < before if is_min else value > before
    is_earlier = (value == before) & (write.threads < owner)
    rows = np.flatnonzero(is_better | is_earlier)
    # Of one element's rows the best comes first; among equals the lowest thread.
    best = value[rows] if is_min else _descending(value[rows])
    rows = rows[np.lexsort((write.threads[rows], best, write.elements[rows]))]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = np.diff(write.elements[rows]) != 0
    return rows[is_first]


def _descending(value: AnyArray) -> AnyArray:
    """Keys that sort the other way round; ints in 64 bits, where all have a negative."""
    return -(value if value.dtype.kind == "f" else value.astype(np.int64))
