"""The commands of a prepared schedule, and the buffers of a run.

A run has a frame of buffers: the inputs, one for each result, those that serve again, then those
in which the device keeps what kernels report and print.
Invariant: none of them holds two things that are needed at one time; the buffers of results belong
to nobody else after the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from shaderad.runtime import fill
from shaderad.runtime.command_runs import LONGEST_RUN, Frame, LateWord

if TYPE_CHECKING:
    from shaderad.runtime import Pipeline, Ranges, Runtime
    from shaderad.runtime.command_runs import Recorder

LateWords = tuple[LateWord, ...]


class Recorded(Protocol):
    """One thing to record."""

    def record(self, recorder: Any, frame: Frame) -> None: ...


class Command(Recorded, Protocol):
    """One thing to record whose buffers may still get other places."""

    def placed(self, numbers: Sequence[int]) -> Command:
        """The same over other buffers: `numbers` are theirs, by what this one calls them."""
        ...


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch."""

    pipeline: Pipeline
    numbers: tuple[int, ...]
    """By storage slot of the pipeline: the number of its buffer in the frame, counted from the end
    (-1, ...) for those in which the device keeps what kernels report and print."""
    words: bytes | bytearray
    """The constant buffer for inputs that start at the first byte of their buffers."""
    groups: tuple[int, int, int]
    late: LateWords = ()
    shifted: LateWords = ()
    """Offsets of inputs, for runs where one starts elsewhere."""
    ranges: Ranges | None = None
    """The parts of buffers that a window binds."""

    def placed(self, numbers: Sequence[int]) -> Dispatch:
        moved = tuple(numbers[k] if k >= 0 else k for k in self.numbers)
        return replace(self, numbers=moved)

    def record(self, recorder: Recorder, frame: Frame) -> None:
        buffers = frame.buffers
        bound = [buffers[k] for k in self.numbers]
        recorder.record_dispatch(self.pipeline, bound, self.words, self.groups, self.ranges)


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of one buffer to another."""

    source: int
    source_offset: int
    """Behind the start of an input."""
    target: int
    target_offset: int
    byte_count: int

    @property
    def numbers(self) -> tuple[int, int]:
        return self.source, self.target

    def placed(self, numbers: Sequence[int]) -> Copy:
        return replace(self, source=numbers[self.source], target=numbers[self.target])

    def record(self, recorder: Recorder, frame: Frame) -> None:
        source, target = frame.buffers[self.source], frame.buffers[self.target]
        start = frame.start(self.source) + self.source_offset
        recorder.copy(source, start, target, self.target_offset, self.byte_count)


@dataclass(frozen=True, slots=True)
class Fill:
    """The first bytes of a buffer, filled with one word."""

    target: int
    word: int
    byte_count: int

    @property
    def numbers(self) -> tuple[int]:
        return (self.target,)

    def placed(self, numbers: Sequence[int]) -> Fill:
        return replace(self, target=numbers[self.target])

    def record(self, recorder: Recorder, frame: Frame) -> None:
        target = frame.buffers[self.target]
        if self.word:
            fill(cast("Runtime", recorder), target, self.word, 0, self.byte_count)
        else:
            recorder.zero(target, 0, self.byte_count)


@dataclass(frozen=True, slots=True)
class LoopCommand:
    """Commands again and again, until the device says that a loop has ended."""

    commands: tuple[Command, ...]
    times: int
    """Repetitions between two looks at the device."""
    look_limit: int
    """Looks after which the loop has ended, whatever its buffers say."""
    goes_on: int
    """The buffer whose first word tells."""
    wants: int
    """The buffer whose first word tells whether only the limit ended the loop."""
    ran_over: Callable[[], None]
    body: Sequence[Recorded] = ()
    """The commands, joined."""

    def placed(self, numbers: Sequence[int]) -> LoopCommand:
        return replace(
            self,
            commands=tuple(one.placed(numbers) for one in self.commands),
            goes_on=numbers[self.goes_on],
            wants=numbers[self.wants],
        )

    def record(self, recorder: Runtime, frame: Frame) -> None:
        words = [(frame.buffers[number], 0, 4) for number in (self.goes_on, self.wants)]
        for _ in range(self.look_limit):
            for _ in range(self.times):
                for command in self.body:
                    command.record(recorder, frame)
            goes_on, wants = recorder.read(words)
            if not any(goes_on):
                if any(wants):
                    self.ran_over()
                return
        self.ran_over()


def joined(
    commands: Iterable[Command], runtime: Runtime, input_count: int, *, is_shifted: bool
) -> list[Recorded]:
    """`commands` as runs, and those that cannot be part of a run.

    Args:
        commands: Commands over placed buffers.
        runtime: Where they run.
        input_count: The number of inputs, the first buffers of a frame.
        is_shifted: True if inputs start anywhere in their buffers.
    """
    recorded: list[Recorded] = []
    run: list[Dispatch | Copy | Fill] = []
    late: list[tuple[bytearray, LateWord]] = []

    def end() -> None:
        if run:
            recorded.append(runtime.new_run(tuple(run), tuple(late)))
            run.clear()
            late.clear()

    for command in commands:
        if len(run) == LONGEST_RUN:
            end()
        match command:
            case Dispatch():
                parts = command.late + command.shifted if is_shifted else command.late
                words = bytearray(command.words) if parts else command.words
                late.extend((cast("bytearray", words), part) for part in parts)
                run.append(replace(command, words=words))
            case Copy() if not (is_shifted and command.source < input_count):
                run.append(command)
            case Fill() if not command.word:
                run.append(command)
            case LoopCommand():
                end()
                body = joined(command.commands, runtime, input_count, is_shifted=is_shifted)
                recorded.append(replace(command, body=body))
            case _:  # a fill by a program, or a copy that begins elsewhere at each recording
                end()
                recorded.append(command)
    end()
    return recorded


def pipelines_of(commands: Iterable[Command]) -> Iterator[Pipeline]:
    """The pipeline of each dispatch, those in loops included."""
    for command in commands:
        if isinstance(command, Dispatch):
            yield command.pipeline
        elif isinstance(command, LoopCommand):
            yield from pipelines_of(command.commands)


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """The buffers of a run behind its inputs."""

    kept_bytes: list[int]
    """Sizes of the buffers of results."""
    scratch_bytes: list[int]
    """Sizes of the buffers behind those."""
    numbers: list[int]
    """The buffer of each need, the inputs first."""


@dataclass(slots=True)
class _Need:
    """So many bytes, from one time to another; without an end, what is needed after the run."""

    size: int
    begin: int
    end: int | None = None


class FramePlan:
    """The memory needs of a run, in order of time."""

    def __init__(self, input_count: int) -> None:
        self.peak_live_bytes = 0
        """The most that is needed at one time, inputs left out."""
        self._input_count = input_count
        self._needs: list[_Need] = []
        self._time = 0
        self._live_bytes = 0

    def take(self, size: int, *, since_start: bool = False) -> int:
        """Begins a need of `size` bytes, and returns its number.

        `since_start`: nothing else may lie there before.
        """
        self._time += 1
        self._needs.append(_Need(size, 0 if since_start else self._time))
        self._live_bytes += size
        self.peak_live_bytes = max(self.peak_live_bytes, self._live_bytes)
        return self._input_count + len(self._needs) - 1

    def give(self, number: int) -> None:
        """Ends the need of this number."""
        need = self._needs[number - self._input_count]
        self._time += 1
        need.end = self._time
        self._live_bytes -= need.size

    def layout(self, results: Sequence[int]) -> FrameLayout:
        """Buffers for everything; `results` are what was not given back.

        The largest are laid first, so that none grows. Of one size, the last to be given back are:
        before a result is needed its buffer is like any other, while nothing can be moved out of it
        when it is.
        """
        kept = [self._needs[k - self._input_count] for k in results]
        buffers = [_Buffer(need.size, [(need.begin, self._time + 1)]) for need in kept]
        number_by_need = {id(need): k for k, need in enumerate(kept)}
        others = [(need, need.end) for need in self._needs if need.end is not None]
        for need, end in sorted(others, key=lambda one: (one[0].size, one[1]), reverse=True):
            number = _best(buffers, need.size, (need.begin, end))
            if number is None:
                number = len(buffers)
                buffers.append(_Buffer(need.size))
            buffers[number].lend((need.begin, end))
            number_by_need[id(need)] = number
        sizes, first = [one.size for one in buffers], self._input_count
        numbers = [first + number_by_need[id(need)] for need in self._needs]
        return FrameLayout(sizes[: len(kept)], sizes[len(kept) :], [*range(first), *numbers])


@dataclass(slots=True)
class _Buffer:
    """A buffer, and when it is lent: times that do not overlap, in order."""

    size: int
    lent: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def is_free(self, time: tuple[int, int]) -> bool:
        k = bisect_left(self.lent, time)
        is_free_before = k == 0 or self.lent[k - 1][1] < time[0]
        return is_free_before and (k == len(self.lent) or time[1] < self.lent[k][0])

    def lend(self, time: tuple[int, int]) -> None:
        self.lent.insert(bisect_left(self.lent, time), time)


def _best(buffers: Sequence[_Buffer], size: int, time: tuple[int, int]) -> int | None:
    """The smallest buffer that is large enough and free."""
    found = [k for k, one in enumerate(buffers) if one.size >= size and one.is_free(time)]
    return min(found, key=lambda k: buffers[k].size, default=None)
