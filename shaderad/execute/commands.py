"""The commands of a prepared schedule, and the buffers of a run.

A run has a frame of buffers: the inputs, one for each result, those that serve again, then those
in which the device keeps what kernels report and print.
Invariant: none of them holds two things that are needed at one time; the buffers of results belong
to nobody else after the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from shaderad.runtime import fill
from shaderad.runtime.dispatch_runs import LONGEST_RUN, DispatchRun, FixedDispatch

if TYPE_CHECKING:
    from shaderad.runtime import DeviceBuffer, Pipeline, Ranges, Runtime


@dataclass(slots=True)
class Frame:
    """The buffers of one run, and what else differs from run to run."""

    buffers: list[DeviceBuffer]
    """The inputs, then the buffers that the run makes, then those of the device."""
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


class Recorded(Protocol):
    """One thing to record."""

    def record(self, runtime: Runtime, frame: Frame) -> None: ...


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
    words: bytes
    """The constant buffer for inputs that start at the first byte of their buffers."""
    groups: tuple[int, int, int]
    late: LateWords = ()
    shifted: LateWords = ()
    """Offsets of inputs, for runs where one starts elsewhere."""
    ranges: Ranges | None = None
    """The parts of buffers that a window binds."""

    @property
    def is_fixed(self) -> bool:
        """True if each run records the same, unless inputs are shifted."""
        return not self.late and self.ranges is None and self.pipeline.may_join_runs

    def placed(self, numbers: Sequence[int]) -> Dispatch:
        moved = tuple(numbers[k] if k >= 0 else k for k in self.numbers)
        return replace(self, numbers=moved)

    def record(self, runtime: Runtime, frame: Frame) -> None:
        buffers = frame.buffers
        bound = [buffers[k] for k in self.numbers]
        late = self.late + self.shifted if frame.is_shifted else self.late
        words = self._words_with(late, frame) if late else self.words
        runtime.record_dispatch(self.pipeline, bound, words, self.groups, self.ranges)

    def _words_with(self, late: LateWords, frame: Frame) -> bytes:
        words = bytearray(self.words)
        for start, content in late:
            found = content(frame)
            words[start : start + len(found)] = found
        return bytes(words)


@dataclass(frozen=True, slots=True)
class Joined:
    """Dispatches that follow each other, recorded as one unless inputs are shifted."""

    dispatches: Sequence[Dispatch]
    run: DispatchRun
    is_shifted: bool
    """True if words of a dispatch depend on where inputs start."""

    def record(self, runtime: Runtime, frame: Frame) -> None:
        if frame.is_shifted and self.is_shifted:
            for dispatch in self.dispatches:
                dispatch.record(runtime, frame)
        else:
            runtime.record_run(self.run, frame.buffers)


def joined(commands: Iterable[Command], runtime: Runtime) -> list[Recorded]:
    """`commands` with fixed dispatches that follow each other joined."""
    result: list[Recorded] = []
    fixed: list[Dispatch] = []

    def end() -> None:
        if len(fixed) > 1:
            parts = [FixedDispatch(c.pipeline, c.numbers, c.words, c.groups) for c in fixed]
            is_shifted = any(c.shifted for c in fixed)
            result.append(Joined(tuple(fixed), runtime.new_run(parts), is_shifted))
        else:
            result.extend(fixed)
        fixed.clear()

    for command in commands:
        if isinstance(command, Dispatch) and command.is_fixed:
            if len(fixed) == LONGEST_RUN:
                end()
            fixed.append(command)
        else:
            end()
            result.append(command)
    end()
    return result


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

    def placed(self, numbers: Sequence[int]) -> LoopCommand:
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
