"""A call of a function of flat lists, as JAX carries it, and its run on host arrays.

A primal that will be differentiated leaves itself on its device under a ticket, a number that JAX
hands to its derivatives: they use the arguments that are there. Invariant: a ticket is an
optimisation; where what it names is gone, the derivative runs the primal again.
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

from shaderad.device.devices import Device
from shaderad.jax.tensors import HostArray, in_form, on_host
from shaderad.wrapped.flat import Flat, FlatAt, Given, LinearMap
from shaderad.wrapped.parts import ArrayPart, Outline, contents
from shaderad.wrapped.primals import Primal

TICKET = np.dtype(np.uint32)
KEPT_RUNS = 32
"""Runs that wait for a derivative, at most, where JAX alone knows if there will be one: more than
a step of training has wrapped functions, and few enough for their arguments to stay in memory."""


@dataclass(frozen=True)
class FlatCall:
    """A function of flat lists, and what its arguments have beside tensors."""

    flat: Flat
    form: int
    whole: tuple[int, ...]
    real: tuple[float, ...]
    device: Device
    """The device where it runs, in whichever thread."""
    outlines: tuple[Outline, ...]
    """For each leaf of the result."""
    keeps: bool = False
    """True if it leaves itself under a ticket, its last result."""

    @property
    def is_derivative(self) -> bool:
        """True if the last operand is the ticket of its primal."""
        return isinstance(self.flat, LinearMap)

    def given(self, tensors: Sequence[HostArray]) -> Given:
        return Given(tensors, self.whole, self.real)


@dataclass(frozen=True)
class BatchAxis:
    """An axis of a batch: its size, and the operands that have it, in front of their others."""

    size: int
    members: tuple[bool, ...]


Axes = tuple[BatchAxis, ...]


class KeptRuns:
    """The functions at their arguments on a device that wait for their derivatives, by ticket."""

    def __init__(self, device: Device) -> None:
        self._numbers = count()
        self._by_number: dict[int, FlatAt] = {}
        self._owned: set[int] = set()
        self._order: deque[tuple[int, ...]] = deque()
        self._lock = Lock()

    def keep(self, runs: Sequence[FlatAt]) -> list[int]:
        """Tickets for the runs of one call; those of an old call may end for it."""
        with self._lock:
            tickets = [next(self._numbers) % 2**32 for _ in runs]
            self._by_number.update(zip(tickets, runs, strict=True))
            self._order.append(tuple(tickets))
            if len(self._order) > KEPT_RUNS:
                self._drop([one for one in self._order.popleft() if one not in self._owned])
        return tickets

    def take(self, tickets: Sequence[int]) -> dict[int, FlatAt]:
        """The runs of tickets, which end unless somebody owns them."""
        with self._lock:
            found = {one: self._by_number[one] for one in tickets if one in self._by_number}
            self._drop([one for one in found if one not in self._owned])
        return found

    def own(self, ticket: Any) -> None:
        """Lets the runs of an array of tickets live as long as the array."""
        numbers = np.asarray(ticket).reshape(-1).tolist()
        with self._lock:
            self._owned.update(numbers)
        weakref.finalize(ticket, self._release, numbers)

    def _release(self, numbers: Sequence[int]) -> None:
        # Not under the lock, which the thread may hold whose garbage is collected.
        for one in numbers:
            self._owned.discard(one)
            self._by_number.pop(one, None)

    def _drop(self, numbers: Sequence[int]) -> None:
        for one in numbers:
            self._by_number.pop(one, None)

    def __len__(self) -> int:
        return len(self._by_number)


def run(call: FlatCall, axes: Axes, operands: Sequence[Any]) -> list[HostArray]:
    """The results of a call, of each element of a batch, and its tickets if it keeps itself."""
    host = [on_host(x) for x in operands]
    with call.device:
        found, runs = _runs(call, [*elements(axes, host)], host)
        read = iter(contents([part for parts in found for part in parts]))
    rows = [[in_form(next(read), one) for one in call.outlines] for _ in found]
    extents = tuple(axis.size for axis in axes)
    results = [
        _joined([row[k] for row in rows], extents, one) for k, one in enumerate(call.outlines)
    ]
    if not call.keeps:
        return results
    tickets = call.device.kept(KeptRuns).keep(runs)
    return [*results, np.array(tickets, TICKET).reshape(extents)]


def _runs(
    call: FlatCall, rows: Sequence[Sequence[HostArray]], operands: Sequence[HostArray]
) -> tuple[list[Sequence[ArrayPart]], list[FlatAt]]:
    """The results of each element, and the runs to be kept."""
    flat = call.flat
    if isinstance(flat, LinearMap):
        tensors = [row[:-1] for row in rows]
        if not call.keeps:
            known = call.device.kept(KeptRuns).take(operands[-1].reshape(-1).tolist())
            return [_mapped(call, flat, row, known) for row in rows], []
    else:
        tensors = rows
        if not call.keeps:
            assert isinstance(flat, Primal)
            return [flat.called(call.form, call.given(row)).parts for row in rows], []
    runs = [flat.at(call.form, call.given(row)) for row in tensors]
    return [one.parts for one in runs], runs


def _mapped(
    call: FlatCall, flat: LinearMap, row: Sequence[HostArray], known: dict[int, FlatAt]
) -> list[ArrayPart]:
    *tensors, ticket = row
    own, given = flat.taken_apart(call.form, tensors)
    at = known.get(int(ticket)) or flat.primal_at(call.form, call.given(own))
    return flat.mapped(call.form, at, given)


def elements(axes: Axes, operands: Sequence[HostArray]) -> Iterator[Sequence[HostArray]]:
    """The operands of each element of a batch, the last axis fastest."""
    if not axes:
        yield operands
        return
    axis, *inner = axes
    for k in range(axis.size):
        pairs = zip(operands, axis.members, strict=True)
        yield from elements(tuple(inner), [x[k] if has_axis else x for x, has_axis in pairs])


def _joined(column: Sequence[HostArray], extents: tuple[int, ...], outline: Outline) -> HostArray:
    """One result of all elements."""
    if not extents:
        return column[0]
    shape = (*extents, *outline.shape)
    return np.stack(column).reshape(shape) if prod(extents) else np.zeros(shape, outline.dtype)
