"""Kills a child that exceeds a limit of its own processor time.

On a busy machine a sound compiler may wait for its turn longer than a hung one computes. So the
child reports the processor time of its request, several times a second, and is killed once that
exceeds the limit. Two longer limits on the clock remain: one for a child without progress, because
it is blocked or reports nothing, and one for every child.
"""

from __future__ import annotations

import subprocess
import threading
import time
from types import TracebackType
from typing import Self

STALL_FACTOR = 2.0
"""Seconds on the clock without progress, per second of the limit. Drivers may wait for a compiler
in another process, whose time is not the child's."""

CLOCK_FACTOR = 20.0
"""Seconds on the clock, per second of the limit."""

_PROGRESS = 0.005
"""Seconds of processor time per second on the clock, below which a child makes no progress. One of
a hundred runnable processes on a core gets 0.01; the reports of a blocked child cost less."""


class Watchdog:
    """Watches `process` within a `with` block; `excess` names the limit that it exceeded."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.excess = ""
        self._process = process
        self._seconds = seconds
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._start = self._progress_at = time.monotonic()
        self._used = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except BaseException:
            self._is_over.set()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _failure: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._is_over.set()

    def heard(self, used: float) -> None:
        """Notes a report: `used` seconds of processor time since the request."""
        now = time.monotonic()
        with self._lock:
            if used - self._used >= _PROGRESS * (now - self._progress_at):
                self._used, self._progress_at = used, now
            if used >= self._seconds:
                self._kill(f"used {used:.0f} s of processor time")

    def _watch(self) -> None:
        pause = min(1.0, self._seconds / 4)
        while not self._is_over.wait(pause):
            now = time.monotonic()
            with self._lock:
                if now - self._progress_at >= STALL_FACTOR * self._seconds:
                    self._kill(f"stood still for {now - self._progress_at:.0f} s")
                elif now - self._start >= CLOCK_FACTOR * self._seconds:
                    self._kill(f"took {now - self._start:.0f} s")

    def _kill(self, excess: str) -> None:
        """Kills the child unless it has replied; the caller holds the lock."""
        if not self._is_over.is_set():
            self.excess = excess
            self._is_over.set()
            self._process.kill()
