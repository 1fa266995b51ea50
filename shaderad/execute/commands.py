"""What a prepared plan does at each run, as plain objects over a frame of buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from shaderad.runtime import fill

if TYPE_CHECKING:
    from shaderad.runtime import Buffer, Pipeline, Runtime


@dataclass(frozen=True, slots=True)
class Frame:
    """The buffers of one run, and what else differs from run to run."""

    buffers: Sequence[Buffer]
    """The inputs, then the buffers that the run makes."""
    starts: Sequence[int]
    """The bytes before each input in its buffer."""
    is_shifted: bool
    """True if an input does not start at its buffer's first byte."""
    uniforms: Mapping[str, bytes]
    """The numbers that the host passes, as words."""

    def start(self, number: int) -> int:
        """The bytes before the content of a buffer."""
        return self.starts[number] if number < len(self.starts) else 0


LateWord = tuple[int, Callable[[Frame], bytes]]
"""Words that each run computes anew: their first byte in the constant buffer, their content."""
LateWords = tuple[LateWord, ...]


class Command(Protocol):
    """One thing to record."""

    def placed(self, numbers: Sequence[int]) -> Command:
        """The same over other buffers: `numbers` are theirs, by what this one calls them."""
        ...

    def record(self, runtime: Runtime, frame: Frame) -> None: ...


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch."""

    pipeline: Pipeline
    places: tuple[tuple[int, int], ...]
    """Slot, and number of its buffer in the frame."""
    own: tuple[tuple[int, Buffer], ...]
    """Slots of the buffers in which the device keeps what kernels report and print."""
    words: bytes
    """The constant buffer for inputs that start at the first byte of their buffers."""
    groups: tuple[int, int, int]
    late: LateWords = ()
    shifted: LateWords = ()
    """Offsets of inputs, for runs where one starts elsewhere."""

    def placed(self, numbers: Sequence[int]) -> Dispatch:
        places = tuple((slot, numbers[number]) for slot, number in self.places)
        return replace(self, places=places)

    def record(self, runtime: Runtime, frame: Frame) -> None:
        bound = {slot: frame.buffers[number] for slot, number in self.places}
        bound.update(self.own)
        runtime.dispatch(self.pipeline, bound, self._words_of(frame), self.groups)

    def _words_of(self, frame: Frame) -> bytes:
        late = self.late + self.shifted if frame.is_shifted else self.late
        if not late:
            return self.words
        words = bytearray(self.words)
        for start, content in late:
            found = content(frame)
            words[start : start + len(found)] = found
        return bytes(words)


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of one buffer to another."""

    source: int
    source_offset: int
    """Behind the start of an input."""
    target: int
    target_offset: int
    byte_count: int

    def placed(self, numbers: Sequence[int]) -> Copy:
        return replace(self, source=numbers[self.source], target=numbers[self.target])

    def record(self, runtime: Runtime, frame: Frame) -> None:
        source, target = frame.buffers[self.source], frame.buffers[self.target]
        start = frame.start(self.source) + self.source_offset
        runtime.copy(source, start, target, self.target_offset, self.byte_count)


@dataclass(frozen=True, slots=True)
class Fill:
    """The first bytes of a buffer, filled with one word."""

    target: int
    word: int
    byte_count: int

    def placed(self, numbers: Sequence[int]) -> Fill:
        return replace(self, target=numbers[self.target])

    def record(self, runtime: Runtime, frame: Frame) -> None:
        fill(runtime, frame.buffers[self.target], self.word, 0, self.byte_count)


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
        words = [(frame.buffers[number], 0, 4) for number in (self.goes_on, self.wants)]
        for _ in range(self.look_limit):
            for command in self.commands * self.times:
                command.record(runtime, frame)
            goes_on, wants = runtime.read(words)
            if not any(goes_on):
                if any(wants):
                    self.ran_over()
                return
        self.ran_over()
