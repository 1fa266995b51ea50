"""Where the buffers of a run lie, once it is known when each of them is needed.

The inputs come first, then a buffer for each result, then those that serve again. Invariant: none
of them holds two things that are needed at one time; the buffers of results belong to nobody else
after the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Layout:
    """The buffers of a run behind its inputs."""

    kept_bytes: list[int]
    """Sizes of the buffers of results."""
    scratch_bytes: list[int]
    """Sizes of the buffers behind those."""
    numbers: list[int]
    """Where each thing that was asked for lies, the inputs first."""


@dataclass(slots=True)
class _Need:
    """So many bytes, from one time to another; without an end, what is needed after the run."""

    size: int
    begin: int
    end: int | None = None


class FramePlan:
    """What a run needs, in the order in which it needs it."""

    def __init__(self, input_count: int) -> None:
        self.peak_live_bytes = 0
        """The most that is needed at one time, inputs left out."""
        self._input_count = input_count
        self._needs: list[_Need] = []
        self._time = 0
        self._live_bytes = 0

    def take(self, size: int, *, since_start: bool = False) -> int:
        """From now on `size` bytes are needed, under this number.

        `since_start`: nothing else may lie there before.
        """
        self._time += 1
        self._needs.append(_Need(size, 0 if since_start else self._time))
        self._live_bytes += size
        self.peak_live_bytes = max(self.peak_live_bytes, self._live_bytes)
        return self._input_count + len(self._needs) - 1

    def give(self, number: int) -> None:
        """What has this number is needed no more."""
        need = self._needs[number - self._input_count]
        self._time += 1
        need.end = self._time
        self._live_bytes -= need.size

    def layout(self, results: Sequence[int]) -> Layout:
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
        return Layout(sizes[: len(kept)], sizes[len(kept) :], [*range(first), *numbers])


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
