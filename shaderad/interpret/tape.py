"""The tape: operations on cells, recorded to be run forward (jvp) and backward (vjp).

Each method of `Tape` computes a cell from cells and records an entry if a derivative may flow.
There are two kinds: primitives, whose derivatives are rows of ``rules/``, and linear moves of
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
from shaderad.rules.rows import Row

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
    """The tangent of every cell that has one; all other tangents are 0."""

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
        self.note(
            Linear(
                result, (source,), lambda _, dots: dots[0], lambda bars, bar: bars.add(source, bar)
            )
        )
        return result

    # -- operations ---------------------------------------------------------------------------

    def apply(self, row: Row, data: AnyArray, args: Sequence[Cell]) -> Cell:
        """The result `data` of a primitive with derivative `row`."""
        result = Cell(data, is_tracked=self.tracks(*args))
        if result.is_tracked:
            self.note(Applied(result, tuple(args), row))
        return result

    def _linear(
        self, data: AnyArray, inputs: Sequence[Cell], move: Move, transposed: Transposed
    ) -> Cell:
        result = Cell(data, is_tracked=self.tracks(*inputs))
        if result.is_tracked:
            self.note(Linear(result, tuple(inputs), move, transposed))
        return result

    def take(self, source: Cell, key: Key, *, is_unique: bool = False) -> Cell:
        """``source[key]``; `is_unique` promises that no element is taken twice."""
        return self._linear(
            source.data[key],
            (source,),
            lambda tape, dots: tape.take(dots[0], key, is_unique=is_unique),
            lambda bars, bar: bars.add_at(source, key, bar, is_unique=is_unique),
        )

    def put(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with new ``base[key]``, whose old values get no cotangent; `key` is unique."""
        data = base.data.copy()
        data[key] = value.data

        def transposed(bars: CellCotangents, bar: AnyArray) -> None:
            bars.add(value, bar[key])
            if base.is_tracked:
                rest = bar.copy()
                rest[key] = 0
                bars.add(base, rest)

        return self._linear(
            data, (base, value), lambda tape, dots: tape.put(dots[0], key, dots[1]), transposed
        )

    def add_at(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with `value` added at elements that may repeat; its transpose reads them."""
        data = base.data.copy()
        with np.errstate(all="ignore"):  # sums of infinities
            np.add.at(data, key, value.data)

        def transposed(bars: CellCotangents, bar: AnyArray) -> None:
            bars.add(value, bar[key])
            bars.add(base, bar)

        return self._linear(
            data, (base, value), lambda tape, dots: tape.add_at(dots[0], key, dots[1]), transposed
        )

    def rearrange(
        self,
        source: Cell,
        forward: Callable[[AnyArray], AnyArray],
        transposed: Callable[[AnyArray], AnyArray],
    ) -> Cell:
        """``forward(source)`` for a linear `forward` with the given transpose."""
        return self._linear(
            forward(source.data),
            (source,),
            lambda tape, dots: tape.rearrange(dots[0], forward, transposed),
            lambda bars, bar: bars.add(source, transposed(bar)),
        )

    def join(self, sources: Sequence[Cell], shape: tuple[int, ...]) -> Cell:
        """The elements of all sources one after the other, thread by thread, in `shape`."""
        flat = [c.data.reshape(len(c.data), -1) for c in sources]
        ends = np.cumsum([part.shape[1] for part in flat])

        def transposed(bars: CellCotangents, bar: AnyArray) -> None:
            bar_by_source = np.split(bar.reshape(len(bar), -1), ends[:-1], axis=1)
            for source, source_bar in zip(sources, bar_by_source, strict=True):
                bars.add(source, source_bar.reshape(source.data.shape))

        data = np.concatenate(flat, axis=1).reshape(shape)
        return self._linear(data, sources, lambda tape, dots: tape.join(dots, shape), transposed)

    # -- sweeps -------------------------------------------------------------------------------

    def push(self, entries: Sequence[TapeEntry], dots: CellTangents) -> None:
        """Runs entries forward, and records the operations of the sweep on this tape, too."""
        for entry in entries:
            entry.push(self, dots)

    def pull(self, bars: CellCotangents) -> None:
        """Runs all entries backward."""
        for entry in reversed(self.entries):
            entry.pull(bars)


Move = Callable[[Tape, Sequence[Cell]], Cell]
"""A linear function of cells, run on a tape."""
Transposed = Callable[[CellCotangents, AnyArray], None]
"""Adds to the cotangents of the inputs, given that of the result."""


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
class Linear:
    """``result = move(*inputs)`` for a linear `move` with transpose `transposed`."""

    result: Cell
    inputs: tuple[Cell, ...]
    move: Move
    transposed: Transposed

    def push(self, tape: Tape, dots: CellTangents) -> None:
        inputs_dot = dots.all_of(self.inputs)
        if inputs_dot is not None:
            dots.set(self.result, self.move(tape, inputs_dot))

    def pull(self, bars: CellCotangents) -> None:
        bar = bars.take(self.result)
        if bar is not None:
            self.transposed(bars, bar)
