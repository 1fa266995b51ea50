"""The tape: operations on cells, recorded to be run forward (jvp) and backward (vjp).

Each method of `Tape` computes a cell from cells and records an entry if a derivative may flow.
There are few kinds: primitives, whose derivatives are rows of ``rules/``, and linear moves of
elements. Invariant: entries are in the order of execution and concern only the threads that
executed them, so a branch not taken contributes exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from shaderad.interpret.cells import AnyArray, Cell
from shaderad.interpret.traced import pushed
from shaderad.rules.table import Row

Key = Any
"""An index of NumPy."""


class TapeEntry(Protocol):
    """One recorded operation."""

    def push(self, tape: Tape, dots: CellTangents) -> None:
        """Tangents of the inputs -> tangents of the outputs, computed on `tape`."""
        ...

    def pull(self, bars: CellCotangents) -> None:
        """Cotangents of the outputs -> cotangents of the inputs."""
        ...


class CellTangents:
    """The tangent of every cell that has one; the others' are 0."""

    def __init__(self) -> None:
        self._by_cell: dict[Cell, Cell] = {}

    def get(self, primal: Cell) -> Cell | None:
        return self._by_cell.get(primal)

    def set(self, primal: Cell, tangent: Cell) -> None:
        self._by_cell[primal] = tangent

    def full(self, primal: Cell) -> Cell:
        """The tangent, zeros where there is none."""
        dot = self._by_cell.get(primal)
        return Cell(np.zeros_like(primal.data)) if dot is None else dot

    def all_of(self, primals: Sequence[Cell]) -> list[Cell] | None:
        """The tangent of each, zeros where there is none; `None` where none has one."""
        if all(p not in self._by_cell for p in primals):
            return None
        return [self.full(p) for p in primals]


class CellCotangents:
    """The sum of the cotangents of each tracked cell."""

    def __init__(self) -> None:
        self._by_cell: dict[Cell, AnyArray] = {}
        self._own: set[Cell] = set()
        """Cells whose sum is referenced here only, so that it can be changed in place."""

    def take(self, primal: Cell) -> AnyArray | None:
        """Removes and returns the cotangent; `None` for zero."""
        self._own.discard(primal)
        return self._by_cell.pop(primal, None)

    def take_full(self, primal: Cell) -> Cell:
        """Removes and returns the cotangent, zeros where there is none."""
        bar = self.take(primal)
        return Cell(np.zeros_like(primal.data) if bar is None else bar)

    def add(self, primal: Cell, bar: AnyArray) -> None:
        if not primal.is_tracked:
            return
        total = self._by_cell.get(primal)
        if total is None:
            self._by_cell[primal] = bar
        elif primal in self._own:
            total += bar
        else:
            self._by_cell[primal] = total + bar
            self._own.add(primal)

    def add_at(self, primal: Cell, key: Key, bar: AnyArray, *, is_unique: bool = False) -> None:
        """Adds to some elements; `is_unique` promises that `key` names none twice."""
        if not primal.is_tracked:
            return
        total = self._owned(primal)
        if is_unique:
            total[key] += bar
        else:
            np.add.at(total, key, bar)

    def set_at(self, primal: Cell, key: Key, bar: AnyArray) -> None:
        """Replaces some elements; if several values name one element, the last one counts."""
        if primal.is_tracked:
            self._owned(primal)[key] = bar

    def _owned(self, primal: Cell) -> AnyArray:
        """The sum so far, which may be changed in place."""
        total = self._by_cell.get(primal)
        if total is None or primal not in self._own:
            total = np.zeros_like(primal.data) if total is None else total.copy()
            self._by_cell[primal] = total
            self._own.add(primal)
        return total


class Tape:
    """Computes cells, and records the operations while `is_recording`."""

    def __init__(self, *, is_recording: bool) -> None:
        self.is_recording = is_recording
        self.entries: list[TapeEntry] = []

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stops recording for the duration of a ``with`` block."""
        before, self.is_recording = self.is_recording, False
        try:
            yield
        finally:
            self.is_recording = before

    def tracks(self, *inputs: Cell) -> bool:
        """True if operations on `inputs` are recorded."""
        return self.is_recording and any(c.is_tracked for c in inputs)

    def note(self, entry: TapeEntry) -> None:
        self.entries.append(entry)

    def fresh(self, source: Cell) -> Cell:
        """The same values as a new cell, tracked even where `source` is not."""
        result = Cell(source.data, is_tracked=True)
        self.note(Rearranged(result, source, _same, _same))
        return result

    # -- operations ---------------------------------------------------------------------------

    def _result(
        self, data: AnyArray, inputs: Sequence[Cell], entry: Callable[[Cell], TapeEntry]
    ) -> Cell:
        """A cell of `data`, whose ``entry(cell)`` is recorded if an input is tracked."""
        result = Cell(data, is_tracked=self.tracks(*inputs))
        if result.is_tracked:
            self.note(entry(result))
        return result

    def apply(self, row: Row, data: AnyArray, args: Sequence[Cell]) -> Cell:
        """The result `data` of a primitive with derivative `row`."""
        return self._result(data, args, lambda result: Applied(result, tuple(args), row))

    def take(self, source: Cell, key: Key, *, is_unique: bool = False) -> Cell:
        """``source[key]``; `is_unique` promises that no element is taken twice."""
        return self._result(
            source.data[key], (source,), lambda result: Taken(result, source, key, is_unique)
        )

    def put(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with ``base[key]`` replaced; `key` names no element twice."""
        data = base.data.copy()
        data[key] = value.data
        return self._result(data, (base, value), lambda result: Put(result, base, key, value))

    def add_at(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with `value` added at elements that may repeat."""
        data = base.data.copy()
        np.add.at(data, key, value.data)
        return self._result(data, (base, value), lambda result: Added(result, base, key, value))

    def rearrange(self, source: Cell, forward: Move, transposed: Move) -> Cell:
        """``forward(source)`` for a linear `forward` with the given transpose."""
        return self._result(
            forward(source.data),
            (source,),
            lambda result: Rearranged(result, source, forward, transposed),
        )

    def join(self, sources: Sequence[Cell], shape: tuple[int, ...]) -> Cell:
        """The elements of all sources one after the other, thread by thread, in `shape`."""
        flat = [c.data.reshape(len(c.data), -1) for c in sources]
        data = np.concatenate(flat, axis=1).reshape(shape)
        return self._result(data, sources, lambda result: Joined(result, tuple(sources)))

    # -- sweeps -------------------------------------------------------------------------------

    def push(self, entries: Sequence[TapeEntry], dots: CellTangents) -> None:
        """Runs entries forward; the operations of that are recorded on this tape, too."""
        for entry in entries:
            entry.push(self, dots)

    def pull(self, bars: CellCotangents) -> None:
        """Runs all entries backward."""
        for entry in reversed(self.entries):
            entry.pull(bars)


Move = Callable[[AnyArray], AnyArray]


def _same(data: AnyArray) -> AnyArray:
    return data


@dataclass(slots=True)
class Applied:
    """``result = op(*args)``."""

    result: Cell
    args: tuple[Cell, ...]
    row: Row

    def push(self, tape: Tape, dots: CellTangents) -> None:
        args_dot = dots.all_of(self.args)
        if args_dot is not None:
            dots.set(self.result, pushed(tape, self.row, self.result, self.args, args_dot))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is None:
            return
        args_bar = self.row.vjp(self.result.data, [a.data for a in self.args], bar)
        for a, a_bar in zip(self.args, args_bar, strict=True):
            if a.is_tracked:
                bars.add(a, np.asarray(a_bar, a.data.dtype))


@dataclass(slots=True)
class Taken:
    """``result = source[key]``; its transpose adds at `key`."""

    result: Cell
    source: Cell
    key: Key
    is_unique: bool

    def push(self, tape: Tape, dots: CellTangents) -> None:
        dot = dots.get(self.source)
        if dot is not None:
            dots.set(self.result, tape.take(dot, self.key, is_unique=self.is_unique))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is not None:
            bars.add_at(self.source, self.key, bar, is_unique=self.is_unique)


@dataclass(slots=True)
class Put:
    """``result = base`` but ``result[key] = value``; replaced elements get no cotangent."""

    result: Cell
    base: Cell
    key: Key
    value: Cell

    def push(self, tape: Tape, dots: CellTangents) -> None:
        inputs_dot = dots.all_of((self.base, self.value))
        if inputs_dot is not None:
            base_dot, value_dot = inputs_dot
            dots.set(self.result, tape.put(base_dot, self.key, value_dot))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is None:
            return
        bars.add(self.value, bar[self.key])
        if self.base.is_tracked:
            rest = bar.copy()
            rest[self.key] = 0
            bars.add(self.base, rest)


@dataclass(slots=True)
class Added:
    """``result = base`` but ``result[key] += value``; its transpose reads at `key`."""

    result: Cell
    base: Cell
    key: Key
    value: Cell

    def push(self, tape: Tape, dots: CellTangents) -> None:
        inputs_dot = dots.all_of((self.base, self.value))
        if inputs_dot is not None:
            base_dot, value_dot = inputs_dot
            dots.set(self.result, tape.add_at(base_dot, self.key, value_dot))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is not None:
            bars.add(self.value, bar[self.key])
            bars.add(self.base, bar)


@dataclass(slots=True)
class Rearranged:
    """``result = forward(source)`` for a linear `forward` with transpose `transposed`."""

    result: Cell
    source: Cell
    forward: Move
    transposed: Move

    def push(self, tape: Tape, dots: CellTangents) -> None:
        dot = dots.get(self.source)
        if dot is not None:
            dots.set(self.result, tape.rearrange(dot, self.forward, self.transposed))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is not None:
            bars.add(self.source, self.transposed(bar))


@dataclass(slots=True)
class Joined:
    """``result`` holds the elements of all sources; its transpose splits them."""

    result: Cell
    sources: tuple[Cell, ...]

    def push(self, tape: Tape, dots: CellTangents) -> None:
        sources_dot = dots.all_of(self.sources)
        if sources_dot is not None:
            dots.set(self.result, tape.join(sources_dot, self.result.data.shape))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is None:
            return
        flat = bar.reshape(len(bar), -1)
        start = 0
        for source in self.sources:
            width = source.data[0].size
            bars.add(source, flat[:, start : start + width].reshape(source.data.shape))
            start += width
