"""Which numbered buffer holds which value of a plan, and how large each buffer is.

The inputs of the plan come first. Invariant: a buffer holds one value, or what one step needs
besides; which of them can share memory is left to whoever knows their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shaderad.execute.schedule import Instruction, Output, Schedule, start_of
from shaderad.ir import sizes, types
from shaderad.runtime.buffers import WORD_BYTES

if TYPE_CHECKING:
    from shaderad.ir.arrays import Value
    from shaderad.ir.sizes import Shape, Size
    from shaderad.lower.bindings import Lowered


def storage_bytes(t: types.Type, count: Size) -> Size:
    """Bytes of `count` elements, up to whole words: see `runtime.buffers.byte_count`."""
    size = sizes.multiply(types.byte_count(t), count)
    if types.byte_count(t) % WORD_BYTES == 0:
        return size
    return aligned(size, WORD_BYTES)


def aligned(size: Size, step: int) -> Size:
    """The next multiple of `step`."""
    return sizes.multiply(step, sizes.divide_up(size, step))


class Places:
    """The buffers of one plan."""

    def __init__(self, inputs: Sequence[Value]) -> None:
        self.byte_counts = [self.byte_count(v) for v in inputs]
        """Of all buffers, the inputs first."""
        self.aligned_inputs: set[int] = set()
        self._input_count = len(inputs)
        self._number_by_value = {v: k for k, v in enumerate(inputs)}
        self._start_by_value = {v: sizes.symbol(start_of(k)) for k, v in enumerate(inputs)}

    def number(self, value: Value) -> int:
        return self._number_by_value[value]

    def start(self, value: Value) -> Size:
        """The bytes before `value` in its buffer."""
        return self._start_by_value.get(value, 0)

    def byte_count(self, value: Value) -> Size:
        return storage_bytes(value.element, sizes.product(value.shape))

    def make(self, value: Value) -> None:
        """Gives a value that a step writes a buffer."""
        self._number_by_value[value] = self.scratch(self.byte_count(value))

    def hold(self, value: Value, number: int, start: Size = 0) -> None:
        """Notes what a buffer holds."""
        self._number_by_value[value] = number
        self._start_by_value[value] = start

    def scratch(self, byte_count: Size) -> int:
        """A new buffer."""
        self.byte_counts.append(byte_count)
        return len(self.byte_counts) - 1

    def align(self, number: int) -> None:
        """Notes that a program reads a buffer from its start, whatever it is."""
        if number < self._input_count:
            self.aligned_inputs.add(number)

    def schedule(
        self,
        outputs: Iterable[tuple[Value, Shape]],
        programs: Sequence[Lowered],
        instructions: Sequence[Instruction],
    ) -> Schedule:
        """All that was decided; `outputs` are values, each with the shape that it shows."""
        return Schedule(
            input_count=self._input_count,
            byte_counts=tuple(self.byte_counts),
            outputs=tuple(Output(v.element, shape, self.number(v)) for v, shape in outputs),
            programs=tuple(programs),
            instructions=tuple(instructions),
            aligned_inputs=frozenset(self.aligned_inputs),
        )
