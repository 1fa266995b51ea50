"""A call of a function of flat lists, as a parameter of JAX's primitive -> its run on host arrays.

A primal that will be differentiated is kept on its device under a ticket, a number that JAX passes
to its derivatives, so that they reuse the uploaded arguments. Invariant: a ticket is only an
optimisation: if its run has been dropped, the derivative runs the primal again.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from shaderad.arrays.textures import Texture
from shaderad.device.devices import Device
from shaderad.jax.tensors import in_form, on_host
from shaderad.wrapped.flat import Flat, FlatAt, LinearMap
from shaderad.wrapped.parts import ArrayPart, Outline, contents
from shaderad.wrapped.primals import Primal
from shaderad.wrapped.structures import CallLeaves, HostArray

TICKET = np.dtype(np.uint32)
KEPT_RUNS = 32
"""Most calls kept for a derivative that JAX may or may not request: more than the wrapped functions
in a training step, and few enough for their arguments to fit in memory."""


@dataclass(frozen=True)
class FlatCall:
    """A function of flat lists, with all of its arguments but the tensors."""

    flat: Flat
    form: int
    whole: tuple[int, ...]
    real: tuple[float, ...]
    textures: tuple[Texture, ...]
    device: Device
    """The device where it runs, in any thread."""
    outlines: tuple[Outline, ...]
    """Shape and dtype of each leaf of the result."""
    keeps: bool = False
    """True if the run is kept under a ticket, which is then the last result."""

    @property
    def is_derivative(self) -> bool:
        """True if the last operand is the ticket of its primal."""
        return isinstance(self.flat, LinearMap)

    def arguments(self, tensors: Sequence[HostArray]) -> CallLeaves:
        return CallLeaves(tensors, self.whole, self.real, self.textures)


@dataclass(frozen=True)
class BatchAxis:
    """A batch axis: its size, and which operands have it as their first axis."""

    size: int
    members: tuple[bool, ...]


Axes = tuple[BatchAxis, ...]


class KeptRuns:
    """The runs that wait on a device for their derivatives, by ticket."""

    def __init__(self, device: Device) -> None:
        self._numbers = count()
        self._by_number: dict[int, FlatAt] = {}
        self._owned: set[int] = set()
        self._order: deque[tuple[int, ...]] = deque()
        self._lock = Lock()

    def keep(self, runs: Sequence[FlatAt]) -> list[int]:
        """Keeps the runs of one call and returns their tickets; may drop those of an old call."""
        with self._lock:
            tickets = [next(self._numbers) % 2**32 for _ in runs]
            self._by_number.update(zip(tickets, runs, strict=True))
            self._order.append(tuple(tickets))
            if len(self._order) > KEPT_RUNS:
                self._drop(
                    [number for number in self._order.popleft() if number not in self._owned]
                )
        return tickets

    def take(self, tickets: Sequence[int]) -> dict[int, FlatAt]:
        """The runs of these tickets, which are dropped unless they are owned."""
        with self._lock:
            run_by_ticket = {
                ticket: self._by_number[ticket] for ticket in tickets if ticket in self._by_number
            }
            self._drop([ticket for ticket in run_by_ticket if ticket not in self._owned])
        return run_by_ticket

    def own(self, ticket: Any) -> None:
        """Keeps the runs of an array of tickets alive as long as the array."""
        numbers = np.asarray(ticket).reshape(-1).tolist()
        with self._lock:
            self._owned.update(numbers)
        weakref.finalize(ticket, self._release, numbers)

    def _release(self, numbers: Sequence[int]) -> None:
        # Without the lock, because garbage collection may run in a thread that holds it.
        for number in numbers:
            self._owned.discard(number)
            self._by_number.pop(number, None)

    def _drop(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._by_number.pop(number, None)

    def __len__(self) -> int:
        return len(self._by_number)


def run(call: FlatCall, axes: Axes, operands: Sequence[Any]) -> list[HostArray]:
    """The results of a call for a whole batch, and tickets if the call is kept."""
    host = [on_host(x) for x in operands]
    with call.device:
        parts_by_row, runs = _runs(call, [*elements(axes, host)], host)
        read = iter(contents([part for parts in parts_by_row for part in parts]))
    rows = [[in_form(next(read), outline) for outline in call.outlines] for _ in parts_by_row]
    extents = tuple(axis.size for axis in axes)
    results = [
        _joined([row[k] for row in rows], extents, outline)
        for k, outline in enumerate(call.outlines)
    ]
    if not call.keeps:
        return results
    tickets = call.device.kept(KeptRuns).keep(runs)
    return [*results, np.array(tickets, TICKET).reshape(extents)]


def _runs(
    call: FlatCall, rows: Sequence[Sequence[HostArray]], operands: Sequence[HostArray]
) -> tuple[list[Sequence[ArrayPart]], list[FlatAt]]:
    """The results for each element of the batch, and the runs to keep."""
    flat = call.flat
    if isinstance(flat, LinearMap):
        tensors = [row[:-1] for row in rows]
        if not call.keeps:
            run_by_ticket = call.device.kept(KeptRuns).take(operands[-1].reshape(-1).tolist())
            return [_mapped(call, flat, row, run_by_ticket) for row in rows], []
    else:
        tensors = rows
        if not call.keeps:
            assert isinstance(flat, Primal)
            return [flat.called(call.form, call.arguments(row)).parts for row in rows], []
    runs = [flat.at(call.form, call.arguments(row)) for row in tensors]
    return [primal_run.parts for primal_run in runs], runs


def _mapped(
    call: FlatCall, flat: LinearMap, row: Sequence[HostArray], run_by_ticket: dict[int, FlatAt]
) -> list[ArrayPart]:
    *tensors, ticket = row
    own, derivatives = flat.taken_apart(call.form, tensors)
    primal = run_by_ticket.get(int(ticket)) or flat.primal_at(call.form, call.arguments(own))
    return flat.mapped(call.form, primal, derivatives)


def elements(axes: Axes, operands: Sequence[HostArray]) -> Iterator[Sequence[HostArray]]:
    """The operands for each element of a batch, with the last axis fastest."""
    if not axes:
        yield operands
        return
    axis, *inner = axes
    for k in range(axis.size):
        pairs = zip(operands, axis.members, strict=True)
        yield from elements(tuple(inner), [x[k] if has_axis else x for x, has_axis in pairs])


def _joined(column: Sequence[HostArray], extents: tuple[int, ...], outline: Outline) -> HostArray:
    """One result for all elements of the batch."""
    if not extents:
        return column[0]
    shape = (*extents, *outline.shape)
    return np.stack(column).reshape(shape) if prod(extents) else np.zeros(shape, outline.dtype)
