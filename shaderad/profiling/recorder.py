"""The dispatches of a device while profiles are open, and the time that the host spent."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from shaderad.device.devices import Device
from shaderad.runtime.clocks.observing import RecordedDispatch, Spending


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the record of a device."""

    dispatches: int
    spendings: int


@dataclass(frozen=True, slots=True)
class Timed:
    """A dispatch, when it began on the device, and how long it took, if that has timestamps."""

    dispatch: RecordedDispatch
    begin_ms: float | None
    device_ms: float | None


class DispatchRecorder:
    """Observes one device from the first open profile to the last."""

    def __init__(self, device: Device) -> None:
        self._runtime = device.runtime
        self._lock = threading.Lock()
        self._open_count = 0
        self._dispatches: list[RecordedDispatch] = []
        self._spendings: list[tuple[Spending, float]] = []

    def recorded(self, dispatch: RecordedDispatch) -> None:
        self._dispatches.append(dispatch)

    def spent(self, spending: Spending, seconds: float) -> None:
        self._spendings.append((spending, seconds))

    def open(self) -> Mark:
        """Begins to record, unless another profile has; returns the place of the beginning."""
        with self._lock:
            if self._open_count == 0:
                self._runtime.observe(self)
            self._open_count += 1
        return Mark(len(self._dispatches), len(self._spendings))

    def finish(self) -> Mark:
        """Waits for all that was recorded; returns the place behind it, and behind the wait."""
        dispatch_count = len(self._dispatches)
        self._runtime.wait()
        return Mark(dispatch_count, len(self._spendings))

    def close(self) -> None:
        """Ends what `open` began; forgets the record after the last profile."""
        with self._lock:
            self._open_count -= 1
            if self._open_count == 0:
                self._dispatches, self._spendings = [], []
                self._runtime.observe(None)

    def dispatches(self, begin: Mark, end: Mark) -> list[Timed]:
        """The dispatches between two places, once the device has finished them."""
        records = self._dispatches[begin.dispatches : end.dispatches]
        times = self._runtime.milliseconds(end.dispatches)
        if times is None:
            return [Timed(dispatch, None, None) for dispatch in records]
        return [
            Timed(dispatch, start, stop - start)
            for dispatch, (start, stop) in zip(records, times[begin.dispatches :], strict=True)
        ]

    def milliseconds(self, spending: Spending, begin: Mark, end: Mark) -> float:
        """The time that the host spent between two places."""
        records = self._spendings[begin.spendings : end.spendings]
        return 1e3 * sum(seconds for kind, seconds in records if kind is spending)
