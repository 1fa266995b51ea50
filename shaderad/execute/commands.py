"""What a prepared plan does at each run, as plain objects over a frame of buffers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from shaderad.runtime import fill

if TYPE_CHECKING:
    from shaderad.runtime import Buffer, Pipeline, Runtime

Frame = Sequence["Buffer"]
"""The buffers of one run: inputs, then those that the run makes."""


class Command(Protocol):
    """One thing to record."""

    def placed(self, numbers: Sequence[int]) -> Command:
        """The same over other buffers: `numbers` are theirs, by what this one calls them."""
        ...

    def record(self, runtime: Runtime, frame: Frame) -> None: ...


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch; its words are known."""

    pipeline: Pipeline
    places: tuple[tuple[int, int], ...]
    """Slot, and number of its buffer in the frame."""
    own: tuple[tuple[int, Buffer], ...]
    """Slots of the buffers in which the device keeps what kernels report and print."""
    words: bytes
    groups: tuple[int, int, int]
    launch: tuple[int, Callable[[], int]] | None = None
    """The byte of `words` at which the number of each dispatch stands, and where it is from."""

    def placed(self, numbers: Sequence[int]) -> Dispatch:
        places = tuple((slot, numbers[number]) for slot, number in self.places)
        return replace(self, places=places)

    def record(self, runtime: Runtime, frame: Frame) -> None:
        bound = {slot: frame[number] for slot, number in self.places}
        bound.update(self.own)
        runtime.dispatch(self.pipeline, bound, self._numbered(), self.groups)

    def _numbered(self) -> bytes:
        """The words of this dispatch."""
        if self.launch is None:
            return self.words
        start, number = self.launch
        word = struct.pack("<I", number() & 0xFFFFFFFF)
        return self.words[:start] + word + self.words[start + len(word) :]


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of one buffer to another."""

    source: int
    source_offset: int
    target: int
    target_offset: int
    byte_count: int

    def placed(self, numbers: Sequence[int]) -> Copy:
        return replace(self, source=numbers[self.source], target=numbers[self.target])

    def record(self, runtime: Runtime, frame: Frame) -> None:
        source, target = frame[self.source], frame[self.target]
        runtime.copy(source, self.source_offset, target, self.target_offset, self.byte_count)


@dataclass(frozen=True, slots=True)
class Fill:
    """The first bytes of a buffer, filled with one word."""

    target: int
    word: int
    byte_count: int

    def placed(self, numbers: Sequence[int]) -> Fill:
        return replace(self, target=numbers[self.target])

    def record(self, runtime: Runtime, frame: Frame) -> None:
        fill(runtime, frame[self.target], self.word, 0, self.byte_count)


@dataclass(frozen=True, slots=True)
class While:
    """Commands again and again, until the device says that a loop has ended."""

    commands: tuple[Command, ...]
    times: int
    """How often they are recorded between two looks."""
    look_limit: int
    """Looks after which the loop has ended, whatever its buffers say."""
    goes_on: int
    """The buffer whose first word tells."""
    wants: int
    """The buffer whose first word tells whether only the limit ended the loop."""
    ran_over: Callable[[], None]

    def placed(self, numbers: Sequence[int]) -> While:
        return replace(
            self,
            commands=tuple(one.placed(numbers) for one in self.commands),
            goes_on=numbers[self.goes_on],
            wants=numbers[self.wants],
        )

    def record(self, runtime: Runtime, frame: Frame) -> None:
        words = [(frame[number], 0, 4) for number in (self.goes_on, self.wants)]
        for _ in range(self.look_limit):
            for command in self.commands * self.times:
                command.record(runtime, frame)
            goes_on, wants = runtime.read(words)
            if not any(goes_on):
                if any(wants):
                    self.ran_over()
                return
        self.ran_over()
