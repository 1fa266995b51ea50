"""What was computed, as a list of entries that can be run forward (jvp) and backward (vjp).

Each method of `Tape` makes a cell out of cells and notes how, where a derivative may flow. There
are few kinds: primitives, whose derivatives are rows of ``rules/``, and ways to move elements
about, which are linear. Invariant: entries stand in the order of execution and only the threads
that executed one take part in it, so a branch not taken contributes exactly 0.
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
"""What NumPy takes between brackets."""


class Entry(Protocol):
    """One step that was executed."""

    def push(self, tape: Tape, dots: Tangents) -> None:
        """Tangents of the inputs -> tangents of the outputs, made on `tape`."""
        ...

    def pull(self, bars: Cotangents) -> None:
        """Cotangents of the outputs -> cotangents of the inputs."""
        ...


class Tangents:
    """The tangent of every cell that has one; the others' are 0."""

    def __init__(self) -> None:
        self._by_cell: dict[Cell, Cell] = {}

    def get(self, primal: Cell) -> Cell | None:
        return self._by_cell.get(primal)

    def set(self, primal: Cell, tangent: Cell) -> None:
        self._by_cell[primal] = tangent

    def full(self, primal: Cell) -> Cell:
        """The tangent, zeros where there is none."""
        found = self._by_cell.get(primal)
        return Cell(np.zeros_like(primal.data)) if found is None else found

    def all_of(self, primals: Sequence[Cell]) -> list[Cell] | None:
        """The tangent of each, zeros where there is none; `None` where none has one."""
        if all(p not in self._by_cell for p in primals):
            return None
        return [self.full(p) for p in primals]


class Cotangents:
    """Sums of what flows back into each tracked cell."""

    def __init__(self) -> None:
        self._by_cell: dict[Cell, AnyArray] = {}
        self._own: set[Cell] = set()
        """Cells whose sum nobody else holds, so that it can be added to in place."""

    def take(self, primal: Cell) -> AnyArray | None:
        """The finished cotangent, which is then forgotten; `None` for zero."""
        self._own.discard(primal)
        return self._by_cell.pop(primal, None)

    def add(self, primal: Cell, bar: AnyArray) -> None:
        if not primal.is_tracked:
            return
        known = self._by_cell.get(primal)
        if known is None:
            self._by_cell[primal] = bar
        elif primal in self._own:
            known += bar
        else:
            self._by_cell[primal] = known + bar
            self._own.add(primal)

    def add_at(self, primal: Cell, key: Key, bar: AnyArray, *, is_unique: bool = False) -> None:
        """Adds to some elements; `is_unique` says that `key` names none twice."""
        if not primal.is_tracked:
            return
        known = self._owned(primal)
        if is_unique:
            known[key] += bar
        else:
            np.add.at(known, key, bar)

    def set_at(self, primal: Cell, key: Key, bar: AnyArray) -> None:
        """Replaces some elements; of several values for one the last stands."""
        if primal.is_tracked:
            self._owned(primal)[key] = bar

    def _owned(self, primal: Cell) -> AnyArray:
        """The sum so far, which may be changed in place."""
        known = self._by_cell.get(primal)
        if known is None or primal not in self._own:
            known = np.zeros_like(primal.data) if known is None else known.copy()
            self._by_cell[primal] = known
            self._own.add(primal)
        return known


class Tape:
    """Makes cells, and keeps how where it `is_recording`."""

    def __init__(self, *, is_recording: bool) -> None:
        self.is_recording = is_recording
        self.entries: list[Entry] = []

    @contextmanager
    def paused(self) -> Generator[None]:
        """Records nothing for a while."""
        before, self.is_recording = self.is_recording, False
        try:
            yield
        finally:
            self.is_recording = before

    def tracks(self, *inputs: Cell) -> bool:
        """Whether a cell made of `inputs` is to be recorded."""
        return self.is_recording and any(c.is_tracked for c in inputs)

    def note(self, entry: Entry) -> None:
        self.entries.append(entry)

    def fresh(self, source: Cell) -> Cell:
        """The same values as a new cell that is tracked whatever they come from."""
        made = Cell(source.data, is_tracked=True)
        self.note(Rearranged(made, source, _same, _same))
        return made

    # -- ways to make a cell ------------------------------------------------------------------

    def apply(self, row: Row, data: AnyArray, args: Sequence[Cell]) -> Cell:
        """The result `data` of a primitive with derivative `row`."""
        if not self.tracks(*args):
            return Cell(data)
        made = Cell(data, is_tracked=True)
        self.note(Applied(made, tuple(args), row))
        return made

    def take(self, source: Cell, key: Key, *, is_unique: bool = False) -> Cell:
        """``source[key]``; `is_unique` says that no element is taken twice."""
        made = Cell(source.data[key], is_tracked=self.tracks(source))
        if made.is_tracked:
            self.note(Taken(made, source, key, is_unique))
        return made

    def put(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with ``base[key]`` replaced; `key` names no element twice."""
        data = base.data.copy()
        data[key] = value.data
        made = Cell(data, is_tracked=self.tracks(base, value))
        if made.is_tracked:
            self.note(Put(made, base, key, value))
        return made

    def add_at(self, base: Cell, key: Key, value: Cell) -> Cell:
        """`base` with `value` added at elements that may repeat."""
        data = base.data.copy()
        np.add.at(data, key, value.data)
        made = Cell(data, is_tracked=self.tracks(base, value))
        if made.is_tracked:
            self.note(Added(made, base, key, value))
        return made

    def rearrange(self, source: Cell, forward: Move, transposed: Move) -> Cell:
        """A linear `forward` of one array and its transpose."""
        made = Cell(forward(source.data), is_tracked=self.tracks(source))
        if made.is_tracked:
            self.note(Rearranged(made, source, forward, transposed))
        return made

    def join(self, sources: Sequence[Cell], shape: tuple[int, ...]) -> Cell:
        """The elements of all sources one after the other, thread by thread, in `shape`."""
        flat = [c.data.reshape(len(c.data), -1) for c in sources]
        data = np.concatenate(flat, axis=1).reshape(shape)
        made = Cell(data, is_tracked=self.tracks(*sources))
        if made.is_tracked:
            self.note(Joined(made, tuple(sources)))
        return made

    # -- sweeps -------------------------------------------------------------------------------

    def push(self, entries: Sequence[Entry], dots: Tangents) -> None:
        """Runs entries forward; what that computes is itself recorded on this tape."""
        for entry in entries:
            entry.push(self, dots)

    def pull(self, bars: Cotangents) -> None:
        """Runs all entries backward."""
        for entry in reversed(self.entries):
            entry.pull(bars)


Move = Callable[[AnyArray], AnyArray]


def _same(data: AnyArray) -> AnyArray:
    return data


@dataclass(slots=True)
class Applied:
    """``made = op(*args)``."""

    made: Cell
    args: tuple[Cell, ...]
    row: Row

    def push(self, tape: Tape, dots: Tangents) -> None:
        args_dot = dots.all_of(self.args)
        if args_dot is not None:
            dots.set(self.made, pushed(tape, self.row, self.made, self.args, args_dot))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is None:
            return
        found = self.row.vjp(self.made.data, [a.data for a in self.args], bar)
        for a, a_bar in zip(self.args, found, strict=True):
            if a.is_tracked:
                bars.add(a, np.asarray(a_bar, a.data.dtype))


@dataclass(slots=True)
class Taken:
    """``made = source[key]``; transposed, an addition there."""

    made: Cell
    source: Cell
    key: Key
    is_unique: bool

    def push(self, tape: Tape, dots: Tangents) -> None:
        dot = dots.get(self.source)
        if dot is not None:
            dots.set(self.made, tape.take(dot, self.key, is_unique=self.is_unique))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is not None:
            bars.add_at(self.source, self.key, bar, is_unique=self.is_unique)


@dataclass(slots=True)
class Put:
    """``made = base`` but ``made[key] = value``; what is replaced gets no cotangent."""

    made: Cell
    base: Cell
    key: Key
    value: Cell

    def push(self, tape: Tape, dots: Tangents) -> None:
        found = dots.all_of((self.base, self.value))
        if found is not None:
            base_dot, value_dot = found
            dots.set(self.made, tape.put(base_dot, self.key, value_dot))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is None:
            return
        bars.add(self.value, bar[self.key])
        if self.base.is_tracked:
            rest = bar.copy()
            rest[self.key] = 0
            bars.add(self.base, rest)


@dataclass(slots=True)
class Added:
    """``made = base`` but ``made[key] += value``; transposed, a read."""

    made: Cell
    base: Cell
    key: Key
    value: Cell

    def push(self, tape: Tape, dots: Tangents) -> None:
        found = dots.all_of((self.base, self.value))
        if found is not None:
            base_dot, value_dot = found
            dots.set(self.made, tape.add_at(base_dot, self.key, value_dot))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is not None:
            bars.add(self.value, bar[self.key])
            bars.add(self.base, bar)


@dataclass(slots=True)
class Rearranged:
    """``made = forward(source)``, linear; `transposed` carries cotangents back."""

    made: Cell
    source: Cell
    forward: Move
    transposed: Move

    def push(self, tape: Tape, dots: Tangents) -> None:
        dot = dots.get(self.source)
        if dot is not None:
            dots.set(self.made, tape.rearrange(dot, self.forward, self.transposed))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is not None:
            bars.add(self.source, self.transposed(bar))


@dataclass(slots=True)
class Joined:
    """``made`` holds the elements of all sources; transposed, they come apart."""

    made: Cell
    sources: tuple[Cell, ...]

    def push(self, tape: Tape, dots: Tangents) -> None:
        sources_dot = dots.all_of(self.sources)
        if sources_dot is not None:
            dots.set(self.made, tape.join(sources_dot, self.made.data.shape))

    def pull(self, bars: Cotangents) -> None:
        bar = bars.take(self.made)
        if bar is None:
            return
        flat = bar.reshape(len(bar), -1)
        start = 0
        for source in self.sources:
            width = source.data[0].size
            bars.add(source, flat[:, start : start + width].reshape(source.data.shape))
            start += width
