"""Which buffer of a run holds which value of a plan, and how large the buffers are.

Buffers are numbered: the inputs of the plan come first. Invariant: a buffer never holds two
values that are both still needed; results have buffers that nobody else has after the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from shaderad.ir import sizes
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.ir.arrays import Value

Shape = tuple[int, ...]


class Places:
    """The buffers of one plan at known sizes."""

    def __init__(
        self, inputs: Sequence[Value], offsets: Sequence[int], known: Mapping[str, int]
    ) -> None:
        self.known = dict(known)
        self.kept_bytes: list[int] = []
        """Sizes of the buffers of results, which follow those of the inputs."""
        self.scratch_bytes: list[int] = []
        """Sizes of the buffers behind those."""
        self._input_count = len(inputs)
        self._number_by_value = {v: k for k, v in enumerate(inputs)}
        self._offset_by_value = dict(zip(inputs, offsets, strict=True))
        self._kept: set[Value] = set()
        self._made_at: dict[int, int] = {}
        """Of the buffer of a result: the step from which on it holds that."""
        self._free: list[int] = []
        self.step = 0
        """The step of the outermost plan that is being prepared."""
        self.live_bytes = 0
        self.peak_live_bytes = 0
        """The most that is needed at one time, inputs left out."""

    def keep(self, value: Value, made_at: int) -> None:
        """Gives a result that step `made_at` writes a buffer of its own.

        All results come before any `make`. Until its result is made, the buffer serves others.
        """
        number = self._input_count + len(self.kept_bytes)
        self._kept.add(value)
        self._number_by_value[value] = number
        self._made_at[number] = made_at
        self._free.append(number)
        self.kept_bytes.append(self.byte_count(value))

    def number(self, value: Value) -> int:
        return self._number_by_value[value]

    def offset(self, value: Value) -> int:
        """The bytes before `value` in its buffer."""
        return self._offset_by_value.get(value, 0)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(sizes.evaluate(extent, self.known) for extent in shape)

    def byte_count(self, value: Value) -> int:
        return buffers.byte_count(value.element, prod(self.shape(value.shape)))

    def make(self, value: Value, last_step: int | None = None) -> None:
        """Gives a value that a step writes a buffer, unless it is a result and has one.

        `last_step` is the last one that needs it; the present one where nothing is said.
        """
        size = self.byte_count(value)
        if value in self._kept:
            self._free.remove(self._number_by_value[value])
            self._count(size)
        else:
            self._number_by_value[value] = self.scratch(size, last_step)

    def hold(self, value: Value, number: int, offset: int = 0) -> None:
        """Notes what a buffer holds."""
        self._number_by_value[value] = number
        self._offset_by_value[value] = offset

    def drop(self, values: Iterable[Value]) -> None:
        """Lets what holds `values` serve again."""
        for value in values:
            self.give_back(self._number_by_value[value], self.byte_count(value))

    def scratch(self, size: int, last_step: int | None = None) -> int:
        """A buffer of at least `size` bytes: one that is free and need grow least, or a new one."""
        self._count(size)
        until = self.step if last_step is None else last_step
        fitting = [number for number in self._free if self._fits(number, size, until)]
        first = self._input_count + len(self.kept_bytes)
        if not fitting:
            self.scratch_bytes.append(size)
            return first + len(self.scratch_bytes) - 1
        best = min(fitting, key=lambda number: self._cost(number, size))
        self._free.remove(best)
        if best >= first:
            self.scratch_bytes[best - first] = max(size, self.scratch_bytes[best - first])
        return best

    def _fits(self, number: int, size: int, until: int) -> bool:
        """Whether a free buffer may be lent until step `until`."""
        if number not in self._made_at:
            return True
        return self._made_at[number] > until and size <= self._size(number)

    def _cost(self, number: int, size: int) -> tuple[int, int]:
        """What the buffer would have to grow, and what of it would lie idle."""
        found = self._size(number)
        return max(0, size - found), max(0, found - size)

    def _size(self, number: int) -> int:
        return (*self.kept_bytes, *self.scratch_bytes)[number - self._input_count]

    def give_back(self, number: int, size: int) -> None:
        """Lets a buffer serve again that was asked for with `size` bytes."""
        self._free.append(number)
        self.live_bytes -= size

    def _count(self, size: int) -> None:
        self.live_bytes += size
        self.peak_live_bytes = max(self.peak_live_bytes, self.live_bytes)
