"""Observers of what a runtime records, and the clock of the device that times it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any, Protocol, TypeVar

from shaderad.compiler.artifact import Program
from shaderad.runtime.capabilities import Capabilities
from shaderad.runtime.guard import Guarded, guarded

QUERY_SET_SIZE = 4096
"""Timestamps of one query set, the most that WebGPU allows; a dispatch takes two."""

QuerySet = TypeVar("QuerySet")


class Spending(Enum):
    """The reasons why the host of a device spends time, apart from its own work."""

    COMPILE = "compile"
    UPLOAD = "upload"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class RecordedDispatch:
    """A dispatch that a runtime has recorded."""

    program: Program
    words: bytes
    """Its constant buffer."""
    groups: tuple[int, int, int]
    bound_bytes: tuple[int, ...]
    """The bytes of the bound part of each resource, in the order of the program's bindings without
    the constant buffer; 0 for textures and samplers."""


class Observer(Protocol):
    """Watches one runtime."""

    def recorded(self, dispatch: RecordedDispatch) -> None:
        """Called for each dispatch, under the lock of the runtime."""

    def spent(self, spending: Spending, seconds: float) -> None:
        """Called after the host spent time; other threads may be inside of it, too."""


class DeviceClock(ABC):
    """Timestamps before and after each dispatch that is recorded, in order."""

    def __init__(self) -> None:
        self.count = 0
        """The dispatches so far."""

    @abstractmethod
    def milliseconds(self, count: int) -> list[tuple[float, float]]:
        """The beginning and end of each of the first `count` dispatches, which have finished."""

    def next_pair(self, sets: list[QuerySet], new_set: Callable[[], QuerySet]) -> int:
        """The first index of the next dispatch in the last of `sets`, to which one may be added."""
        index = 2 * self.count % QUERY_SET_SIZE
        if index == 0:
            sets.append(new_set())
        self.count += 1
        return index

    @staticmethod
    def counts(count: int) -> Sequence[int]:
        """The timestamps of the first `count` dispatches in each query set that has any."""
        total = 2 * count
        return [min(QUERY_SET_SIZE, total - start) for start in range(0, total, QUERY_SET_SIZE)]


def pairs_of(times: Sequence[float]) -> list[tuple[float, float]]:
    """Times of beginnings and ends that alternate, as pairs."""
    return [*zip(times[::2], times[1::2], strict=True)]


class Observable(Guarded):
    """A runtime that one observer may watch."""

    clock: Any
    """Times dispatches while somebody observes them; `None` if the device has no timestamps."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self.observer: Observer | None = None
        self.clock = None

    @guarded
    def observe(self, observer: Observer | None) -> None:
        """Lets `observer` watch from now on, or nobody."""
        self.observer = observer
        self.clock = None if observer is None else self.new_clock()

    @guarded
    def milliseconds(self, count: int) -> list[tuple[float, float]] | None:
        """The times of the first `count` dispatches since `observe`, all of them finished."""
        return None if self.clock is None else self.clock.milliseconds(count)

    @abstractmethod
    def new_clock(self) -> DeviceClock | None:
        """A clock that has timed nothing; `None` if the device has no timestamps."""

    def note(self, dispatch: RecordedDispatch) -> None:
        """Tells the observer of a dispatch."""
        if self.observer is not None:
            self.observer.recorded(dispatch)

    def spending(self, spending: Spending) -> AbstractContextManager[None]:
        """A context in which the host spends time."""
        return _UNOBSERVED if self.observer is None else _spent(self.observer, spending)

    def await_device(self, is_done: Callable[[], bool]) -> None:
        with self.spending(Spending.WAIT):
            super().await_device(is_done)


_UNOBSERVED: AbstractContextManager[None] = nullcontext()


@contextmanager
def _spent(observer: Observer, spending: Spending) -> Generator[None]:
    start = perf_counter()
    try:
        yield
    finally:
        observer.spent(spending, perf_counter() - start)
