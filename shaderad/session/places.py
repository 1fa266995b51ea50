"""Which buffer of a run holds which value of a plan, and how large the buffers are.

Buffers are numbered: the inputs of the plan come first. Invariant: a buffer never holds two
values that are both still needed; outputs have buffers of their own.
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
        self.made_bytes: list[int] = []
        """Sizes of the buffers behind those of the inputs."""
        self._input_count = len(inputs)
        self._number_by_value = {v: k for k, v in enumerate(inputs)}
        self._offset_by_value = dict(zip(inputs, offsets, strict=True))
        self._free: list[int] = []
        self.live_bytes = 0
        self.peak_live_bytes = 0
        """The most that is needed at one time, inputs left out."""

    def number(self, value: Value) -> int:
        return self._number_by_value[value]

    def offset(self, value: Value) -> int:
        """The bytes before `value` in its buffer."""
        return self._offset_by_value.get(value, 0)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(sizes.evaluate(extent, self.known) for extent in shape)

    def byte_count(self, value: Value) -> int:
        return buffers.byte_count(value.element, prod(self.shape(value.shape)))

    def make(self, value: Value, *, is_kept: bool) -> None:
        """Gives `value` a buffer, its own where it is kept beyond the run."""
        size = self.byte_count(value)
        self._number_by_value[value] = self._new(size) if is_kept else self.scratch(size)
        if is_kept:
            self._count(size)

    def hold(self, value: Value, number: int, offset: int = 0) -> None:
        """Notes what a buffer holds."""
        self._number_by_value[value] = number
        self._offset_by_value[value] = offset

    def drop(self, values: Iterable[Value]) -> None:
        """Lets what holds `values` serve again."""
        for value in values:
            self.give_back(self._number_by_value[value], self.byte_count(value))

    def scratch(self, size: int) -> int:
        """A buffer of at least `size` bytes: one that is free and need grow least, or a new one."""
        self._count(size)
        if not self._free:
            return self._new(size)

        def cost(number: int) -> tuple[int, int]:
            found = self.made_bytes[number - self._input_count]
            return max(0, size - found), max(0, found - size)

        best = min(self._free, key=cost)
        self._free.remove(best)
        position = best - self._input_count
        self.made_bytes[position] = max(size, self.made_bytes[position])
        return best

    def give_back(self, number: int, size: int) -> None:
        """Lets a buffer serve again that was asked for with `size` bytes."""
        self._free.append(number)
        self.live_bytes -= size

    def _new(self, size: int) -> int:
        self.made_bytes.append(size)
        return self._input_count + len(self.made_bytes) - 1

    def _count(self, size: int) -> None:
        self.live_bytes += size
        self.peak_live_bytes = max(self.peak_live_bytes, self.live_bytes)
