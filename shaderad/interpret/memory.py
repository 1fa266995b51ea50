"""The arrays of a kernel in memory: element numbers, and writes to Min and Max arrays.

An array is a value whose threads are its elements in row-major order. Invariant: a write makes a
new value, so that earlier reads keep their derivatives; an index out of range never reaches the
value.
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

_NO_THREAD = np.iinfo(np.int64).max


@dataclass(slots=True)
class Stored:
    """An array with its extents."""

    buffer: Buffer
    shape: tuple[int, ...]
    value: Value
    owners: dict[int, AnyArray] = field(default_factory=dict[int, AnyArray])
    """For Min and Max arrays, by position of a cell: the threads whose values the array holds."""


Memory = dict[str, Stored]


@dataclass(frozen=True, slots=True)
class ElementRows:
    """Elements of an array that rows access, at most one per row."""

    elements: AnyArray
    """Row-major numbers of the elements in range."""
    rows: AnyArray
    """The rows that access them."""
    missed: tuple[AnyArray, AnyArray, AnyArray] | None
    """Rows out of range, their index, and the length of its axis."""


def elements_at(indices: Sequence[AnyArray], shape: tuple[int, ...]) -> ElementRows:
    """The elements at `indices`, an array per axis; `missed` names the first axis out of range."""
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
    return ElementRows(elements[rows], rows, missed)


def elements_behind(base: AnyArray, count: AnyArray, index: AnyArray) -> ElementRows:
    """The elements at `index` behind pointers, one pointer per row."""
    is_inside = (index >= 0) & (index < count)
    rows, outside = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    missed = (outside, index[outside], count[outside]) if outside.size else None
    return ElementRows((base + index)[rows], rows, missed)


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """The initial value of the elements of a written array."""
    if access not in (Access.MIN, Access.MAX):
        return 0
    is_min = access is Access.MIN
    if dtype.kind == "f":
        return np.inf if is_min else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if is_min else limits.min


def unwritten(access: Access, dtype: np.dtype[Any]) -> Any:
    """The operand for components that are not written; NaN never replaces an extreme."""
    is_extreme = access in (Access.MIN, Access.MAX)
    return np.nan if is_extreme and dtype.kind == "f" else neutral(access, dtype)


def last_writes(elements: AnyArray) -> AnyArray:
    """For each written element the last row that writes it."""
    if np.all(np.diff(elements) > 0):
        return np.arange(len(elements))
    _, first_from_behind = np.unique(elements[::-1], return_index=True)
    return np.sort(len(elements) - 1 - first_from_behind)


@dataclass(frozen=True, slots=True)
class Write:
    """Simultaneous writes of several threads to one cell of a Min or Max array."""

    part: int
    """Position of the cell in the value of the array."""
    elements: AnyArray
    value: Cell
    threads: AnyArray
    tangent: Cell | None = None
    """Tangents of `value`, in kernels with tangents."""


def kept_extreme(
    tape: Tape, stored: Stored, base: Cell, write: Write, tangent: Cell | None = None
) -> tuple[Cell, Cell | None]:
    """One cell of a Min or Max array after a write, and its tangent, scalar by scalar.

    The extreme value stays; among equal ones that of the lowest thread, and its first write.
    """
    owner = stored.owners.setdefault(write.part, np.full(base.data.shape, _NO_THREAD, np.int64))
    is_min = stored.buffer.access is Access.MIN
    for component in np.ndindex(base.data.shape[1:]):
        column = (slice(None), *component)
        held = (base.data[column][write.elements], owner[column][write.elements])
        rows = _replacing_rows(write, write.value.data[column], held, is_min=is_min)
        if rows.size:
            key = (write.elements[rows], *component)
            new = tape.take(write.value, (rows, *component), is_unique=True)
            base = tape.put(base, key, new)
            owner[key] = write.threads[rows]
            if tangent is not None and write.tangent is not None:
                new_dot = tape.take(write.tangent, (rows, *component), is_unique=True)
                tangent = tape.put(tangent, key, new_dot)
    return base, tangent


def _replacing_rows(
    write: Write, value: AnyArray, held: tuple[AnyArray, AnyArray], *, is_min: bool
) -> AnyArray:
    """The rows that replace the values and owners `held`, at most one per element; never NaN."""
    before, owner = held
    is_better = value < before if is_min else value > before
    is_earlier = (value == before) & (write.threads < owner)
    rows = np.flatnonzero(is_better | is_earlier)
    # The rows of an element are sorted by value, equal values by thread; the first one is kept.
    best = value[rows] if is_min else _descending(value[rows])
    rows = rows[np.lexsort((write.threads[rows], best, write.elements[rows]))]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = np.diff(write.elements[rows]) != 0
    return rows[is_first]


def _descending(value: AnyArray) -> AnyArray:
    """Sort keys for descending order; ints widen to 64 bits, where all have a negative."""
    return -(value if value.dtype.kind == "f" else value.astype(np.int64))
